package brokertest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/memory"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
	storagemmap "github.com/barnabas-mq/barnabas/storage-mmap"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roundTrip creates a topic before the client that uses it is there: clients are slow to look again for one that was missing.
func roundTrip(t testing.TB, addr, topic, value string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin, err := kadm.NewOptClient(kgo.SeedBrokers(addr))
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.CreateTopic(ctx, 1, 1, nil, topic)
	require.NoError(t, err)
	consumeNext(t, addr, topic, value, kgo.NewOffset().AtStart())
}

// consumeNext produces a record and consumes from an offset, which is to give just that record first.
func consumeNext(t testing.TB, addr, topic, value string, from kgo.Offset) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(from))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr())
	fetches := client.PollFetches(ctx)
	require.NoError(t, fetches.Err())
	require.Equal(t, value, string(fetches.Records()[0].Value))
}

func TestProduceAndConsume(t *testing.T) {
	b := testbroker.Start(t, brokertest.Log())
	roundTrip(t, b.Addr(), "t", "hello")
}

// TestSeveral runs brokers side by side: each has its own port, files and records.
func TestSeveral(t *testing.T) {
	one, other := testbroker.Start(t), testbroker.Start(t)
	require.NotEqual(t, one.Addr(), other.Addr())
	require.NotEqual(t, one.Dir(), other.Dir())
	roundTrip(t, one.Addr(), "t", "one")
	roundTrip(t, other.Addr(), "t", "other")
}

// TestRestart keeps address and records, also under another storage, and takes new properties.
func TestRestart(t *testing.T) {
	b := testbroker.Start(t)
	addr := b.Addr()
	roundTrip(t, addr, "t", "first")
	b.Restart(brokertest.Storage(storagesendfile.NewFactory()), brokertest.Property("message.max.bytes", "100"))
	require.Equal(t, addr, b.Addr())
	consumeNext(t, addr, "t", "second", kgo.NewOffset().At(1))
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("t"))
	require.NoError(t, err)
	defer client.Close()
	require.ErrorIs(t, client.ProduceSync(t.Context(), kgo.StringRecord(rand.Text()+rand.Text()+rand.Text()+rand.Text())).FirstErr(), kerr.MessageTooLarge)
}

// TestStopLeavesNothing stops early, twice, and looks for what is left.
func TestStopLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	b := testbroker.Start(t)
	b.Stop()
	b.Stop()
	goleak.VerifyNone(t, before)
	_, err := net.Dial("tcp", b.Addr())
	require.Error(t, err)
	require.FileExists(t, filepath.Join(b.Dir(), ".kafka_cleanshutdown"))
}

// TestPluginUnderTest wires a plug-in in: an offsets store that counts.
func TestPluginUnderTest(t *testing.T) {
	var loads atomic.Int32
	factory := plugin.NewFactory("mine", "an offsets store under test", func() struct{} { return struct{}{} },
		func(struct{}, offsets.Settings) (offsets.Store, error) { return &counted{memory.New(), &loads}, nil })
	b := testbroker.Start(t, brokertest.Offsets(factory))
	admin, err := kadm.NewOptClient(kgo.SeedBrokers(b.Addr()))
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	committed := kadm.Offsets{}
	committed.Add(kadm.Offset{Topic: "t", At: 7, LeaderEpoch: -1})
	require.NoError(t, admin.CommitAllOffsets(t.Context(), "g", committed))
	require.EqualValues(t, 1, loads.Load())
}

// counted counts how often the broker loads a shard.
type counted struct {
	offsets.Store
	loads *atomic.Int32
}

func (c *counted) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	c.loads.Add(1)
	return c.Store.Load(ctx, shard, epoch, visit)
}

// BenchmarkStart is a start and a stop. It is to stay below 50 ms.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		testbroker.Start(b).Stop()
	}
}

// BenchmarkProduceAndConsume is a whole test: start, produce, consume, stop. It is to stay below 200 ms.
func BenchmarkProduceAndConsume(b *testing.B) {
	n := 0
	for b.Loop() {
		one := testbroker.Start(b)
		n++
		roundTrip(b, one.Addr(), "t", fmt.Sprint(n))
		one.Stop()
	}
}

// recorder is a test that notes how it fails instead of failing.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Fatalf(format string, a ...any) {
	r.failed = fmt.Sprintf(format, a...)
	runtime.Goexit()
}

// TestRefused wants a broker that can't be started to end the test, to say why, and to leave nothing behind.
func TestRefused(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	in := testbroker.InTheBox
	taken := testbroker.Start(t)
	for name, tt := range map[string]struct {
		options []brokertest.Option
		why     string
	}{
		"nothing named":     {nil, "plugins/sdk/testbroker"},
		"unknown property":  {append(in(), brokertest.Property("log.dir.s", "x")), "log.dir.s"},
		"invalid property":  {append(in(), brokertest.Property("num.partitions", "0")), "num.partitions"},
		"unknown option":    {append(in(), brokertest.Storage(storagemmap.NewFactory(), "max_grow: 1MiB")), "max_growth"},
		"options no YAML":   {append(in(), brokertest.Storage(storagemmap.NewFactory(), "{")), "mmap"},
		"directory no such": {append(in(), brokertest.Dir(blocked)), blocked},
		"directory in use":  {append(in(), brokertest.Dir(taken.Dir())), taken.Dir()},
		"port in use":       {append(in(), brokertest.Property("listeners", "PLAINTEXT://"+taken.Addr())), "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				brokertest.Start(r, tt.options...)
			}()
			<-done
			require.Contains(t, r.failed, tt.why)
		})
	}
}
