package logtest

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"testing"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Batch builds a batch of n records with values of that size.
func Batch(n, size int) []byte {
	b := record.NewBuilder(record.Options{})
	for i := range n {
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: 1_700_000_000_000, Value: make([]byte, size)}); err != nil {
			panic(err)
		}
	}
	out, err := b.Build(nil, nil)
	if err != nil {
		panic(err)
	}
	return out
}

// RunBenchmarks measures a log over a started storage: appends as a leader and as a follower, and reads at the end.
func RunBenchmarks(b *testing.B, st storage.Storage) {
	open := func(b *testing.B) *log.Log {
		cfg := log.DefaultConfig()
		cfg.RetentionMs, cfg.RetentionBytes = -1, 1<<30
		l, err := log.Open(b.Context(), log.Options{Dir: b.TempDir(), Topic: "t", Storage: st, Config: cfg, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Delete() })
		return l
	}
	for _, tc := range []struct{ n, size int }{{1, 1024}, {64, 1024}, {640, 100}} {
		batch := Batch(tc.n, tc.size)
		b.Run(fmt.Sprintf("leader append %dx%d", tc.n, tc.size), func(b *testing.B) {
			l := open(b)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				record.SetBaseOffset(batch, 0)
				if _, err := l.AppendLeader(log.LeaderAppend{Batches: batch}); err != nil {
					b.Fatal(err)
				}
				trim(b, l, i, len(batch))
			}
		})
		b.Run(fmt.Sprintf("follower append %dx%d", tc.n, tc.size), func(b *testing.B) {
			l := open(b)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				record.SetBaseOffset(batch, l.EndOffset())
				if _, err := l.AppendFollower(batch); err != nil {
					b.Fatal(err)
				}
				trim(b, l, i, len(batch))
			}
		})
		b.Run(fmt.Sprintf("read at the end %dx%d", tc.n, tc.size), func(b *testing.B) {
			l := open(b)
			for range 1000 {
				record.SetBaseOffset(batch, 0)
				if _, err := l.AppendLeader(log.LeaderAppend{Batches: batch}); err != nil {
					b.Fatal(err)
				}
			}
			end := l.EndOffset()
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				res, err := l.Read(log.ReadRequest{Offset: end - int64(tc.n), UpTo: end, MaxBytes: 1 << 20, MinOneBatch: true})
				if err != nil || res.View == nil {
					b.Fatal(err)
				}
				res.View.Release()
			}
		})
		b.Run(fmt.Sprintf("read all %dx%d", tc.n, tc.size), func(b *testing.B) {
			l := open(b)
			for range 1000 {
				record.SetBaseOffset(batch, 0)
				if _, err := l.AppendLeader(log.LeaderAppend{Batches: batch}); err != nil {
					b.Fatal(err)
				}
			}
			end := l.EndOffset()
			b.SetBytes(l.Size())
			b.ReportAllocs()
			for b.Loop() {
				for at := int64(0); at < end; {
					res, err := l.Read(log.ReadRequest{Offset: at, UpTo: end, MaxBytes: 1 << 20, MinOneBatch: true})
					if err != nil || res.View == nil {
						b.Fatal(err)
					}
					n, err := res.View.WriteTo(io.Discard)
					if err != nil {
						b.Fatal(err)
					}
					at += n / int64(len(batch)) * int64(tc.n)
					res.View.Release()
				}
			}
		})
	}
}

// trim keeps a benchmark from filling the disk.
func trim(b *testing.B, l *log.Log, i, size int) {
	if i%((256<<20)/size) == 0 && i > 0 {
		b.StopTimer()
		if err := l.TruncateFully(0); err != nil {
			b.Fatal(err)
		}
		l.SetHighWatermark(math.MaxInt64)
		b.StartTimer()
	}
}
