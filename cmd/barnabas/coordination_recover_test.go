package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// trio is a cluster of three brokers on memberlist, in this process.
type trio struct {
	t       *testing.T
	clients []string // where clients reach each
	dirs    []string
	files   []string
	stops   []func()
}

func newTrio(t *testing.T) *trio {
	c := &trio{t: t, stops: make([]func(), 3)}
	ports := freePorts(t, 6)
	var join []string
	for _, p := range ports[3:] {
		join = append(join, "127.0.0.1:"+p)
	}
	for i := range 3 {
		c.clients = append(c.clients, "127.0.0.1:"+ports[i])
		c.dirs = append(c.dirs, filepath.Join(t.TempDir(), "data"))
		c.files = append(c.files, write(t, fmt.Sprintf("broker:\n  broker.id: %d\n  listeners: PLAINTEXT://%s\n  log.dirs: %s\n  group.initial.rebalance.delay.ms: 0\n"+
			"  offsets.topic.num.partitions: 3\nelection: {memberlist: {profile: local, bind: '%s', join: ['%s']}}\n", i+1, c.clients[i], c.dirs[i], join[i], strings.Join(join, "', '"))))
	}
	return c
}

// start starts brokers, which may need one another to come up.
func (c *trio) start(brokers ...int) {
	c.t.Helper()
	type started struct {
		broker int
		stop   func()
	}
	all := make(chan started)
	for _, n := range brokers {
		go func() {
			_, stop := running(c.t, source{file: c.files[n]})
			all <- started{n, stop}
		}()
	}
	for range brokers {
		select {
		case s := <-all:
			c.stops[s.broker] = s.stop
		case <-time.After(2 * time.Minute):
			require.Fail(c.t, "a broker doesn't start")
		}
	}
}

func (c *trio) produce(n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.clients...), kgo.DefaultProduceTopic("t"), kgo.RecordDeliveryTimeout(time.Minute))
	require.NoError(c.t, err)
	defer client.Close()
	for i := range n {
		require.NoError(c.t, client.ProduceSync(ctx, &kgo.Record{Key: fmt.Append(nil, i), Value: []byte("v")}).FirstErr())
	}
}

// holds reads so many records.
func (c *trio) holds(n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.clients...), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(c.t, err)
	defer client.Close()
	seen := 0
	for seen < n {
		fetches := client.PollFetches(ctx)
		require.NoError(c.t, fetches.Err())
		seen += fetches.NumRecords()
	}
	require.Equal(c.t, n, seen)
}

// TestRecoverCommand loses the stores of two of three brokers, and goes on with what the third has: topics, records and clients.
func TestRecoverCommand(t *testing.T) {
	c := newTrio(t)
	c.start(0, 1, 2)
	must(t, "", "topic", "create", "t", "-p", "6", "-r", "3", "-b", c.clients[0], "-c", "retention.ms=123456789")
	must(t, "", "cluster", "health", "--brokers", "3", "--wait", "1m", "-b", c.clients[0])
	c.produce(60)
	run := func(args ...string) result { return barnabas(t, nil, append([]string{"coordination"}, args...)...) }

	got := run("recover", "-c", c.files[0], "--accept-loss")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "locked by another broker", "it runs")
	c.stops[0]()
	got = run("recover", "-c", c.files[0], "--accept-loss")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "refused", "the others are a majority")

	// Two stop, one after the other: the second when there is nobody left to decide anything.
	c.stops[1]()
	begin := time.Now()
	c.stops[2]()
	t.Logf("without a majority a broker stops in %v", time.Since(begin).Round(time.Millisecond))
	got = run("recover", "-c", c.files[0], "--with", c.files[1], "--accept-loss")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "refused", "a majority of the stores is there, and that of the second has more")
	for _, dir := range c.dirs[1:] {
		require.NoError(t, os.RemoveAll(dir+".coordination"))
	}

	backup := filepath.Join(t.TempDir(), "backup")
	got = run("recover", "-c", c.files[0], "--backup", backup)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "nothing was changed")
	require.Contains(t, got.err, "add --accept-loss")
	require.NoDirExists(t, backup)
	got = run("recover", "-c", c.files[0], "--backup", filepath.Join(backup, "no", "such"), "--accept-loss")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "no backup could be made, and so nothing was changed")
	got = run("recover", "-c", c.files[0], "--backup", backup, "--accept-loss")
	require.Equal(t, exitOK, got.code, got.err)
	require.Contains(t, got.err, "is lost, and what that was isn't known")
	require.Contains(t, got.out, backup)
	require.Equal(t, 2, strings.Count(got.out, "voted, too"), got.out)
	require.DirExists(t, filepath.Join(backup, "wal"))

	c.start(0)
	c.start(1, 2)
	must(t, "", "cluster", "health", "--brokers", "3", "--wait", "1m", "-b", c.clients[0])
	for _, broker := range []string{"2", "3"} {
		require.Eventually(t, func() bool {
			got = run("promote", broker, "-c", c.files[0])
			return got.code == exitOK
		}, time.Minute, 100*time.Millisecond, "%s", &got.err)
	}
	described := must(t, "", "topic", "describe", "t", "-b", c.clients[1])
	require.Contains(t, described, "123456789")
	c.produce(40)
	c.holds(100)
	status := run("status", "-c", c.files[1])
	require.Equal(t, exitOK, status.code, status.err)
	assert.Regexp(t, `voters +3, of which 1 may fail`, status.out)
	assert.Regexp(t, `epoch 1[0-9]{6}`, status.out, "far above what it was")

	got = run("reset", "-c", c.files[1])
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "locked by another broker")
}

// TestRecoverWrongly asks for what makes no sense.
func TestRecoverWrongly(t *testing.T) {
	alone := write(t, fmt.Sprintf("broker: {log.dirs: %s}\nelection: standalone\n", t.TempDir()))
	nothing := write(t, fmt.Sprintf("broker: {broker.id: 1, listeners: 'PLAINTEXT://127.0.0.1:0', log.dirs: %s}\nelection: memberlist\n", t.TempDir()))
	for _, command := range []string{"recover", "reset"} {
		got := barnabas(t, nil, "coordination", command, "-c", alone)
		assert.Equal(t, exitWrong, got.code)
		assert.Contains(t, got.err, "agree through standalone")
		got = barnabas(t, nil, "coordination", command, "-c", nothing, "--accept-loss")
		assert.Equal(t, exitFailed, got.code)
		assert.Contains(t, got.err, "coordination is empty")
	}
}
