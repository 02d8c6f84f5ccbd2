package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/gateway"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/fnv1a"
	"github.com/barnabas-mq/barnabas/plugins/remote"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

const (
	loadRecords    = 100_000
	loadBatch      = 500
	loadPartitions = 6
	killEvery      = 25_000
	// withoutPlugin is how many records are sent before the next life of the plug-in is waited for.
	withoutPlugin = 8_000
)

// TestKilledUnderLoad kills the plug-in again and again while producers send 100,000 records through the gateway: each record is
// there once, and where the partitioner wants it. With `reject` producers are told to try again meanwhile, with a fallback they
// notice nothing.
func TestKilledUnderLoad(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "faulty")
	command(t, ".", "go", "build", "-o", bin, "../../../../plugins/remote/faulty")
	o := remote.Defaults()
	o.Command, o.Args, o.StartTimeout = bin, []string{"good"}, 30*time.Second

	t.Run("reject", func(t *testing.T) {
		l := newLoad(t, remote.NewPartitioner(o, quiet, nil))
		l.run()
		require.NotZero(t, l.refused.Load(), "somebody must have noticed")
		for n, at := range l.places() {
			require.Equal(t, ofPlugin(n), at, "record %d", n)
		}
	})
	t.Run("fallback", func(t *testing.T) {
		o := o
		o.OnFailure = "fnv1a"
		l := newLoad(t, remote.NewPartitioner(o, quiet, fnv1a.New()))
		l.run()
		require.Zero(t, l.refused.Load(), "nobody is to notice")
		byPlugin, byFallback := 0, 0
		for n, at := range l.places() {
			switch want, other := ofPlugin(n), ofFallback(n); {
			case want == other:
				require.Equal(t, want, at, "record %d", n)
			case at == want:
				byPlugin++
			default:
				require.Equal(t, other, at, "record %d", n)
				byFallback++
			}
		}
		require.NotZero(t, byFallback)
		require.Greater(t, byPlugin, byFallback, "the plug-in answers again after each kill")
	})
}

func loadKey(n int) string { return fmt.Sprintf("customer-%d", n) }

// ofPlugin is where the plug-in puts a record, ofFallback where fnv1a does: for half of the keys that differs.
func ofPlugin(n int) int32 { return int32(hashed(n) % loadPartitions) }

func ofFallback(n int) int32 {
	at := int32(hashed(n)) % loadPartitions
	return max(at, -at)
}

func hashed(n int) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(loadKey(n)))
	return h.Sum32()
}

// load is a broker, a gateway, and producers of numbered records.
type load struct {
	t           *testing.T
	partitioner *remote.Partitioner
	addr, url   string

	refused atomic.Int64 // requests that were to be tried again
}

func newLoad(t *testing.T, p *remote.Partitioner) *load {
	broker := testbroker.Start(t)
	admin, err := kadm.NewOptClient(kgo.SeedBrokers(broker.Addr()))
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.CreateTopic(t.Context(), loadPartitions, 1, nil, "t")
	require.NoError(t, err)
	options := gateway.DefaultOptions()
	options.Listen = "127.0.0.1:0"
	g, err := gateway.New(options, gateway.Settings{Settings: plugin.Settings{Logger: quiet}, Brokers: []string{broker.Addr()}, Partitioner: p})
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	require.NoError(t, g.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, g.Stop(ctx))
		assert.NoError(t, p.Stop(ctx))
	})
	return &load{t: t, partitioner: p, addr: broker.Addr(), url: "http://" + g.Addr().String() + "/topics/t"}
}

// run produces everything, and kills the plug-in four times on the way.
func (l *load) run() {
	batches := make(chan int)
	var producers sync.WaitGroup
	defer producers.Wait()
	defer close(batches)
	for range 4 {
		producers.Go(func() {
			for first := range batches {
				l.produce(first)
			}
		})
	}
	for first := 0; first < loadRecords; first += loadBatch {
		batches <- first
		switch first % killEvery {
		case killEvery / 2:
			pid := l.pid()
			require.NotZero(l.t, pid)
			require.NoError(l.t, syscall.Kill(pid, syscall.SIGKILL))
		case killEvery/2 + withoutPlugin:
			require.Eventually(l.t, func() bool { return l.pid() != 0 }, time.Minute, 5*time.Millisecond)
		}
	}
}

// pid is the plug-in's process, 0 when there is none.
func (l *load) pid() int {
	_, _, pid := l.partitioner.Describe()
	return pid
}

// produce sends a batch until it is acknowledged. Only an error that says that trying again helps is allowed before that.
func (l *load) produce(first int) {
	type record struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	var body struct {
		Records []record `json:"records"`
	}
	for n := first; n < first+loadBatch; n++ {
		body.Records = append(body.Records, record{[]byte(loadKey(n)), []byte(strconv.Itoa(n))})
	}
	encoded, err := json.Marshal(body)
	if !assert.NoError(l.t, err) {
		return
	}
	for l.t.Context().Err() == nil {
		var answer struct {
			Code    int    `json:"error_code"`
			Message string `json:"message"`
			Offsets []struct {
				Code *int `json:"error_code"`
			} `json:"offsets"`
		}
		response, err := http.Post(l.url, "application/vnd.kafka.binary.v2+json", bytes.NewReader(encoded))
		if !assert.NoError(l.t, err) {
			return
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if !assert.NoError(l.t, err) {
			return
		}
		if response.StatusCode == http.StatusOK {
			assert.Len(l.t, answer.Offsets, loadBatch)
			for _, o := range answer.Offsets {
				assert.Nil(l.t, o.Code)
			}
			return
		}
		l.refused.Add(1)
		if !assert.Equal(l.t, 50003, answer.Code, "want a retriable error, got: %s", answer.Message) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// places is the partition in which each record is, which has to be one.
func (l *load) places() []int32 {
	l.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(l.addr), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(l.t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(l.t.Context(), "t")
	require.NoError(l.t, err)
	var stored int64
	ends.Each(func(o kadm.ListedOffset) { stored += o.Offset })
	require.EqualValues(l.t, loadRecords, stored)
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	at := make([]int32, loadRecords)
	for n := range at {
		at[n] = -1
	}
	for read := int64(0); read < stored; {
		fetches := client.PollFetches(ctx)
		require.NoError(l.t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := strconv.Atoi(string(r.Value))
			require.NoError(l.t, err)
			require.Equal(l.t, loadKey(n), string(r.Key))
			require.EqualValues(l.t, -1, at[n], "record %d is there twice", n)
			at[n] = r.Partition
			read++
		})
	}
	require.NotContains(l.t, at, int32(-1))
	return at
}
