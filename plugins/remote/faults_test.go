package remote_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/remote"
)

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ") // dead, and not yet fetched by whoever inherited it
	}, time.Minute, 10*time.Millisecond, "process %d lives", pid)
}

func batch(n int) *partitioner.Batch {
	b := &partitioner.Batch{Topic: "orders", Partitions: 12}
	for i := range n {
		b.Records = append(b.Records, partitioner.Record{Key: fmt.Appendf(nil, "customer-%06d", i), Value: make([]byte, 80)})
	}
	return b
}

// TestStartFailures wants each plug-in that doesn't come up told by its name and cause, within its time, and nothing left.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(script, []byte("no program"), 0o644))
	for _, tt := range []struct {
		name   string
		change func(o *remote.Options)
		want   string
	}{
		{"missing", func(o *remote.Options) { o.Command = "./no-such-file" }, "no such file"},
		{"not executable", func(o *remote.Options) { o.Command = script }, "permission denied"},
		{"checksum", func(o *remote.Options) { o.SHA256 = strings.Repeat("ab", 32) }, "isn't the executable that was meant"},
		{"hello", nil, `no handshake: "hello"`},
		{"exit", nil, "exit status 1, and its last words were \"cannot open the map of regions\""},
		{"silent", nil, "within 1s"},
		{"endless", nil, "handshake"},
		{"version", nil, "another version of the protocol"},
		{"core", nil, "core API version"},
		{"netrpc", nil, "netrpc"},
		{"nowhere", nil, "no such file"},
		{"cookie", nil, "this is a plug-in for something else"},
		{"child", nil, "exit status 1"},
		{"raw-plain", nil, "connection broke"},
		{"raw-stuck", nil, "no options within"},
		{"raw-role", nil, "it is no partitioner: its roles are [offsets]"},
		{"build", nil, "no map of regions"},
		{"start", nil, "the database is away"},
		{"words", nil, "its last words were \"the disk is gone\""},
		{"unknown option", func(o *remote.Options) {
			o.Args, o.Config = []string{"good"}, section(t, "config:\n  shfit: 1\n")
		}, "x.yaml:2: config: unknown key \"shfit\" (did you mean \"shift\"?)"},
		{"bad option", func(o *remote.Options) {
			o.Args, o.Config = []string{"good"}, section(t, "config:\n  names: {}\n  shift: -1\n")
		}, "x.yaml:3: config.shift: must be at least 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options(tt.name)
			o.StartTimeout = time.Minute
			switch tt.name {
			case "silent":
				o.StartTimeout = time.Second
			case "raw-stuck":
				o.StartTimeout = 5 * time.Second // enough for the handshake, wherever this runs
			}
			if tt.change != nil {
				tt.change(&o)
			}
			began := time.Now()
			p := remote.NewPartitioner(o, nil, nil)
			err := p.Start(t.Context())
			require.Less(t, time.Since(began), o.StartTimeout+30*time.Second)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, o.Command)
			require.NoError(t, p.Stop(t.Context()))
			_, err = p.Partition(t.Context(), nil, batch(1))
			require.ErrorIs(t, err, partitioner.ErrUnavailable)
		})
	}
}

