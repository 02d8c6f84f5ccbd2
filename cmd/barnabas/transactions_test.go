package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestExactlyOnce copies a topic in transactions, record for record, while the broker is killed again and again and the copier
// is replaced: each record arrives once.
func TestExactlyOnce(t *testing.T) {
	program := filepath.Join(t.TempDir(), "barnabas")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, storage := range []string{"mmap", "sendfile"} {
		t.Run(storage, func(t *testing.T) { exactlyOnce(t, program, storage) })
	}
}

func exactlyOnce(t *testing.T, program, storage string) {
	const records, crashes = 3000, 5
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	at := "127.0.0.1:" + port(t)
	dir := t.TempDir()
	serve := func() *exec.Cmd {
		cmd := exec.Command(program, "serve", "--set", "broker.listeners=PLAINTEXT://"+at, "--set", "broker.log.dirs="+dir, "--set", "storage="+storage,
			"--set", "broker.group.initial.rebalance.delay.ms=0", "--set", "broker.offsets.topic.num.partitions=3", "--set", "broker.transaction.state.log.num.partitions=3")
		cmd.Dir = t.TempDir()
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		address(t, stdout)
		go func() { _, _ = io.Copy(io.Discard, stdout) }()
		return cmd
	}
	broker := serve()
	seed := kgo.SeedBrokers(at)
	quick := []kgo.Opt{seed, kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RecordPartitioner(kgo.RoundRobinPartitioner())}
	c, err := kgo.NewClient(append(quick, kgo.DefaultProduceTopic("in"))...)
	require.NoError(t, err)
	defer c.Close()
	_, err = kadm.NewClient(c).CreateTopics(ctx, 2, 1, nil, "in", "out")
	require.NoError(t, err)
	var batch []*kgo.Record
	for i := range records {
		batch = append(batch, kgo.StringRecord(fmt.Sprint(i)))
	}
	require.NoError(t, c.ProduceSync(ctx, batch...).FirstErr())

	// The copier copies in transactions until it is told to stop; whoever comes after it fences it.
	copying := func(ctx context.Context) {
		s, err := kgo.NewGroupTransactSession(append(quick, kgo.TransactionalID("copier"), kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("in"), kgo.DefaultProduceTopic("out"),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.SessionTimeout(6*time.Second),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))...)
		require.NoError(t, err)
		defer s.Close()
		for ctx.Err() == nil {
			fetches := s.PollRecords(ctx, 50)
			if fetches.Empty() {
				continue
			}
			if err := s.Begin(); err != nil {
				return
			}
			for _, r := range fetches.Records() {
				s.Produce(ctx, kgo.StringRecord(string(r.Value)), nil)
			}
			if _, err := s.End(context.WithoutCancel(ctx), kgo.TryCommit); err != nil {
				return // fenced, or the broker died at a bad moment: the next copier goes on
			}
		}
	}
	copiers, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; copiers.Err() == nil; n++ {
			life, end := context.WithTimeout(copiers, 3*time.Second)
			copying(life)
			end()
		}
	}()
	for i := range crashes {
		time.Sleep(time.Duration(200+150*i) * time.Millisecond)
		require.NoError(t, broker.Process.Signal(syscall.SIGKILL))
		_ = broker.Wait()
		broker = serve()
	}

	reader, err := kgo.NewClient(append(quick, kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	require.NoError(t, err)
	defer reader.Close()
	seen := map[string]int{}
	for len(seen) < records {
		fetches := reader.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%d of %d records arrived", len(seen), records)
		for _, r := range fetches.Records() {
			seen[string(r.Value)]++
			require.Equal(t, 1, seen[string(r.Value)], "record %s arrived twice", r.Value)
		}
	}
	stop()
	<-done
	// Nothing is left undecided, and nothing was read twice after the last record was seen.
	require.Eventually(t, func() bool {
		all, err := kadm.NewClient(reader).ListCommittedOffsets(ctx, "out")
		high, err2 := kadm.NewClient(reader).ListEndOffsets(ctx, "out")
		same := err == nil && err2 == nil
		all.Each(func(o kadm.ListedOffset) {
			h, _ := high.Lookup("out", o.Partition)
			same = same && h.Offset == o.Offset
		})
		return same
	}, 70*time.Second, 100*time.Millisecond, "a transaction stays open")
	fetches, cancelPoll := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancelPoll()
	require.Empty(t, reader.PollFetches(fetches).Records())
	require.NoError(t, broker.Process.Signal(syscall.SIGTERM))
	require.NoError(t, broker.Wait())
}
