package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// journey is a cluster that changes its coordination while clients go on, and what they have seen of it.
type journey struct {
	t        *testing.T
	brokers  []string    // their addresses
	data     string      // the log directory, of one broker
	producer *kgo.Client // one for all the way, idempotent
	sent     int
	read     int
	cluster  string // its id
	ids      map[string]kadm.TopicID
	epochs   map[int32]int32
	latest   int64 // the id of the producer that came last
}

// newJourney begins one with so many brokers.
func newJourney(t *testing.T, brokers int) *journey {
	t.Helper()
	j := &journey{t: t, data: filepath.Join(t.TempDir(), "data"), ids: map[string]kadm.TopicID{}, epochs: map[int32]int32{}, latest: -1}
	for _, port := range freePorts(t, brokers) {
		j.brokers = append(j.brokers, "127.0.0.1:"+port)
	}
	return j
}

// yaml is the configuration of the one broker.
func (j *journey) yaml(election string) string {
	return write(j.t, fmt.Sprintf("broker:\n  broker.id: 1\n  listeners: PLAINTEXT://%s\n  log.dirs: %s\n  group.initial.rebalance.delay.ms: 0\n"+
		"  offsets.topic.replication.factor: 1\n  offsets.topic.num.partitions: 3\nelection: %s\n", j.brokers[0], j.data, election))
}

// addr is where clients ask first.
func (j *journey) addr() string { return strings.Join(j.brokers, ",") }

// visit starts the brokers, sees that everything is there that was, goes on a little, and stops them.
func (j *journey) visit(files ...string) {
	j.t.Helper()
	j.stay(files, func() {})
}