// TestCallFailures wants an error that says whether trying again helps, and nothing of a bad answer used.
func TestCallFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode string
		is   error
		want string
	}{
		{"negative", partitioner.ErrInvalid, "partition -1 for record 0"},
		{"past", partitioner.ErrInvalid, "partition 12 for record 0, topic \"orders\" has 12"},
		{"few", partitioner.ErrInvalid, "9 partitions for 10 records"},
		{"many", partitioner.ErrInvalid, "11 partitions for 10 records"},
		{"huge", partitioner.ErrInvalid, "too large"},
		{"raw-garbage", partitioner.ErrInvalid, "bad answer"},
		{"raw-stream-mixed", partitioner.ErrInvalid, "bad answer: to call 0 instead of 1"},
		{"raw-stream-ends", partitioner.ErrUnavailable, "it ended the stream"},
		{"hang", partitioner.ErrUnavailable, "no answer within 1s"},
		{"slow", partitioner.ErrUnavailable, "no answer within 1s"},
		{"crash", partitioner.ErrUnavailable, "connection broke"},
		{"panic", partitioner.ErrUnavailable, "connection broke"},
		{"refuse", partitioner.ErrUnavailable, "not in the mood"},
		{"unavailable", partitioner.ErrUnavailable, "the database is away"},
		{"invalid", partitioner.ErrInvalid, "not for me"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			o := options(tt.mode)
			o.CallTimeout = time.Minute
			if tt.mode == "hang" || tt.mode == "slow" {
				o.CallTimeout = time.Second
			}
			p := remote.NewPartitioner(o, nil, nil)
			require.NoError(t, p.Start(t.Context()))
			_, _, pid := p.Describe()
			got, err := p.Partition(t.Context(), []int32{7}, batch(10))
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, faulty)
			require.Equal(t, []int32{7}, got)
			measures := map[string]float64{}
			for _, m := range p.Measures() {
				measures[m.Name] = m.Value
			}
			require.EqualValues(t, 1, measures["calls"])
			require.Positive(t, measures["call_duration_seconds"])
			if tt.mode == "hang" || tt.mode == "crash" || tt.mode == "raw-garbage" {
				require.EqualValues(t, 1, measures["calls_failed"])
			}
			require.NoError(t, p.Stop(t.Context()))
			gone(t, pid)
		})
	}
}

// TestContextEndsACall is clause 1.6 through the wire.
func TestContextEndsACall(t *testing.T) {
	t.Parallel()
	p := remote.NewPartitioner(options("wait"), nil, nil)
	require.NoError(t, p.Start(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Partition(ctx, nil, batch(1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, p.Stop(t.Context()))
}

// TestStartsAgain wants a plug-in back that died, hung, or answers no pings.
func TestStartsAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode  string
		calls int // that fail
	}{{"crash", 1}, {"panic", 1}, {"hang", 3}} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			o := options(tt.mode)
			o.CallTimeout, o.PingInterval = 500*time.Millisecond, 100*time.Millisecond
			if tt.mode == "hang" {
				o.Args = []string{"hang"}
			}
			o.Config = section(t, fmt.Sprintf("config: {once: %q}", filepath.Join(t.TempDir(), "once")))
			p := remote.NewPartitioner(o, nil, nil)
			require.NoError(t, p.Start(t.Context()))
			_, err := p.Partition(t.Context(), nil, batch(1))
			require.ErrorIs(t, err, partitioner.ErrUnavailable)
			require.Eventually(t, func() bool {
				got, err := p.Partition(t.Context(), nil, batch(3))
				return err == nil && len(got) == 3
			}, time.Minute, 20*time.Millisecond)
			require.NoError(t, p.Stop(t.Context()))
		})
	}
	t.Run("no pings", func(t *testing.T) {
		t.Parallel()
		o := options("raw-dead")
		o.CallTimeout, o.PingInterval, o.MaxBackoff = 200*time.Millisecond, 50*time.Millisecond, time.Second
		p := remote.NewPartitioner(o, nil, nil)
		require.NoError(t, p.Start(t.Context()))
		require.Eventually(t, func() bool { return p.Status().Restarts > 0 }, time.Minute, 20*time.Millisecond)
		require.NoError(t, p.Stop(t.Context()))
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		o := options("good")
		o.CallTimeout, o.PingInterval = 3*time.Second, 50*time.Millisecond
		p := remote.NewPartitioner(o, nil, nil)
		require.NoError(t, p.Start(t.Context()))
		_, _, pid := p.Describe()
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		require.Eventually(t, func() bool { return p.Status().Restarts > 0 }, time.Minute, 20*time.Millisecond)
		gone(t, pid)
		require.NoError(t, p.Stop(t.Context()))
	})
}

// last is a fallback that puts everything into the last partition.
type last struct{ running atomic.Bool }

