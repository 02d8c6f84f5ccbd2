package storagetest

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkLowerBound is what the append benchmarks of implementations are to be compared with: write(2) of the same
// bytes into a new file, the same after the checksum that every produced batch costs, and the copy alone.
func BenchmarkLowerBound(b *testing.B) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, n := range []int{1 << 10, 16 << 10, 64 << 10} {
		data, target := pattern(1, n), make([]byte, n)
		b.Run(fmt.Sprintf("write/%dKiB", n>>10), func(b *testing.B) {
			benchmarkFile(b, n, func(f *os.File) error { _, err := f.Write(data); return err })
		})
		b.Run(fmt.Sprintf("crc-write/%dKiB", n>>10), func(b *testing.B) {
			sum := uint32(0)
			benchmarkFile(b, n, func(f *os.File) error {
				sum ^= crc32.Checksum(data, table)
				_, err := f.Write(data)
				return err
			})
		})
		b.Run(fmt.Sprintf("copy/%dKiB", n>>10), func(b *testing.B) {
			m := newMeter(b, n)
			m.start()
			for range b.N {
				copy(target, data)
			}
			m.stop()
			m.report(int64(n) * int64(b.N))
		})
	}
}

// benchmarkFile calls write for each n bytes of files that are as long as the segments of the other benchmarks.
func benchmarkFile(b *testing.B, n int, write func(f *os.File) error) {
	path := filepath.Join(b.TempDir(), "a.log")
	m := newMeter(b, n)
	for left := b.N; left > 0; {
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		ops := min(left, benchSegment/n)
		left -= ops
		m.start()
		for range ops {
			if err := write(f); err != nil {
				b.Fatal(err)
			}
		}
		m.stop()
		_ = f.Close()
		_ = os.Remove(path)
	}
	m.report(int64(n) * int64(b.N))
}
