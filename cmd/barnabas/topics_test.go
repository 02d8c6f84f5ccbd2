package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// process is the program as a process of its own, on a directory that outlives it.
type process struct {
	*exec.Cmd
	address string
	admin   *kadm.Client
}

func startProcess(t *testing.T, program, dir string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, "serve", "--set", "broker.listeners=PLAINTEXT://127.0.0.1:0", "--set", "broker.log.dirs="+dir)}
	p.Dir = t.TempDir()
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	p.address = address(t, out)
	client, err := kgo.NewClient(kgo.SeedBrokers(p.address))
	require.NoError(t, err)
	p.admin = kadm.NewClient(client)
	return p
}

// end ends the process by a signal, and waits for it.
func (p *process) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	p.admin.Close()
	require.NoError(t, p.Process.Signal(signal))
	err := p.Wait()
	if signal == syscall.SIGTERM {
		require.NoError(t, err)
	}
}

// TestTopicsOutliveTheProcess kills a broker while topics are being deleted (whose names look like those of directories),
// many times, and sees that what was acknowledged holds: what was created is there with its configuration, what was deleted
// is gone for good, other topics are untouched, and nothing is left over on the disk.
func TestTopicsOutliveTheProcess(t *testing.T) {
	program := filepath.Join(t.TempDir(), "barnabas")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	p := startProcess(t, program, dir)
	value, bytes := "12345678", "77777"
	_, err = p.admin.CreateTopic(ctx, 3, 1, map[string]*string{"retention.ms": &value}, "stays.b-1.c")
	require.NoError(t, err)
	_, err = p.admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.max.bytes", Value: &bytes}})
	require.NoError(t, err)
	longest := strings.Repeat("a", 249)
	for round := range 6 {
		for _, name := range []string{"a.b-1.c", longest} {
			_, err = p.admin.CreateTopic(ctx, 20, 1, nil, name)
			require.NoError(t, err, "round %d", round)
		}
		deleted := make(chan error, 1)
		go func() {
			responses, err := p.admin.DeleteTopics(ctx, "a.b-1.c", longest)
			if err == nil {
				err = responses.Error()
			}
			deleted <- err
		}()
		acknowledged := false
		select {
		case err := <-deleted:
			acknowledged = err == nil
		case <-time.After(time.Duration(round) * 4 * time.Millisecond):
		}
		p.end(t, syscall.SIGKILL)
		if !acknowledged {
			<-deleted
		}

		p = startProcess(t, program, dir)
		topics, err := p.admin.ListTopics(ctx)
		require.NoError(t, err)
		require.NoError(t, topics["stays.b-1.c"].Err)
		require.Len(t, topics["stays.b-1.c"].Partitions, 3)
		for _, part := range topics["stays.b-1.c"].Partitions {
			require.Equal(t, int32(1), int32(len(part.ISR)))
			require.NoError(t, part.Err)
		}
		configs, err := p.admin.DescribeTopicConfigs(ctx, "stays.b-1.c")
		require.NoError(t, err)
		config, err := configs.On("stays.b-1.c", nil)
		require.NoError(t, err)
		for _, c := range config.Configs {
			switch c.Key {
			case "retention.ms":
				require.Equal(t, value, c.MaybeValue())
			case "max.message.bytes":
				require.Equal(t, bytes, c.MaybeValue())
			}
		}
		for _, name := range []string{"a.b-1.c", longest} {
			if topics.Has(name) {
				require.False(t, acknowledged, "round %d: %s was deleted, and is back", round, name)
				_, err = p.admin.DeleteTopic(ctx, name)
				require.NoError(t, err)
			}
		}
		require.Eventually(t, func() bool { return len(topicDirs(t, dir)) == 3 }, time.Minute, 20*time.Millisecond,
			"round %d: left over: %v", round, topicDirs(t, dir))
	}
	p.end(t, syscall.SIGTERM)
}

// topicDirs lists the directories of partitions, but for those that only wait to be removed.
func topicDirs(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() && !strings.HasSuffix(e.Name(), "-delete") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestTopicsWithoutCoordination opens log directories without the file that says what is in them, as Apache Kafka leaves
// them: topics, ids and records are there, and new records come behind the old ones.
func TestTopicsWithoutCoordination(t *testing.T) {
	program := filepath.Join(t.TempDir(), "barnabas")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var before kadm.TopicDetails
	for round := range 2 {
		p := startProcess(t, program, dir)
		if round == 0 {
			_, err = p.admin.CreateTopic(ctx, 2, 1, nil, "kept")
			require.NoError(t, err)
			before, err = p.admin.ListTopics(ctx, "kept")
			require.NoError(t, err)
		} else {
			after, err := p.admin.ListTopics(ctx)
			require.NoError(t, err)
			require.Len(t, after, 1)
			require.Equal(t, before["kept"].ID, after["kept"].ID)
			require.Len(t, after["kept"].Partitions, 2)
			require.Greater(t, after["kept"].Partitions[1].LeaderEpoch, before["kept"].Partitions[1].LeaderEpoch)
			configs, err := p.admin.DescribeTopicConfigs(ctx, "kept")
			require.NoError(t, err)
			require.Len(t, configs, 1)
			for _, c := range configs[0].Configs {
				if c.Key == "retention.ms" {
					require.Equal(t, "-1", c.MaybeValue(), "nobody said how long records are to be kept")
				}
			}
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(p.address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, err)
		record := client.ProduceSync(ctx, &kgo.Record{Topic: "kept", Partition: 1, Value: []byte("value")})
		require.NoError(t, record.FirstErr())
		require.Equal(t, int64(round), record[0].Record.Offset)
		client.Close()
		p.end(t, syscall.SIGTERM)
		require.NoError(t, os.Remove(filepath.Join(dir, "barnabas-coordination.jsonl")))
	}
}
