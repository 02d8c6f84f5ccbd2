package storagetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// benchSegment is the capacity of the segments that the benchmarks write: a quarter of Kafka's default, so that rolling
// and growing count as they do in use.
const benchSegment = 256 << 20

// RunBenchmarks measures appends, and views sent over the loopback, by size. Beside time it reports the CPU time of the
// whole process by GiB (cpu-s/GiB), in which the kernel's work for it is included and that of the receiving end, too. The
// lower bounds to compare with are this package's own benchmarks: go test -bench . ./core/storage/storagetest
func RunBenchmarks(b *testing.B, h Harness) {
	for _, n := range []int{1 << 10, 16 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("append/%dKiB", n>>10), func(b *testing.B) { benchmarkAppend(b, h, n) })
	}
	for _, n := range []int{16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("send/%dKiB", n>>10), func(b *testing.B) { benchmarkSend(b, h, n) })
	}
	b.Run("view", func(b *testing.B) { benchmarkView(b, h) })
	b.Run("read/61B", func(b *testing.B) { benchmarkRead(b, h, 61) })
	b.Run("create-append-seal", func(b *testing.B) { benchmarkSmallSegment(b, h) })
}

// meter adds up wall clock and CPU time of what is measured, by bytes.
type meter struct {
	b     *testing.B
	spent time.Duration
	began time.Duration
}

func newMeter(b *testing.B, bytesPerOp int) *meter {
	b.SetBytes(int64(bytesPerOp))
	b.ReportAllocs()
	b.StopTimer()
	return &meter{b: b}
}

func (m *meter) start() {
	m.began = cpuTime()
	m.b.StartTimer()
}

func (m *meter) stop() {
	m.b.StopTimer()
	m.spent += cpuTime() - m.began
}

func (m *meter) report(bytes int64) {
	m.b.ReportMetric(m.spent.Seconds()/float64(bytes)*(1<<30), "cpu-s/GiB")
}

func (h Harness) bench(b *testing.B) storage.Storage {
	s, err := h.New()
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func benchmarkAppend(b *testing.B, h Harness, n int) {
	s, path, data := h.bench(b), filepath.Join(b.TempDir(), "a.log"), pattern(1, n)
	m := newMeter(b, n)
	for left := b.N; left > 0; {
		g, err := s.Create(path, storage.Options{Capacity: benchSegment})
		if err != nil {
			b.Fatal(err)
		}
		ops := min(left, benchSegment/n)
		left -= ops
		m.start()
		for range ops {
			if _, err := g.Append(data); err != nil {
				b.Fatal(err)
			}
		}
		if err := g.Seal(); err != nil {
			b.Fatal(err)
		}
		m.stop()
		if err := g.Remove(); err != nil {
			b.Fatal(err)
		}
	}
	m.report(int64(n) * int64(b.N))
}

// benchFilled gives a segment of 64 MiB in the page cache.
func benchFilled(b *testing.B, h Harness) storage.Segment {
	g, err := h.bench(b).Create(filepath.Join(b.TempDir(), "a.log"), storage.Options{Capacity: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Remove() })
	for data := pattern(1, 64<<10); g.Size() < 64<<20; {
		if _, err := g.Append(data); err != nil {
			b.Fatal(err)
		}
	}
	return g
}

// benchConnection gives the sending end of a loopback connection that is drained.
func benchConnection(b *testing.B) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 1<<20))
		_ = c.Close()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(); _ = l.Close(); <-drained })
	return c
}

func benchmarkSend(b *testing.B, h Harness, n int) {
	g, conn := benchFilled(b, h), benchConnection(b)
	m := newMeter(b, n)
	m.start()
	var pos int64
	for range b.N {
		v, err := g.View(pos, int64(n))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := v.WriteTo(conn); err != nil {
			b.Fatal(err)
		}
		v.Release()
		if pos += int64(n); pos+int64(n) > g.Size() {
			pos = 0
		}
	}
	m.stop()
	m.report(int64(n) * int64(b.N))
}

func benchmarkView(b *testing.B, h Harness) {
	g := benchFilled(b, h)
	b.ReportAllocs()
	for b.Loop() {
		v, err := g.View(1000, 1000)
		if err != nil {
			b.Fatal(err)
		}
		v.Release()
	}
}

func benchmarkRead(b *testing.B, h Harness, n int) {
	g, buffer := benchFilled(b, h), make([]byte, n)
	if v, err := g.View(0, 1); err == nil { // what is mapped for views stays so
		v.Release()
	}
	b.ReportAllocs()
	var pos int64
	for b.Loop() {
		if _, err := g.ReadAt(buffer, pos); err != nil {
			b.Fatal(err)
		}
		pos = (pos + 16<<10) % (32 << 20)
	}
}

// benchmarkSmallSegment is the life of a segment of a partition that gets next to nothing.
func benchmarkSmallSegment(b *testing.B, h Harness) {
	s, path, data := h.bench(b), filepath.Join(b.TempDir(), "a.log"), pattern(1, 200)
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Create(path, storage.Options{Capacity: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := g.Append(data); err != nil {
			b.Fatal(err)
		}
		if err := g.Seal(); err != nil {
			b.Fatal(err)
		}
		if err := g.Remove(); err != nil {
			b.Fatal(err)
		}
	}
}
