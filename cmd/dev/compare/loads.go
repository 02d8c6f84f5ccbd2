package compare

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
)

// load is something that is put on both brokers. Its figure is in units of the broker's processor time.
type load struct {
	name  string
	unit  string
	limit float64 // of the ratio to Kafka's
	run   func(ctx context.Context, l bench.Load) (*bench.Result, error)
	value func(*bench.Result) float64

	connections int
	partitions  int32
	fill        int64 // bytes that the topic needs first
}

func loads() []load {
	perGB, perRequest := (*bench.Result).CPUPerGB, (*bench.Result).CPUPerRequest
	produce := func(record, batch, inFlight int) func(context.Context, bench.Load) (*bench.Result, error) {
		return func(ctx context.Context, l bench.Load) (*bench.Result, error) {
			return (&bench.Produce{Load: l, InFlight: inFlight, RecordSize: record, BatchSize: batch, Acks: -1}).Run(ctx)
		}
	}
	consume := func(ctx context.Context, l bench.Load) (*bench.Result, error) {
		return (&bench.Consume{Load: l, MaxBytes: 1 << 20}).Run(ctx)
	}
	return []load{
		{name: "produce-1k", unit: "CPU-s/GB in 64 KiB batches", limit: 0.5, run: produce(1000, 64<<10, 5), value: perGB, connections: 2, partitions: 6},
		{name: "produce-100", unit: "CPU-s/GB in 64 KiB batches", limit: 0.5, run: produce(100, 64<<10, 5), value: perGB, connections: 2, partitions: 6},
		{name: "request", unit: "CPU µs, 1 KB record, acks=all", limit: 0.25, run: produce(1000, 1, 1), value: perRequest, connections: 1, partitions: 1},
		{name: "request-40", unit: "CPU µs, the same, 8 connections x 5 in flight", limit: 0.25, run: produce(1000, 1, 5), value: perRequest, connections: 8, partitions: 1},
		{name: "consume", unit: "CPU-s/GB in 1 MiB fetches", limit: 1, run: consume, value: perGB, connections: 1, partitions: 1, fill: 1 << 30},
	}
}

// broker is one that runs and takes loads, or a cluster of them.
type broker struct {
	name     string
	addr     string
	pids     []int
	replicas int16 // of its topics
}

// put puts a load on a broker and gives the figure. The topic is there for this run alone.
func (l *load) put(ctx context.Context, b broker, duration time.Duration) (float64, *bench.Result, error) {
	topic := fmt.Sprintf("%s-%d", l.name, time.Now().UnixMilli())
	if err := bench.CreateTopic(ctx, b.addr, topic, l.partitions, b.replicas); err != nil {
		return 0, nil, err
	}
	run := func() (*bench.Result, error) {
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
		return 0, nil, fmt.Errorf("%s, %s: %w", b.name, l.name, err)
	}
	return l.value(result), result, nil
}
