package compare

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/limits"
	"github.com/barnabas-mq/barnabas/core/record"
)

// load is something that is put on all brokers, in turn.
type load struct {
	name     string
	run      func(ctx context.Context, l bench.Load) (*bench.Result, error)
	measures []measure
	limits   []string // of the machine, measured beside it

	connections int
	partitions  int32
	properties  map[string]string // of the topic
	fill        int64             // bytes that the topic needs first
	longer      int               // how many times longer than others it is measured; 0 is 1
	calm        bool              // it is about delays, and needs no memory to speak of
}

// measure is what is read off a load's result, and what is good enough.
type measure struct {
	unit      string
	of        func(*bench.Result) float64
	target    Target
	bound     func(map[string]limits.Cost) float64 // the machine's part of it; nil when nothing is known
	reference func(map[string]limits.Cost) float64 // what the target is a ratio to, unless that is Kafka's
}

// produce is a load of ready-made batches, acks=all.
func produce(record, batch, inFlight int, codec record.Codec) func(context.Context, bench.Load) (*bench.Result, error) {
	return func(ctx context.Context, l bench.Load) (*bench.Result, error) {
		return (&bench.Produce{Load: l, InFlight: inFlight, RecordSize: record, BatchSize: batch, Acks: -1, Codec: codec, Codecs: clientCodecs{}}).Run(ctx)
	}
}

func consume(maxBytes int32) func(context.Context, bench.Load) (*bench.Result, error) {
	return func(ctx context.Context, l bench.Load) (*bench.Result, error) {
		return (&bench.Consume{Load: l, MaxBytes: maxBytes}).Run(ctx)
	}
}

// endToEnd is a load of 5,000 records a second, each of which is sent at once.
func endToEnd(ctx context.Context, l bench.Load) (*bench.Result, error) {
	return (&bench.EndToEnd{Produce: bench.Produce{Load: l, Rate: 5000, InFlight: 5, RecordSize: 1000, BatchSize: 1, Acks: -1, Idempotent: true}, Consumers: 1}).Run(ctx)
}

// loads are all of them, in the report's order.
func loads() []load {
	perGB := (*bench.Result).CPUPerGB
	var all []load
	for _, batch := range []struct {
		name, limit string
		bytes       int
		target      float64
	}{{"64k", appendSmall, 64 << 10, 0.35}, {"1m", appendLarge, 1 << 20, 0.5}} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"1k", 1000}, {"100", 100}} {
			all = append(all, load{
				name: "produce-" + batch.name + "-" + size.name, connections: 2, partitions: 6, limits: []string{batch.limit, rawReceive},
				run:      produce(size.bytes, batch.bytes, 5, record.None),
				measures: []measure{{unit: "CPU-s/GB", of: perGB, target: atMost(batch.target), bound: receivedAndAppended(batch.limit)}},
			})
		}
	}
	for _, codec := range []record.Codec{record.LZ4, record.Zstd, record.Snappy, record.Gzip} {
		all = append(all, load{
			name: "produce-" + codec.String(), connections: 2, partitions: 6, run: produce(1000, 64<<10, 5, codec),
			measures: []measure{{unit: "CPU-s/GB on the wire", of: perWireGB, target: atMost(0.35)}},
		})
	}
	for _, inFlight := range []struct {
		n      int
		target float64
	}{{1, 1.5}, {50, 4}} {
		l := load{
			name: fmt.Sprintf("request-%d", inFlight.n), connections: 1, partitions: 1, run: produce(1000, 1, inFlight.n, record.None),
			measures: []measure{
				{unit: "CPU µs/request", of: (*bench.Result).CPUPerRequest, target: atMost(0.2)},
				{unit: "requests/s", of: (*bench.Result).RequestsPerSecond, target: atLeast(inFlight.target)},
			},
		}
		if inFlight.n == 1 {
			l.limits, l.measures[0].bound, l.measures[1].bound = []string{rawAnswer}, answered, answersPerSecond
		}
		all = append(all, l)
	}
	return append(all,
		load{
			name: "end-to-end", connections: 4, partitions: 4, run: endToEnd, longer: 2, calm: true,
			measures: []measure{
				{unit: "ms p50", of: func(r *bench.Result) float64 { return r.Latency.P50 / 1e3 }, target: atMost(0.5)},
				{unit: "ms p99", of: func(r *bench.Result) float64 { return r.Latency.P99 / 1e3 }, target: atMost(0.5)},
				{unit: "ms p99.9", of: func(r *bench.Result) float64 { return r.Latency.P999 / 1e3 }, target: atMost(0.5)},
			},
		},
		load{
			name: "flush", connections: 64, partitions: 1, run: produce(1000, 1, 1, record.None), properties: map[string]string{"flush.messages": "1"},
			measures: []measure{{unit: "records/s, on the device before they are acknowledged", of: (*bench.Result).RecordsPerSecond, target: atLeast(5)}},
		},
		load{
			name: "consume-1m", connections: 1, partitions: 1, fill: 1 << 30, run: consume(1 << 20), limits: []string{rawSendfile, rawSend},
			measures: []measure{
				{unit: "CPU-s/GB", of: perGB, target: atMost(0.9), bound: sent},
				{unit: "MiB/s", of: (*bench.Result).MiBPerSecond, target: atLeast(1.1), bound: sendfileSpeed},
			},
		},
		load{
			name: "consume-10m", connections: 1, partitions: 1, fill: 1 << 30, run: consume(10 << 20), limits: []string{rawSendfile, rawSend},
			measures: []measure{
				{unit: "CPU-s/GB", of: perGB, target: atMost(1.05), bound: sent},
				{unit: "MiB/s", of: (*bench.Result).MiBPerSecond, target: Target{Limit: 0.9, Against: rawSendfile, AtLeast: true}, bound: sendfileSpeed, reference: sendfileSpeed},
			},
		},
	)
}

