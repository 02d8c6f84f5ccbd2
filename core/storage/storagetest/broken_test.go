package storagetest

import (
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Broken implementations fail the property test on purpose: no file of how, and few tries, since none needs many.
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": "30", "rapid.shrinktime": "1ms"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func TestPlainPasses(t *testing.T) {
	Run(t, Harness{New: func() (storage.Storage, error) { return &plain{}, nil }})
}

// broken is plain with some calls replaced.
type broken struct {
	plain
	create func(s *plain, path string, o storage.Options) (storage.Segment, error)
	wrap   func(g *plainSegment) storage.Segment
}

func (s *broken) Create(path string, o storage.Options) (storage.Segment, error) {
	create := s.create
	if create == nil {
		create = (*plain).Create
	}
	g, err := create(&s.plain, path, o)
	return s.wrapped(g), err
}

func (s *broken) Open(path string, o storage.Options) (storage.Segment, error) {
	g, err := s.plain.Open(path, o)
	return s.wrapped(g), err
}

func (s *broken) wrapped(g storage.Segment) storage.Segment {
	if p, ok := g.(*plainSegment); ok && s.wrap != nil {
		return s.wrap(p)
	}
	return g
}

type early struct{ *plainSegment }

// Append tells of the bytes before they are there.
func (g early) Append(b []byte) (int64, error) {
	if g.Size()+int64(len(b)) > g.capacity || g.sealed || g.f.Closed() {
		return g.plainSegment.Append(b)
	}
	pos := g.size.Add(int64(len(b))) - int64(len(b))
	time.Sleep(10 * time.Microsecond)
	_, err := g.f.WriteAt(b, pos)
	return pos, err
}

type partial struct{ *plainSegment }

// Append takes what fits.
func (g partial) Append(b []byte) (int64, error) {
	pos, err := g.plainSegment.Append(b)
	if err != nil && g.capacity > g.Size() && !g.sealed && !g.f.Closed() {
		_, _ = g.plainSegment.Append(b[:g.capacity-g.Size()])
	}
	return pos, err
}

type lazy struct {
	*plainSegment
	kept []byte
}

// Append writes b with the next call.
func (g *lazy) Append(b []byte) (int64, error) {
	kept := g.kept
	g.kept = b
	pos, err := g.plainSegment.Append(make([]byte, len(b)))
	if err == nil && len(kept) > 0 {
		_, err = g.f.WriteAt(kept, pos-int64(len(kept)))
	}
	return pos, err
}

type wide struct{ *plainSegment }

// View doesn't look at the size.
func (g wide) View(pos, n int64) (storage.View, error) {
	if !g.f.Retain() {
		return nil, storage.ErrClosed
	}
	return &plainView{g.f, pos, n}, nil
}

type fleeting struct{ *plainSegment }

// View doesn't hold on to the file.
func (g fleeting) View(pos, n int64) (storage.View, error) {
	v, err := g.plainSegment.View(pos, n)
	if err != nil {
		return nil, err
	}
	v.Release()
	return fleetingView{v.(*plainView)}, nil
}

type fleetingView struct{ *plainView }

func (fleetingView) Release() {}

func (v fleetingView) Slice(from, n int64) (storage.View, error) {
	return fleetingView{&plainView{v.f, v.pos + from, n}}, nil
}

type uncut struct{ *plainSegment }

// Truncate leaves the file alone.
func (g uncut) Truncate(size int64) error {
	switch {
	case g.f.Closed():
		return storage.ErrClosed
	case g.readOnly:
		return storage.ErrSealed
	case size < 0 || size > g.Size():
		return storage.ErrRange
	}
	g.size.Store(size)
	return nil
}

type tailed struct{ *plainSegment }

// Append allocates more than it needs, and Seal and Close forget about it.
func (g tailed) Append(b []byte) (int64, error) {
	pos, err := g.plainSegment.Append(b)
	if err == nil && len(b) > 0 {
		_, err = g.f.WriteAt(make([]byte, 100), g.Size())
	}
	return pos, err
}

func (g tailed) Seal() error {
	if g.f.Closed() {
		return storage.ErrClosed
	}
	g.sealed = true
	return nil
}

func (g tailed) Close() error {
	g.f.Close()
	return nil
}

type leaving struct{ *plainSegment }

// Append leaves what it wrote before an error, for Open to find.
func (g leaving) Append(b []byte) (int64, error) {
	pos := g.Size()
	if g.sealed || g.f.Closed() || int64(len(b)) > g.capacity-pos || g.f.Failed("append") != nil {
		return g.plainSegment.Append(b)
	}
	if _, err := g.f.WriteAt(b, pos); err != nil {
		return 0, g.f.Fail("append", err)
	}
	g.size.Add(int64(len(b)))
	return pos, nil
}

func (g leaving) Close() error {
	g.f.Close()
	return nil
}

type onceClosed struct{ *plainSegment }

func (g onceClosed) Close() error {
	if g.f.Closed() {
		return storage.ErrClosed
	}
	return g.plainSegment.Close()
}

type forgetful struct {
	*plainSegment
	path string
}

// Remove deletes what is at the path of old.
func (g forgetful) Remove() error {
	g.f.Close()
	return os.Remove(g.path)
}

type writable struct{ *plainSegment }

// Append to a sealed segment is fine.
func (g writable) Append(b []byte) (int64, error) {
	g.sealed = false
	return g.plainSegment.Append(b)
}