// stay is a visit on which something else is done, too, with all brokers running.
func (j *journey) stay(files []string, do func()) {
	j.t.Helper()
	var serves []func() string
	var stopping sync.WaitGroup
	for _, file := range files {
		serving, stop := launch(j.t, source{file: file})
		serves = append(serves, serving)
		defer stopping.Wait()
		defer func() { stopping.Go(stop) }() // all at once: the last of several has nobody to hand over to
	}
	for _, serving := range serves {
		serving()
	}
	must(j.t, "", "cluster", "health", "--brokers", strconv.Itoa(len(files)), "--wait", "1m", "-b", j.addr())
	do()
	ctx, cancel := context.WithTimeout(j.t.Context(), 2*time.Minute)
	defer cancel()
	if j.producer == nil {
		must(j.t, "", "topic", "create", "t", "-p", "3", "-b", j.addr(), "-c", "retention.ms=123456789")
		must(j.t, "", "topic", "create", "gone", "-b", j.addr())
		must(j.t, "", "topic", "delete", "gone", "-b", j.addr())
		var err error
		j.producer, err = kgo.NewClient(kgo.SeedBrokers(j.brokers...), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(j.t, err)
		j.t.Cleanup(j.producer.Close)
	}
	for range 30 {
		r := &kgo.Record{Partition: int32(j.sent % 3), Value: fmt.Appendf(nil, "%d", j.sent)}
		require.NoError(j.t, j.producer.ProduceSync(ctx, r).FirstErr())
		j.sent++
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(j.brokers...), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(j.t, err)
	defer consumer.Close()
	next := map[int32]int{}
	for n := range 3 {
		next[int32(n)] = j.read + (n-j.read%3+3)%3
	}
	for j.read < j.sent {
		fetches := consumer.PollFetches(ctx)
		require.NoError(j.t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			require.Equal(j.t, fmt.Sprint(next[r.Partition]), string(r.Value), "readers go on where they were, each record once and in order")
			next[r.Partition] += 3
			j.read++
		})
		require.NoError(j.t, consumer.CommitUncommittedOffsets(ctx))
	}
	id, _, err := consumer.ProducerID(ctx)
	require.NoError(j.t, err)
	require.Greater(j.t, id, j.latest, "no producer gets an id that another one has had")
	j.latest = id
	admin := kadm.NewClient(consumer)
	brokers, err := admin.BrokerMetadata(ctx)
	require.NoError(j.t, err)
	require.Contains(j.t, []string{"", brokers.Cluster}, j.cluster)
	j.cluster = brokers.Cluster
	topics, err := admin.ListTopicsWithInternal(ctx)
	require.NoError(j.t, err)
	require.NotContains(j.t, topics.Names(), "gone")
	for _, d := range topics {
		if id, ok := j.ids[d.Topic]; ok {
			require.Equal(j.t, id, d.ID)
		}
		j.ids[d.Topic] = d.ID
	}
	for n, p := range topics["t"].Partitions {
		require.Greater(j.t, p.LeaderEpoch, j.epochs[n]-1)
		j.epochs[n] = p.LeaderEpoch
	}
	configs, err := admin.DescribeTopicConfigs(ctx, "t")
	require.NoError(j.t, err)
	found := false
	for _, c := range configs[0].Configs {
		found = found || c.Key == "retention.ms" && c.MaybeValue() == "123456789"
	}
	require.True(j.t, found)
}

// TestCoordinationIsSwapped takes a broker from standalone to ZooKeeper and back, with data, a group, a configuration and a producer that
// goes on.
func TestCoordinationIsSwapped(t *testing.T) {
	ensemble := zktest.New(t, 1)
	j := newJourney(t, 1)
	alone := j.yaml("standalone")
	zookeeper := j.yaml(fmt.Sprintf("{zookeeper: {connect: %s/swap, session_timeout: 10s}}", ensemble.Connect()))
	j.visit(alone)

	out := must(t, "", "coordination", "copy", "--from", alone, "--to", zookeeper, "--dry-run")
	require.Contains(t, out, "nothing: --dry-run")
	out = must(t, "", "coordination", "copy", "--from", alone, "--to", zookeeper)
	require.Contains(t, out, "2 topics, ")
	j.visit(zookeeper)

	got := barnabas(t, nil, "coordination", "copy", "--from", zookeeper, "--to", alone)
	require.Equal(t, exitFailed, got.code, got.out)
	require.Contains(t, got.err, "--replace takes its place")
	must(t, "", "coordination", "copy", "--from", zookeeper, "--to", alone, "--replace")
	j.visit(alone)

	got = barnabas(t, nil, "coordination", "copy", "--from", zookeeper, "--to", alone, "--replace")
	require.Equal(t, exitFailed, got.code, "what is there has gone on")
	require.Contains(t, got.err, "has gone on")
	must(t, "", "coordination", "copy", "--from", alone, "--to", zookeeper, "--replace")
	j.visit(zookeeper)

	memberlist := j.yaml(fmt.Sprintf("{memberlist: {profile: local, bind: '127.0.0.1:%s'}}", port(t)))
	must(t, "", "coordination", "copy", "--from", zookeeper, "--to", memberlist)
	j.visit(memberlist)
	must(t, "", "coordination", "copy", "--from", memberlist, "--to", zookeeper, "--replace")
	j.visit(zookeeper)
	must(t, "", "coordination", "copy", "--from", zookeeper, "--to", memberlist, "--replace")
	j.visit(memberlist)
	must(t, "", "coordination", "copy", "--from", memberlist, "--to", alone, "--replace")
	j.visit(alone)
	must(t, "", "coordination", "copy", "--from", alone, "--to", zookeeper, "--replace")

	// By way of a file, elsewhere.
	dump := filepath.Join(t.TempDir(), "state.jsonl")
	must(t, "", "coordination", "export", dump, "-c", zookeeper)
	elsewhere := j.yaml(fmt.Sprintf("{zookeeper: {connect: %s/other, session_timeout: 10s}}", ensemble.Connect()))
	must(t, "", "coordination", "import", dump, "-c", elsewhere)
	j.visit(elsewhere)
}

// TestStandaloneGrowsUp makes a broker that was alone the first of three that agree among themselves.
func TestStandaloneGrowsUp(t *testing.T) {
	j := newJourney(t, 1)
	first := "127.0.0.1:" + port(t)
	alone, together := j.yaml("standalone"), j.yaml("{memberlist: {profile: local, bind: '"+first+"'}}")
	j.visit(alone)
	must(t, "", "coordination", "copy", "--from", alone, "--to", together)
	_, stop := running(t, source{file: together})
	var stops []func()
	for id := 2; id <= 3; id++ {
		next := j.yaml("{memberlist: {profile: local, bind: '127.0.0.1:" + port(t) + "', join: ['" + first + "']}}")
		_, stop := running(t, source{file: next, sets: []string{fmt.Sprintf("broker.broker.id=%d", id), "broker.log.dirs=" + t.TempDir() + "/data", "broker.listeners=PLAINTEXT://127.0.0.1:0"}})
		stops = append(stops, stop)
	}
	must(t, "", "topic", "reassign", "--replication-factor", "3", "-b", j.addr())
	must(t, "", "cluster", "health", "--brokers", "3", "--wait", "1m", "-b", j.addr())
	brokers := must(t, "", "cluster", "describe", "-b", j.addr())
	backup := filepath.Join(t.TempDir(), "backup.jsonl")
	must(t, "", "coordination", "backup", backup, "-c", together)
	stop()
	var others []string
	for _, line := range strings.Split(brokers, "\n") {
		for _, field := range strings.Fields(line) {
			if strings.HasPrefix(field, "127.0.0.1:") && field != j.addr() {
				others = append(others, field)
			}
		}
	}
	require.Len(t, others, 2, brokers)
	client, err := kgo.NewClient(kgo.SeedBrokers(others...), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seen := map[string]bool{}
	for len(seen) < j.sent {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			require.False(t, seen[string(r.Value)])
			seen[string(r.Value)] = true
		})
	}
	running(t, source{file: together}) // which alone votes: without it the others would wait for a majority before they stop
	for _, stop := range stops {
		stop()
	}
}

