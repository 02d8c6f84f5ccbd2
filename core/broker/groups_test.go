package broker_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/memory"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

func TestMain(m *testing.M) {
	// sarama's metrics have a goroutine for the whole process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// startBroker runs a broker over a directory and gives its address. It is stopped when the test ends, or by stop.
func startBroker(t *testing.T, dir string, store offsets.Factory) (address string, stop func()) {
	b := testbroker.Start(t, brokertest.Dir(dir), brokertest.Offsets(store), brokertest.Storage(storagesendfile.NewFactory()),
		brokertest.Property("group.min.session.timeout.ms", "100"), brokertest.Property("offsets.topic.num.partitions", "5"),
		brokertest.Property("auto.create.topics.enable", "false"))
	return b.Addr(), b.Stop
}

func client(t *testing.T, address string, opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.CloseAllowingRebalance)
	return c
}

// fill makes a topic of n partitions and puts so many records into it.
func fill(t *testing.T, address, name string, partitions int32, records int) {
	c := client(t, address, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	var failed atomic.Pointer[error]
	_, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, 1, nil, name)
	require.NoError(t, err)
	for i := range records {
		c.Produce(t.Context(), &kgo.Record{Topic: name, Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	require.NoError(t, c.Flush(t.Context()))
	if err := failed.Load(); err != nil {
		require.NoError(t, *err, "produce")
	}
}

// line is a client's line to the network, which can be cut.
type line struct {
	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

func (l *line) dial(ctx context.Context, network, host string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, host)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut && err == nil {
		c.Close()
		return nil, net.ErrClosed
	}
	l.conns = append(l.conns, c)
	return c, err
}

func (l *line) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		c.Close()
	}
}

// consumer is a group member that commits what it has read.
func consumer(t *testing.T, address, group, topicName string, balancer kgo.GroupBalancer, opts ...kgo.Opt) *kgo.Client {
	return client(t, address, append([]kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(topicName), kgo.Balancers(balancer),
		kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RebalanceTimeout(10 * time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit()}, opts...)...)
}

// seen counts how often each record was read.
type seen struct {
	mu    sync.Mutex
	count map[string]int
}

// poll reads and commits once, until ctx ends.
func (s *seen) poll(ctx context.Context, c *kgo.Client) {
	fetches := c.PollFetches(ctx)
	s.mu.Lock()
	fetches.EachRecord(func(r *kgo.Record) { s.count[fmt.Sprintf("%d/%d", r.Partition, r.Offset)]++ })
	s.mu.Unlock()
	_ = c.CommitUncommittedOffsets(ctx)
}

func (s *seen) all() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.count)
}

// TestConsumerGroups lets real consumers share a topic: one alone, a second that joins, a third that is killed, and one that
// goes on after all where they were.
func TestConsumerGroups(t *testing.T) {
	stores := map[string]func() offsets.Factory{"topic": topic.NewFactory, "memory": memory.NewFactory}
	balancers := map[string]func() kgo.GroupBalancer{"range": kgo.RangeBalancer, "cooperative-sticky": kgo.CooperativeStickyBalancer}
	for storeName, store := range stores {
		for name, balancer := range balancers {
			t.Run(storeName+"/"+name, func(t *testing.T) {
				address, _ := startBroker(t, t.TempDir(), store())
				const partitions, records = 6, 600
				fill(t, address, "t", partitions, records)
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				defer cancel()
				s := &seen{count: map[string]int{}}
				var wg sync.WaitGroup
				run := func(c *kgo.Client) (stop func()) {
					polling, end := context.WithCancel(ctx)
					wg.Go(func() {
						for polling.Err() == nil {
							s.poll(polling, c)
						}
					})
					return end
				}
				first := consumer(t, address, "g", "t", balancer())
				stopFirst := run(first)
				require.Eventually(t, func() bool { return s.all() == records }, time.Minute, 10*time.Millisecond)

				second := consumer(t, address, "g", "t", balancer())
				stopSecond := run(second)
				var wire line
				third := consumer(t, address, "g", "t", balancer(), kgo.Dialer(wire.dial),
					kgo.RequestRetries(1), kgo.RetryTimeout(time.Second)) // it shall not try to leave for long
				stopThird := run(third)
				adm := kadm.NewClient(client(t, address))
				members := func(n int) func() bool {
					return func() bool {
						d, err := adm.DescribeGroups(ctx, "g")
						return err == nil && d["g"].Err == nil && d["g"].State == "Stable" && len(d["g"].Members) == n
					}
				}
				require.Eventually(t, members(3), time.Minute, 20*time.Millisecond)
				wire.kill()
				stopThird()
				require.Eventually(t, members(2), time.Minute, 20*time.Millisecond, "the dead member stays")
				fillMore(t, address, "t", records)
				require.Eventually(t, func() bool { return s.all() == 2*records }, time.Minute, 10*time.Millisecond)
				stopFirst()
				stopSecond()
				wg.Wait()
				first.CloseAllowingRebalance()
				second.CloseAllowingRebalance()
				third.CloseAllowingRebalance()
				d, err := adm.DescribeGroups(ctx, "g")
				require.NoError(t, err)
				require.Equal(t, "Empty", d["g"].State)
				lag, err := adm.Lag(ctx, "g")
				require.NoError(t, err)
				last := consumer(t, address, "g", "t", balancer())
				quiet, stop := context.WithTimeout(ctx, 500*time.Millisecond)
				defer stop()
				again := last.PollFetches(quiet)
				require.LessOrEqual(t, int64(again.NumRecords()), lag["g"].Lag.Total(), "records that were committed come again")
			})
		}
	}
}

