package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestDevClusterWrongly(t *testing.T) {
	for args, want := range map[string]string{
		"--coordination raft": "want zookeeper or memberlist",
		"--brokers 0":         "want 1 to 100",
		"--port 65534":        "want ports",
		"--restart -1s":       "want a positive duration",
		"more":                "wants 0 arguments",
		"--coordination memberlist --zookeeper 127.0.0.1:2181/x": "there is none",
	} {
		got := barnabas(t, nil, append([]string{"dev", "cluster"}, strings.Fields(args)...)...)
		assert.Equal(t, exitWrong, got.code, args)
		assert.Contains(t, got.err, want, args)
	}
}

// lines reads what a process prints, until it has printed a line that matches.
type lines struct {
	t   *testing.T
	all []string
	new chan string
}

func readLines(t *testing.T, r io.Reader) *lines {
	l := &lines{t: t, new: make(chan string, 1000)}
	go func() { // ends with the process
		defer close(l.new)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.new <- s.Text()
		}
	}()
	return l
}

// until returns what the pattern's groups matched.
func (l *lines) until(pattern string) []string {
	l.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case line, ok := <-l.new:
			l.all = append(l.all, line)
			if found := regexp.MustCompile(pattern).FindStringSubmatch(line); found != nil {
				return found[1:]
			}
			require.True(l.t, ok, "no line matches %s in\n%s", pattern, strings.Join(l.all, "\n"))
		case <-deadline:
			require.FailNow(l.t, "waited long enough", "no line matches %s in\n%s", pattern, strings.Join(l.all, "\n"))
		}
	}
}

// devRun is `barnabas dev cluster` as a process.
type devRun struct {
	*lines
	cmd     *exec.Cmd
	program string
	dir     string
	pids    []int // ZooKeeper's, if there is one, and those of the brokers
	addrs   []string
}

// runDev starts a cluster whose processes have these names.
func runDev(t *testing.T, names []string, args ...string) *devRun {
	r := &devRun{program: filepath.Join(t.TempDir(), "barnabas"), dir: filepath.Join(t.TempDir(), "cluster")}
	out, err := exec.Command("go", "build", "-o", r.program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	r.cmd = exec.Command(r.program, append([]string{"dev", "cluster", "--port", "0", "--dir", r.dir, "--restart", "10s", "--set", "broker.num.partitions=3"}, args...)...)
	r.cmd.Stderr = os.Stderr
	stdout, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		for _, pid := range r.pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	r.lines = readLines(t, stdout)
	for _, name := range names {
		got := r.until(name + ` +(\S+) +(\d+) +` + regexp.QuoteMeta(r.dir))
		pid, err := strconv.Atoi(got[1])
		require.NoError(t, err)
		r.pids = append(r.pids, pid)
		if strings.HasPrefix(name, "broker") {
			r.addrs = append(r.addrs, got[0])
		}
	}
	r.until(`alive: 1,2,3; controller: \d; 0 partitions`)
	return r
}

// interrupt ends the cluster as Ctrl-C does, and sees that nothing is left of it.
func (r *devRun) interrupt() {
	require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGINT))
	r.until("everything is kept in " + regexp.QuoteMeta(r.dir))
	require.NoError(r.t, r.cmd.Wait())
	for _, pid := range r.pids {
		require.ErrorIs(r.t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is left", pid)
	}
	require.FileExists(r.t, filepath.Join(r.dir, "broker-2.log"))
	require.FileExists(r.t, filepath.Join(r.dir, "data-3", ".kafka_cleanshutdown"), "broker 3 was not stopped cleanly")
}

// loseSecond kills broker 2, whose process is pids[i], writes without it, and waits until it is back.
func (r *devRun) loseSecond(ctx context.Context, i int) {
	t := r.t
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs...), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"), kgo.MetadataMinAge(100*time.Millisecond))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord("before")).FirstErr())
	r.until(`3 partitions, 3 with all replicas in sync`)
	require.NoError(t, syscall.Kill(r.pids[i], syscall.SIGKILL))
	r.until(`broker 2 \(process \d+\) has ended: signal: killed`)
	r.until(`alive: 1,3; controller: [13]; 3 partitions`)
	for range 20 {
		require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord("without it")).FirstErr())
	}
	r.started(2, i)
	r.until(`alive: 1,2,3; controller: \d; 3 partitions, 3 with all replicas in sync`)
}

// started waits until a broker, whose process was pids[i], is started again.
func (r *devRun) started(broker, i int) {
	again, err := strconv.Atoi(r.until(fmt.Sprintf(`broker %d is started again: process (\d+)`, broker))[0])
	require.NoError(r.t, err)
	r.pids[i] = again
}

// TestDevClusterWithoutZooKeeper runs a cluster whose brokers agree by themselves, and loses one that is started again.
func TestDevClusterWithoutZooKeeper(t *testing.T) {
	r := runDev(t, []string{"broker 1", "broker 2", "broker 3"}, "--coordination", "memberlist")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r.loseSecond(ctx, 1)
	r.interrupt()
}

// TestDevCluster runs a cluster as people do, loses a broker that it starts again, and finds that nothing is left of it but
// what was asked for.
func TestDevCluster(t *testing.T) {
	r := runDev(t, []string{"zookeeper", "broker 1", "broker 2", "broker 3"}, "--zookeeper-port", "0", "--set", "election.zookeeper.session_timeout=3s")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r.loseSecond(ctx, 2)

	on := func(args ...string) string {
		out, err := exec.Command(r.program, append(args, "--timeout", "30s", "-b", strings.Join(r.addrs, ","))...).CombinedOutput()
		require.NoError(t, err, "%s: %s", strings.Join(args, " "), out)
		return string(out)
	}
	require.Contains(t, on("cluster", "health", "--brokers", "3", "--wait", "1m"), "healthy: 3 brokers, 3 partitions")

	// What the cluster's commands do to it.
	on("topic", "create", "moving", "-p", "4", "-r", "2")
	require.Contains(t, on("topic", "reassign", "moving", "--replicas", "0=3,1", "--replicas", "1=1,3", "--throttle", "100MiB"), "done: no reassignment is going on")
	soon := func(pattern string, args ...string) { // each broker hears of it a moment later than the controller
		t.Helper()
		require.Eventually(t, func() bool { return regexp.MustCompile(pattern).MatchString(on(args...)) }, time.Minute, 100*time.Millisecond)
	}
	soon(`0 +[13] +\d+ +3,1 +`, "topic", "describe", "moving")
	require.Eventually(t, func() bool { return !strings.Contains(on("topic", "describe", "moving"), "throttled") }, time.Minute, 100*time.Millisecond, "the throttle is left")
	require.Contains(t, on("topic", "reassign", "moving", "--brokers", "1,2", "-r", "1"), "done")
	require.Contains(t, on("topic", "reassign", "moving", "-r", "3", "--no-wait"), "begun")
	require.Contains(t, on("topic", "reassign", "--watch"), "done")
	on("topic", "elect-leaders")
	on("cluster", "health", "--wait", "1m")
	drained := on("broker", "drain", "3", "--pid", strconv.Itoa(r.pids[3]))
	require.Contains(t, drained, "broker 3 leads nothing any more")
	require.Contains(t, drained, "broker 3 is down")
	r.until(`broker 3 \(process \d+\) has ended: exit status 0`)
	r.started(3, 3)
	on("cluster", "health", "--brokers", "3", "--wait", "1m")
	on("topic", "elect-leaders")
	soon(`^healthy: 3 brokers`, "cluster", "health") // and nothing to tell besides

	r.interrupt()
}
