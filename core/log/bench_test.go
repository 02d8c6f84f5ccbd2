package log_test

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/log/logtest"
)

func BenchmarkLog(b *testing.B) { logtest.RunBenchmarks(b, log.NewPlainStorage()) }

// Opening a thousand partitions after an orderly stop.
func BenchmarkOpen(b *testing.B) {
	for _, records := range []int{0, 3} {
		b.Run(fmt.Sprintf("1000 logs of %d batches", records), func(b *testing.B) {
			dir := b.TempDir()
			o := log.DefaultManagerOptions()
			o.Storage, o.Logger = log.NewPlainStorage(), slog.New(slog.DiscardHandler)
			o.Config = func(string) log.Config { return log.DefaultConfig() }
			open := func() *log.Manager {
				d, err := log.OpenDir(dir, o.Logger)
				require.NoError(b, err)
				m := log.NewManager(o, d)
				require.NoError(b, m.Open(b.Context()))
				return m
			}
			m := open()
			for i := range int32(1000) {
				l, err := m.GetOrCreate(b.Context(), log.TopicPartition{Topic: "many", Partition: i})
				require.NoError(b, err)
				for range records {
					_, err := l.AppendLeader(log.LeaderAppend{Batches: logtest.Batch(1, 100)})
					require.NoError(b, err)
				}
				l.SetHighWatermark(math.MaxInt64)
			}
			require.NoError(b, m.Close(b.Context(), 0))
			var opening, closing time.Duration
			for b.Loop() {
				began := time.Now()
				m = open()
				opening += time.Since(began)
				began = time.Now()
				require.NoError(b, m.Close(b.Context(), 0))
				closing += time.Since(began)
			}
			b.ReportMetric(float64(opening.Milliseconds())/float64(b.N), "ms/open")
			b.ReportMetric(float64(closing.Milliseconds())/float64(b.N), "ms/close")
			_ = os.RemoveAll(dir)
		})
	}
}