func fillMore(t *testing.T, address, name string, records int) {
	c := client(t, address, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.DefaultProduceTopic(name))
	for i := range records {
		require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Append(nil, i)}).FirstErr())
	}
}

// TestGroupsSurviveARestart: offsets, generations and static members are there again, for the store that keeps them.
func TestGroupsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	address, stop := startBroker(t, dir, topic.NewFactory())
	fill(t, address, "t", 3, 0)
	ctx := t.Context()
	adm := kadm.NewClient(client(t, address))
	commit := kadm.Offsets{}
	for p := range int32(3) {
		commit.Add(kadm.Offset{Topic: "t", Partition: p, At: int64(100 + p), LeaderEpoch: -1, Metadata: fmt.Sprint("note ", p)})
	}
	for i := range 50 {
		r, err := adm.CommitOffsets(ctx, fmt.Sprintf("g%d", i), commit)
		require.NoError(t, err)
		require.NoError(t, r.Error())
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "__consumer_offsets")
	require.NoError(t, err)
	policy := ""
	for _, c := range configs[0].Configs {
		if c.Key == "cleanup.policy" {
			policy = c.MaybeValue()
		}
	}
	require.Equal(t, "compact", policy)
	topics, err := adm.ListTopicsWithInternal(ctx, "__consumer_offsets")
	require.NoError(t, err)
	require.Len(t, topics["__consumer_offsets"].Partitions, 5)
	deleted, err := adm.DeleteGroups(ctx, "g7")
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	stop()

	address, _ = startBroker(t, dir, topic.NewFactory())
	adm = kadm.NewClient(client(t, address))
	for i := range 50 {
		got, err := adm.FetchOffsets(ctx, fmt.Sprintf("g%d", i))
		require.NoError(t, err)
		if i == 7 {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got["t"], 3)
		for p, o := range got["t"] {
			require.Equal(t, int64(100+p), o.At)
			require.Equal(t, fmt.Sprint("note ", p), o.Metadata)
		}
	}
	list, err := adm.ListGroups(ctx)
	require.NoError(t, err)
	require.Len(t, list, 49)

	_, err = adm.DeleteTopics(ctx, "t")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := adm.FetchOffsets(ctx, "g0")
		return err == nil && len(got) == 0
	}, time.Minute, 20*time.Millisecond, "offsets of a deleted topic stay")
}

// TestStaticMemberRestarts: it comes back with its instance id and no rebalance.
func TestStaticMemberRestarts(t *testing.T) {
	address, _ := startBroker(t, t.TempDir(), topic.NewFactory())
	fill(t, address, "t", 4, 40)
	ctx := t.Context()
	s := &seen{count: map[string]int{}}
	one := consumer(t, address, "g", "t", kgo.RangeBalancer(), kgo.InstanceID("i1"), kgo.SessionTimeout(30*time.Second))
	for s.all() < 40 {
		s.poll(ctx, one)
	}
	_, generation := one.GroupMetadata()
	one.CloseAllowingRebalance() // static members don't leave
	two := consumer(t, address, "g", "t", kgo.RangeBalancer(), kgo.InstanceID("i1"), kgo.SessionTimeout(30*time.Second))
	fillMore(t, address, "t", 40)
	for s.all() < 80 {
		s.poll(ctx, two)
	}
	_, again := two.GroupMetadata()
	require.Equal(t, generation, again, "a rebalance")
}