// perWireGB is the brokers' processor time for 10^9 bytes as they were sent, in seconds.
func perWireGB(r *bench.Result) float64 {
	if r.Broker == nil || r.WireBytes == 0 {
		return 0
	}
	return r.Broker.CPU * 1e9 / float64(r.WireBytes)
}

// broker is one that runs and takes loads, or a cluster of them.
type broker struct {
	name     string
	addr     string
	pids     []int
	replicas int16 // of its topics
}

// patience is how long a load may take beyond its duration: a broker that no longer answers must not hold up all others.
const patience = 2 * time.Minute

// put puts a load on a broker. The topic is there for this run alone.
func (l *load) put(ctx context.Context, b broker, duration time.Duration) (*bench.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, duration+patience)
	defer cancel()
	topic := fmt.Sprintf("%s-%d", l.name, time.Now().UnixMilli())
	if err := bench.CreateTopic(ctx, b.addr, topic, l.partitions, b.replicas); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", b.name, l.name, err)
	}
	run := func() (*bench.Result, error) {
		if err := setProperties(ctx, b.addr, topic, l.properties); err != nil {
			return nil, err
		}
		if l.fill > 0 {
			if err := bench.Fill(ctx, b.addr, topic, l.fill); err != nil {
				return nil, err
			}
		}
		return l.run(ctx, bench.Load{Addr: b.addr, Topic: topic, Connections: l.connections, Duration: duration, WarmUp: time.Second / 2, Pids: b.pids})
	}
	result, err := run()
	if err == nil {
		err = bench.DeleteTopic(ctx, b.addr, topic)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", b.name, l.name, err)
	}
	return result, nil
}

// setProperties changes a topic's properties.
func setProperties(ctx context.Context, addr, topic string, properties map[string]string) error {
	if len(properties) == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	var changes []kadm.AlterConfig
	for name, value := range properties {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	answers, err := kadm.NewClient(client).AlterTopicConfigs(ctx, changes, topic)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a.Err != nil {
			return fmt.Errorf("set properties of topic %s: %w", topic, a.Err)
		}
	}
	return nil
}