// TestRestore brings a cluster back whose coordination is lost, from a backup that was taken while the broker ran.
func TestRestore(t *testing.T) {
	j := newJourney(t, 1)
	file := j.yaml("standalone")
	j.visit(file)
	backup := filepath.Join(t.TempDir(), "backup.jsonl")
	addr, stop := running(t, source{file: file})
	must(t, "", "coordination", "backup", backup, "-c", file)
	for _, command := range [][]string{{"export", backup + ".2", "-c", file}, {"restore", backup, "-c", file, "--replace"}} {
		got := barnabas(t, nil, append([]string{"coordination"}, command...)...)
		require.Equal(t, exitFailed, got.code, "the broker runs")
		require.Contains(t, got.err, "locked by another broker")
	}
	must(t, "", "topic", "create", "later", "-b", addr)
	stop()
	info, err := os.Stat(backup)
	require.NoError(t, err)
	require.Zero(t, info.Mode()&0o077, "it may hold secrets")

	require.NoError(t, os.Remove(filepath.Join(j.data, "barnabas-coordination.jsonl")))
	got := barnabas(t, nil, "coordination", "import", backup, "-c", file)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "coordination restore")
	got = barnabas(t, nil, "coordination", "restore", backup, "-c", file)
	require.Equal(t, exitOK, got.code, got.err)
	require.Contains(t, got.err, "is lost")
	require.Contains(t, got.out, "later-0", "a log that nobody will serve")
	j.visit(file)
	require.GreaterOrEqual(t, j.epochs[0], int32(1_000_000), "far above what it was")
}

// TestCoordinationCommandsRefuse asks for what can't be done.
func TestCoordinationCommandsRefuse(t *testing.T) {
	yaml := func(data string) string {
		return write(t, "broker: {broker.id: 1, log.dirs: "+data+", listeners: 'PLAINTEXT://127.0.0.1:0'}\n")
	}
	empty := yaml(t.TempDir())
	d := exampleDump()
	state := filepath.Join(t.TempDir(), "state.jsonl")
	require.NoError(t, writeFile(state, func(w io.Writer) error {
		return election.WriteDump(w, election.DumpInfo{Source: "zookeeper", Taken: time.Unix(1, 0)}, d)
	}))
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "meta.properties"), []byte("version=0\nbroker.id=1\ncluster.id=AnotherClusterAltogethe\n"), 0o644))
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{exitWrong, "--from and --to", []string{"copy"}},
		{exitWrong, "no such file", []string{"copy", "--from", "nothing.yaml", "--to", empty}},
		{exitWrong, "unknown", []string{"copy", "--from", write(t, "elektion: x"), "--to", empty}},
		{exitFailed, "coordination is empty", []string{"copy", "--from", empty, "--to", yaml(t.TempDir())}},
		{exitFailed, "coordination is empty", []string{"backup", state + ".2", "-c", empty}},
		{exitWrong, "keeps its state in one place", []string{"export", state + ".2", "-c", empty, "--with", empty}},
		{exitWrong, "exists", []string{"export", state, "-c", empty}},
		{exitWrong, "1 arguments", []string{"export", "-c", empty}},
		{exitWrong, "no such file", []string{"import", state + ".2", "-c", empty}},
		{exitFailed, "its first line", []string{"import", empty, "-c", empty}},
		{exitFailed, "is damaged", []string{"import", write(t, strings.Replace(string(text), `"leader":2`, `"leader":1`, 1)), "-c", empty}},
		{exitFailed, "the file ends", []string{"restore", write(t, string(text[:len(text)-9])), "-c", empty}},
		{exitFailed, "1 of 2 partitions would have no leader", []string{"import", state, "-c", empty}},
		{exitFailed, "of cluster AnotherClusterAltogethe", []string{"import", state, "-c", yaml(foreign), "--force"}},
		{exitOK, "", []string{"import", state, "-c", empty, "--force", "--dry-run"}},
		{exitOK, "", []string{"import", state, "-c", empty, "--force"}},
		{exitFailed, "coordination is not empty", []string{"import", state, "-c", empty, "--force"}},
		{exitOK, "", []string{"import", state, "-c", empty, "--force", "--replace"}},
	} {
		got := barnabas(t, nil, append([]string{"coordination"}, tc.args...)...)
		require.Equal(t, tc.code, got.code, "%v: %s", tc.args, got.err)
		require.Contains(t, got.err, tc.want, "%v", tc.args)
		require.NotContains(t, got.err, "panic")
	}
}

func exampleDump() election.Dump {
	part := func(replica int32) election.Partition {
		return election.Partition{Assignment: election.Assignment{Replicas: []int32{replica}},
			State: &election.PartitionState{Leader: replica, LeaderEpoch: 1, ISR: []int32{replica}, ControllerEpoch: 1}}
	}
	return election.Dump{ClusterID: "QmFybmFiYXNCYXJuYWJhcw", ControllerEpoch: 1, BrokerEpoch: 1,
		Topics: []election.Topic{{Name: "t", ID: election.TopicID{1}, Partitions: []election.Partition{part(1), part(2)}}}}
}