func (l *last) Start(context.Context) error { l.running.Store(true); return nil }
func (l *last) Stop(context.Context) error  { l.running.Store(false); return nil }
func (*last) Keyed() bool                   { return true }

func (l *last) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	for range b.Records {
		dst = append(dst, b.Partitions-1)
	}
	return dst, nil
}

func TestFallback(t *testing.T) {
	t.Parallel()
	t.Run("at the start", func(t *testing.T) {
		fallback := &last{}
		p := remote.NewPartitioner(options("exit"), nil, fallback)
		require.NoError(t, p.Start(t.Context()))
		require.False(t, p.Keyed(), "nothing is known of the plug-in")
		got, err := p.Partition(t.Context(), nil, batch(2))
		require.NoError(t, err)
		require.Equal(t, []int32{11, 11}, got)
		require.NoError(t, p.Stop(t.Context()))
		require.False(t, fallback.running.Load())
		_, err = p.Partition(t.Context(), nil, batch(2))
		require.Error(t, err, "nobody answers after Stop")
	})
	for _, mode := range []string{"negative", "crash", "refuse", "hang"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := options(mode)
			o.CallTimeout = time.Second
			p := remote.NewPartitioner(o, nil, &last{})
			require.NoError(t, p.Start(t.Context()))
			got, err := p.Partition(t.Context(), nil, batch(2))
			require.NoError(t, err)
			require.Equal(t, []int32{11, 11}, got)
			require.NoError(t, p.Stop(t.Context()))
		})
	}
	t.Run("not for the plug-in's own opinion", func(t *testing.T) {
		p := remote.NewPartitioner(options("invalid"), nil, &last{})
		require.NoError(t, p.Start(t.Context()))
		_, err := p.Partition(t.Context(), nil, batch(2))
		require.ErrorIs(t, err, partitioner.ErrInvalid)
		require.NoError(t, p.Stop(t.Context()))
	})
}

// TestKilledUnderLoad kills the plug-in while many use it: every record that got a partition got the right one, calls fail
// at once and only in between, and no goroutine hangs.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	o := options("good")
	p := remote.NewPartitioner(o, nil, nil)
	require.NoError(t, p.Start(t.Context()))
	want, err := p.Partition(t.Context(), nil, batch(100))
	require.NoError(t, err)
	stop := time.Now().Add(3 * time.Second)
	var answered, refused atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b := batch(100)
			for time.Now().Before(stop) {
				got, err := p.Partition(context.Background(), nil, b)
				if err == nil {
					answered.Add(int64(len(got)))
					assert.Equal(t, want, got)
					continue
				}
				refused.Add(1)
				assert.ErrorIs(t, err, partitioner.ErrUnavailable)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		if _, _, pid := p.Describe(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	wg.Wait()
	require.NotZero(t, answered.Load())
	require.NotZero(t, refused.Load())
	require.Eventually(t, func() bool { _, err := p.Partition(t.Context(), nil, batch(1)); return err == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, p.Stop(t.Context()))
}

// TestLogs wants what a plug-in says in our log, and no more of it than one can read.
func TestLogs(t *testing.T) {
	t.Parallel()
	var l logs
	p := remote.NewPartitioner(options("loud"), l.logger(), nil)
	require.NoError(t, p.Start(t.Context()))
	require.NoError(t, p.Stop(t.Context()))
	assert.Regexp(t, `level=WARN msg="a warning" command=\S*faulty .*region=eu`, l.String())
	assert.Regexp(t, `level=INFO msg="a line"`, l.String())
	assert.Regexp(t, `level=DEBUG msg="a detail"`, l.String())

	var many logs
	p = remote.NewPartitioner(options("flood"), many.logger(), nil)
	require.NoError(t, p.Start(t.Context()))
	_, err := p.Partition(t.Context(), nil, batch(1))
	require.NoError(t, err)
	require.NoError(t, p.Stop(t.Context()))
	assert.Less(t, strings.Count(many.String(), "chapter="), 500)
}

// TestEnvironment wants nothing of ours handed on that isn't listed.
func TestEnvironment(t *testing.T) {
	t.Setenv("BARNABAS_TEST_SECRET", "s3cret")
	o := options("good")
	o.Env = []string{"PATH", "REGION=eu"}
	l, err := remote.Launch(t.Context(), "partitioner", o, nil)
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", l.PID()))
		require.NoError(t, err)
		assert.NotContains(t, string(env), "s3cret")
		assert.Contains(t, string(env), "REGION=eu")
		assert.Contains(t, string(env), "PATH="+os.Getenv("PATH"))
	}
	require.Equal(t, "1.2.3", l.Info().GetVersion())
	pid := l.PID()
	require.True(t, l.End(5*time.Second), "it ends by itself when it is told")
	gone(t, pid)
}

func TestBatchesLargerThanAMessage(t *testing.T) {
	t.Parallel()
	p := remote.NewPartitioner(options("good"), nil, nil)
	require.NoError(t, p.Start(t.Context()))
	b := batch(9)
	for i := range b.Records {
		b.Records[i].Value = make([]byte, 1<<20)
	}
	b.Records[4].Value = make([]byte, 6<<20)
	got, err := p.Partition(t.Context(), nil, b)
	require.NoError(t, err)
	want, err := p.Partition(t.Context(), nil, batch(9))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, p.Stop(t.Context()))
}

