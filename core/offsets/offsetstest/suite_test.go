package offsetstest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func world(make func(*Disk) offsets.Store) World {
	d := NewDisk()
	return World{Keeps: true, Store: func() offsets.Store { return make(d) }}
}

func TestStorePasses(t *testing.T) {
	Run(t, func(*testing.T) World { return world(func(d *Disk) offsets.Store { return NewStore(d) }) })
}

// broken is a Store but for what its functions change.
type broken struct {
	*Store
	load  func(b *broken, ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error
	write func(b *broken, ctx context.Context, shard, epoch int32, batch offsets.Batch) error
	shard func(group string) (int32, error)
	stop  func(b *broken) error
}

func (b *broken) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if b.load != nil {
		return b.load(b, ctx, shard, epoch, visit)
	}
	return b.Store.Load(ctx, shard, epoch, visit)
}

func (b *broken) Write(ctx context.Context, shard, epoch int32, batch offsets.Batch) error {
	if b.write != nil {
		return b.write(b, ctx, shard, epoch, batch)
	}
	return b.Store.Write(ctx, shard, epoch, batch)
}

func (b *broken) Shard(group string) (int32, error) {
	if b.shard != nil {
		return b.shard(group)
	}
	return b.Store.Shard(group)
}

func (b *broken) Stop(ctx context.Context) error {
	if b.stop != nil {
		if err := b.stop(b); err != nil {
			return err
		}
	}
	return b.Store.Stop(ctx)
}

// TestBrokenAreRejected proves that the suite can fail, and in the clause that was broken.
func TestBrokenAreRejected(t *testing.T) {
	cases := []struct {
		name, clause string
		broken       broken
	}{
		{"forgets tombstones", "4.1 the last entry of a key wins", broken{write: func(b *broken, ctx context.Context, shard, epoch int32, batch offsets.Batch) error {
			kept := batch
			kept.Entries = nil
			for _, e := range batch.Entries {
				if !e.Tombstone() {
					kept.Entries = append(kept.Entries, e)
				}
			}
			return b.Store.Write(ctx, shard, epoch, kept)
		}}},
		{"transactions count at once", "4.1 pending offsets count from the commit", broken{write: func(b *broken, ctx context.Context, shard, epoch int32, batch offsets.Batch) error {
			if batch.Ended == offsets.NotEnded {
				batch.Producer = nil
			}
			return b.Store.Write(ctx, shard, epoch, batch)
		}}},
		{"doesn't fence", "6.3 no writes without a load", broken{write: func(b *broken, _ context.Context, shard, _ int32, batch offsets.Batch) error {
			b.disk.mu.Lock()
			defer b.disk.mu.Unlock()
			b.keep(shard, batch)
			return nil
		}}},
		{"loads under any epoch", "4.6 old epochs are refused", broken{load: func(b *broken, ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
			b.owners.Close()
			b.owners.Open()
			return b.Store.Load(ctx, shard, epoch, visit)
		}}},
		{"keeps a load that failed", "4.4 a failed load owns nothing", broken{load: func(b *broken, ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
			err := b.Store.Load(ctx, shard, epoch, visit)
			if err != nil {
				_ = b.Store.Load(context.Background(), shard, epoch, func(offsets.Event) error { return nil })
			}
			return err
		}}},
		{"swallows visit's error", "4.3 an error of visit ends the load", broken{load: func(b *broken, ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
			return b.Store.Load(ctx, shard, epoch, func(e offsets.Event) error { _ = visit(e); return nil })
		}}},
		{"stores half a batch", "6.7 strings that don't fit", broken{write: func(b *broken, ctx context.Context, shard, epoch int32, batch offsets.Batch) error {
			for _, e := range batch.Entries {
				one := batch
				one.Entries = []offsets.Entry{e}
				if err := b.Store.Write(ctx, shard, epoch, one); err != nil {
					return err
				}
			}
			if len(batch.Entries) == 0 {
				return b.Store.Write(ctx, shard, epoch, batch)
			}
			return nil
		}}},
		{"shards at random", "3.1 a group's shard never changes", broken{shard: func(string) (int32, error) { return rand.Int32N(math.MaxInt32), nil }}},
		{"forgets at the stop", "6.1 writes survive a restart", broken{stop: func(b *broken) error {
			b.disk.mu.Lock()
			defer b.disk.mu.Unlock()
			clear(b.disk.events)
			return nil
		}}},
		{"loses the oldest writes", "4.2 earlier epochs' writes are there", broken{load: func(b *broken, ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
			skipped := false
			return b.Store.Load(ctx, shard, epoch, func(e offsets.Event) error {
				if !skipped {
					skipped = true
					return nil
				}
				return visit(e)
			})
		}}},
		{"can't be stopped twice", "life cycle", broken{stop: func() func(b *broken) error {
			stopped := map[*broken]bool{}
			return func(b *broken) error {
				if stopped[b] {
					return fmt.Errorf("stopped already")
				}
				stopped[b] = true
				return nil
			}
		}()}},
		{"ignores the context", "6.5 no write after its context", broken{write: func(b *broken, _ context.Context, shard, epoch int32, batch offsets.Batch) error {
			return b.Store.Write(context.Background(), shard, epoch, batch)
		}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rejectedBy := map[string]bool{}
			for _, clause := range Clauses() {
				if fails(func(tb TB) {
					clause.Check(tb, world(func(d *Disk) offsets.Store {
						b := c.broken
						b.Store = NewStore(d)
						return &b
					}))
				}) {
					rejectedBy[clause.Name] = true
				}
			}
			require.True(t, rejectedBy[c.clause], "rejected by %v only", rejectedBy)
		})
	}
}

// fails runs a check on a goroutine of its own, so that a failure can end it.
func fails(check func(TB)) bool {
	r := &recorder{}
	var wg sync.WaitGroup
	wg.Go(func() { check(r) })
	wg.Wait()
	for _, f := range r.cleanups {
		wg.Go(f)
		wg.Wait()
	}
	return r.failed
}

type recorder struct {
	failed   bool
	cleanups []func()
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { r.failed = true; runtime.Goexit() }
func (r *recorder) Helper()               {}
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
