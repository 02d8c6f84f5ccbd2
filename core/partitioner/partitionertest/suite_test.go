package partitionertest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// good is a partitioner that keeps the contract; each broken one changes what it answers.
type good struct{ calls uint32 }

func (*good) Start(context.Context) error { return nil }
func (*good) Stop(context.Context) error  { return nil }
func (*good) Keyed() bool                 { return true }

func (*good) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, partitioner.ErrInvalid
	}
	for _, r := range b.Records {
		if r.Key == nil {
			dst = append(dst, b.Choose(0))
			continue
		}
		h := fnv.New32a()
		h.Write(r.Key)
		dst = append(dst, int32(h.Sum32()%uint32(b.Partitions)))
	}
	return dst, nil
}

func TestGoodPasses(t *testing.T) {
	Run(t, func(*testing.T) partitioner.Partitioner { return &good{} })
}

type broken struct {
	good
	mu     sync.Mutex
	kept   []int32
	change func(b *broken, batch *partitioner.Batch, dst []int32, from int) ([]int32, error)
	stop   func() error
}

func (b *broken) Partition(ctx context.Context, dst []int32, batch *partitioner.Batch) ([]int32, error) {
	from := len(dst)
	dst, err := b.good.Partition(ctx, dst, batch)
	if b.change == nil || err != nil && from == len(dst) && batch.Partitions > 0 {
		return dst, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	got, changed := b.change(b, batch, dst, from)
	if changed != nil {
		err = changed
	}
	return got, err
}

func (b *broken) Stop(context.Context) error {
	if b.stop != nil {
		return b.stop()
	}
	return nil
}

// TestBrokenAreRejected proves that the suite can fail, and for the reason that was planted.
func TestBrokenAreRejected(t *testing.T) {
	all := func(f func(b *broken, batch *partitioner.Batch, answer []int32)) func(*broken, *partitioner.Batch, []int32, int) ([]int32, error) {
		return func(b *broken, batch *partitioner.Batch, dst []int32, from int) ([]int32, error) {
			f(b, batch, dst[from:])
			return dst, nil
		}
	}
	tests := []struct {
		name, clause string
		make         func() *broken
	}{
		{"one past the end", "1.1", func() *broken {
			return &broken{change: all(func(_ *broken, batch *partitioner.Batch, a []int32) {
				if len(a) > 3 {
					a[3] = batch.Partitions
				}
			})}
		}},
		{"one answer too few", "1.1", func() *broken {
			return &broken{change: func(_ *broken, _ *partitioner.Batch, dst []int32, from int) ([]int32, error) {
				return dst[:max(from, len(dst)-1)], nil
			}}
		}},
		{"forgets dst", "1.1", func() *broken {
			return &broken{change: func(_ *broken, _ *partitioner.Batch, dst []int32, from int) ([]int32, error) { return dst[from:], nil }}
		}},
		{"keys wander", "1.2 equal", func() *broken {
			return &broken{change: all(func(b *broken, batch *partitioner.Batch, a []int32) {
				for i := range a {
					if batch.Partitions > 0 {
						a[i] = (a[i] + int32(b.calls)) % batch.Partitions
					}
				}
			})}
		}},
		{"a seed per instance", "1.2 another", func() *broken {
			b := &broken{}
			b.change = all(func(b *broken, batch *partitioner.Batch, a []int32) {
				for i := range a {
					if batch.Partitions > 0 && b.kept == nil {
						b.kept = []int32{seed.next()}
					}
					if batch.Partitions > 0 {
						a[i] = (a[i] + b.kept[0]) % batch.Partitions
					}
				}
			})
			return b
		}},
		{"avoids dead partitions for keys", "1.2 availability", func() *broken {
			return &broken{change: all(func(_ *broken, batch *partitioner.Batch, a []int32) {
				for i := range a {
					if len(batch.Available) > 0 {
						a[i] = batch.Available[int(a[i])%len(batch.Available)]
					}
				}
			})}
		}},
		{"unkeyed to anywhere", "1.3", func() *broken {
			return &broken{change: all(func(_ *broken, batch *partitioner.Batch, a []int32) {
				for i := range a {
					if batch.Records[i].Key == nil {
						a[i] = batch.Partitions - 2 + batch.Partitions%2
						a[i] = max(a[i]%max(batch.Partitions, 1), 0)
					}
				}
			})}
		}},
		{"changes the batch", "1.4", func() *broken {
			return &broken{change: all(func(_ *broken, batch *partitioner.Batch, _ []int32) {
				for i := range batch.Records {
					batch.Records[i].Value = nil
				}
			})}
		}},
		{"swallows the error", "1.5", func() *broken {
			return &broken{change: func(_ *broken, batch *partitioner.Batch, dst []int32, _ int) ([]int32, error) {
				if batch.Partitions < 1 {
					return dst, errors.New("some other error")
				}
				return dst, nil
			}}
		}},
		{"can't stop twice", "life cycle", func() *broken {
			stops := 0
			return &broken{stop: func() error {
				if stops++; stops > 1 {
					return errors.New("already stopped")
				}
				return nil
			}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var failed []string
			for _, c := range Clauses() {
				r := &recorder{}
				r.run(func() { c.Check(r, func() partitioner.Partitioner { return tt.make() }) })
				if len(r.messages) > 0 {
					failed = append(failed, c.Name)
				}
			}
			require.Contains(t, strings.Join(failed, "\n"), tt.clause)
		})
	}
}

// counter gives each broken instance another seed.
type counter struct {
	mu sync.Mutex
	n  int32
}

func (c *counter) next() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

var seed counter

// recorder is a TB that notes failures instead of failing.
type recorder struct {
	messages []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, a ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, a...))
}
func (r *recorder) FailNow() { runtime.Goexit() }