// TestWithAndWithoutStreams asks plug-ins of both kinds from many goroutines, some of which don't wait for the answer: everybody
// else gets his own.
func TestWithAndWithoutStreams(t *testing.T) {
	for _, mode := range []string{"raw-good", "raw-stream", "good"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := remote.NewPartitioner(options(mode), nil, nil)
			require.NoError(t, p.Start(t.Context()))
			var wg sync.WaitGroup
			for n := range 24 {
				wg.Go(func() {
					b := batch(n + 1)
					want, err := p.Partition(context.Background(), nil, b)
					assert.NoError(t, err)
					assert.Len(t, want, n+1)
					for i := range 50 {
						ctx, cancel := context.WithCancel(context.Background())
						if i%5 == 4 {
							time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
						}
						got, err := p.Partition(ctx, nil, b)
						if err == nil {
							assert.Equal(t, want, got)
						} else {
							assert.ErrorIs(t, err, context.Canceled)
						}
						cancel()
					}
				})
			}
			wg.Wait()
			require.NoError(t, p.Stop(t.Context()))
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	o := remote.Defaults()
	o.SHA256, o.Env, o.CallTimeout, o.OnFailure = "ab", []string{"=x", "PLUGIN_X=1"}, 0, "nobody"
	err := o.Validate()
	for _, want := range []string{"command: name the executable", "sha256: want 64", `env: want NAME or NAME=VALUE, not "=x"`, "PLUGIN_X belongs", "call_timeout: must be", "on_failure: want reject"} {
		require.ErrorContains(t, err, want)
	}
}

// byHash does in this process what the plug-in "good" does in its own.
type byHash struct{}

func (byHash) Start(context.Context) error { return nil }
func (byHash) Stop(context.Context) error  { return nil }
func (byHash) Keyed() bool                 { return true }

func (byHash) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	for i := range b.Records {
		h := fnv.New32a()
		_, _ = h.Write(b.Records[i].Key)
		dst = append(dst, int32(h.Sum32()%uint32(b.Partitions)))
	}
	return dst, nil
}

// BenchmarkPartition is a call with one record and with 500 of 100 bytes, in another process and in this one. The goal is below
// 300 µs per call and 1 µs per record.
func BenchmarkPartition(b *testing.B) {
	for name, p := range map[string]partitioner.Partitioner{"remote": remote.NewPartitioner(options("good"), nil, nil), "in-process": byHash{}} {
		require.NoError(b, p.Start(b.Context()))
		defer func() { require.NoError(b, p.Stop(context.WithoutCancel(b.Context()))) }()
		for _, n := range []int{1, 500} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				records := batch(n)
				var dst []int32
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if dst, err = p.Partition(context.Background(), dst[:0], records); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
			})
		}
	}
}