type allocating struct{ *plainSegment }

func (g allocating) Append(b []byte) (int64, error) {
	return g.plainSegment.Append(append(make([]byte, 0, len(b)+1), b...))
}

type beyond struct{ *plainSegment }

// ReadAt reads the file, whatever the size.
func (g beyond) ReadAt(b []byte, pos int64) (int, error) {
	if !g.f.Retain() {
		return 0, storage.ErrClosed
	}
	defer g.f.Release()
	return g.f.ReadAt(b, pos)
}

type oblivious struct{ *plainSegment }

// Sync doesn't know of Close.
func (g oblivious) Sync() error { return nil }

type short struct{ *plainSegment }

// View gives one whose WriteTo is content with less.
func (g short) View(pos, n int64) (storage.View, error) {
	v, err := g.plainSegment.View(pos, n)
	if err != nil {
		return nil, err
	}
	return shortView{v.(*plainView)}, nil
}

type shortView struct{ *plainView }

func (v shortView) WriteTo(w io.Writer) (int64, error) {
	n, err := v.plainView.WriteTo(w)
	if n < v.n {
		err = nil
	}
	return n, err
}

// TestBrokenImplementationsAreRejected holds that the suite sees each of these faults, and names the clause.
func TestBrokenImplementationsAreRejected(t *testing.T) {
	wrap := func(f func(g *plainSegment) storage.Segment) func() *broken {
		return func() *broken { return &broken{wrap: f} }
	}
	for _, c := range []struct {
		name   string
		make   func() *broken
		clause string // the beginning of one that must fail
	}{
		{"create overwrites", func() *broken {
			return &broken{create: func(s *plain, path string, o storage.Options) (storage.Segment, error) {
				if s.running.Load() {
					_ = os.Remove(path)
				}
				return s.Create(path, o)
			}}
		}, "1.1"},
		{"create allocates at once", func() *broken {
			return &broken{create: func(s *plain, path string, o storage.Options) (storage.Segment, error) {
				g, err := s.Create(path, o)
				if err == nil {
					err = os.Truncate(path, o.Capacity)
				}
				return g, err
			}}
		}, "1.2"},
		{"size before the bytes", wrap(func(g *plainSegment) storage.Segment { return early{g} }), "3.1 readers"},
		{"append takes what fits", wrap(func(g *plainSegment) storage.Segment { return partial{g} }), "3.2"},
		{"append keeps the buffer", wrap(func(g *plainSegment) storage.Segment { return &lazy{plainSegment: g} }), "3.3"},
		{"append to a sealed segment", wrap(func(g *plainSegment) storage.Segment { return writable{g} }), "3.4"},
		{"a failed append stays in the file", wrap(func(g *plainSegment) storage.Segment { return leaving{g} }), "3.4 an append that the system"},
		{"append allocates", wrap(func(g *plainSegment) storage.Segment { return allocating{g} }), "3.5"},
		{"views of anything", wrap(func(g *plainSegment) storage.Segment { return wide{g} }), "4.1"},
		{"views end with close", wrap(func(g *plainSegment) storage.Segment { return fleeting{g} }), "4.2"},
		{"views end with close, as the model sees it", wrap(func(g *plainSegment) storage.Segment { return fleeting{g} }), "all"},
		{"truncate leaves the bytes, as the model sees it", wrap(func(g *plainSegment) storage.Segment { return uncut{g} }), "all"},
		{"reads beyond the size", wrap(func(g *plainSegment) storage.Segment { return beyond{g} }), "5.1"},
		{"sync after close", wrap(func(g *plainSegment) storage.Segment { return oblivious{g} }), "6.1"},
		{"truncate leaves the bytes", wrap(func(g *plainSegment) storage.Segment { return uncut{g} }), "7.2"},
		{"seal leaves a tail", wrap(func(g *plainSegment) storage.Segment { return tailed{g} }), "8.1"},
		{"remove under the old path", wrap(func(g *plainSegment) storage.Segment { return forgetful{g, g.f.Path()} }), "9.1"},
		{"close only once", wrap(func(g *plainSegment) storage.Segment { return onceClosed{g} }), "11.1"},
		{"short writes pass", wrap(func(g *plainSegment) storage.Segment { return short{g} }), "12.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := Harness{New: func() (storage.Storage, error) { return c.make(), nil }}
			// The clause that draws at random may need more than one look, all the more with -short.
			for range 20 {
				if len(Failures(h, t.TempDir(), c.clause)) > 0 {
					return
				}
			}
			t.Errorf("clause %s found nothing wrong", c.clause)
		})
	}
}

// TestFailuresNamesNothingForPlain holds that the recorder itself fails nothing.
func TestFailuresNamesNothingForPlain(t *testing.T) {
	for name, text := range Failures(Harness{New: func() (storage.Storage, error) { return &plain{}, nil }}, t.TempDir(), "") {
		t.Errorf("%s: %s", name, text)
	}
}

// TestPanicsAreFailures holds that an implementation that panics is rejected and not fatal.
func TestPanicsAreFailures(t *testing.T) {
	failures := Failures(Harness{New: func() (storage.Storage, error) { panic("no") }}, t.TempDir(), "")
	if len(failures) != len(Clauses()) {
		t.Errorf("%d of %d clauses failed", len(failures), len(Clauses()))
	}
}