func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
	for _, c := range r.cleanups {
		c()
	}
}

// TestAsRecorded proves that the comparison can pass, and that it fails for one wrong partition.
func TestAsRecorded(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "client.tsv")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	failed := func(text string) bool {
		r := &recorder{}
		r.run(func() { AsRecorded(r, &good{}, write(text)) })
		return len(r.messages) > 0
	}
	AsRecorded(t, &good{}, write("key\t1\t3\n\t0\t1\n61\t0\t1\n"))
	require.True(t, failed("key\t1\t3\n\t0\t1\n61\t0\t2\n"), "a wrong partition")
	require.True(t, failed("key\t1\t3\n\t0\t1\n61\t0\n"), "a column too few")
	require.True(t, failed("key\t1\n"), "no keys")
	require.True(t, failed("key\n61\n"), "no partitions")
}

// emptyless is a partitioner that takes an empty key for none.
type emptyless struct{ good }

func (*emptyless) EmptyIsKey() bool { return false }

// bound puts everything into partition 0, whatever has a leader; it isn't keyed.
type bound struct{ good }

func (*bound) Keyed() bool { return false }
func (*bound) Bound() bool { return true }
func (*bound) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, partitioner.ErrInvalid
	}
	return append(dst, make([]int32, len(b.Records))...), nil
}

func TestBoundPasses(t *testing.T) {
	Run(t, func(*testing.T) partitioner.Partitioner { return &bound{} })
}

func TestFixed(t *testing.T) {
	require.True(t, partitioner.Fixed(&bound{}, nil))
	require.True(t, partitioner.Fixed(&good{}, []byte("k")))
	require.False(t, partitioner.Fixed(&good{}, nil))
	require.False(t, partitioner.HasKey(&bound{}, []byte("k")))
}

func TestHasKey(t *testing.T) {
	require.True(t, partitioner.HasKey(&good{}, []byte{}))
	require.False(t, partitioner.HasKey(&good{}, nil))
	require.False(t, partitioner.HasKey(&emptyless{}, []byte{}))
	require.True(t, partitioner.HasKey(&emptyless{}, []byte("k")))
}
