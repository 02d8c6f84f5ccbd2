package storagetest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// FuzzOperations fuzzes random operations against the model.
func FuzzOperations(f *testing.F, h Harness) {
	f.Fuzz(rapid.MakeFuzz(modelProperty(h)))
}

func checkModel(t T, h Harness) { rapid.Check(t, modelProperty(h)) }

// model is a segment as it should be: its bytes, and the views that are held with what they must show.
type model struct {
	storage  storage.Storage
	segment  storage.Segment
	dir      string
	path     string
	names    int
	capacity int
	content  []byte
	sealed   bool
	tail     bool // there may be a preallocated tail now
	views    []heldView
}

type heldView struct {
	view storage.View
	want []byte // nil once it is undefined
}

func modelProperty(h Harness) func(*rapid.T) {
	return func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "storagetest")
		require.NoError(t, err)
		defer func() { _ = os.RemoveAll(dir) }()
		s, err := h.New()
		require.NoError(t, err)
		require.NoError(t, s.Start(context.Background()))
		defer func() { _ = s.Stop(context.Background()) }()
		m := &model{storage: s, dir: dir}
		defer m.end()
		m.create(t)
		t.Repeat(map[string]func(*rapid.T){
			"":            m.check,
			"append":      m.append,
			"append more": m.append,
			"view":        m.view,
			"slice":       m.slice,
			"release":     m.release,
			"read":        m.read,
			"truncate":    m.truncate,
			"seal":        m.seal,
			"sync":        m.sync,
			"rename":      m.rename,
			"reopen":      m.reopen,
			"crash":       m.crash,
			"remove":      m.remove,
		})
	}
}

func (m *model) end() {
	for _, v := range m.views {
		v.view.Release()
	}
	if m.segment != nil {
		_ = m.segment.Close()
	}
}

func (m *model) newPath() string {
	m.names++
	return filepath.Join(m.dir, fmt.Sprintf("%d.log", m.names))
}

func (m *model) options() storage.Options { return storage.Options{Capacity: int64(m.capacity)} }

func (m *model) create(t *rapid.T) {
	m.path = m.newPath()
	m.capacity = rapid.IntRange(1, 300_000).Draw(t, "capacity")
	g, err := m.storage.Create(m.path, m.options())
	require.NoError(t, err)
	m.segment, m.content, m.sealed, m.tail = g, nil, false, false
}

func (m *model) check(t *rapid.T) {
	require.Equal(t, int64(len(m.content)), m.segment.Size())
	got, err := os.ReadFile(m.path)
	require.NoError(t, err)
	if len(got) < len(m.content) || !m.tail && len(got) > len(m.content) {
		t.Fatalf("the file has %d bytes, the segment %d", len(got), len(m.content))
	}
	if string(got[:len(m.content)]) != string(m.content) {
		t.Fatalf("the file differs from what was appended")
	}
	for _, b := range got[len(m.content):] {
		if b != 0 {
			t.Fatalf("the tail of the file isn't zeros")
		}
	}
	for _, v := range m.views {
		if v.want == nil {
			continue
		}
		b, err := v.view.Bytes(nil)
		require.NoError(t, err)
		if string(b) != string(v.want) {
			t.Fatalf("a view of %d bytes has changed", len(v.want))
		}
	}
}

func (m *model) append(t *rapid.T) {
	n := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 9000), rapid.IntRange(0, 150_000)).Draw(t, "length")
	b := pattern(rapid.IntRange(0, 250).Draw(t, "seed"), n)
	pos, err := m.segment.Append(b)
	switch {
	case m.sealed:
		require.ErrorIs(t, err, storage.ErrSealed)
	case len(m.content)+n > m.capacity:
		require.ErrorIs(t, err, storage.ErrFull)
	default:
		require.NoError(t, err)
		require.Equal(t, int64(len(m.content)), pos)
		m.content = append(m.content, b...)
		m.tail = true
	}
	clear(b)
}

func (m *model) view(t *rapid.T) {
	pos := rapid.IntRange(-1, len(m.content)+1).Draw(t, "pos")
	n := rapid.IntRange(-1, len(m.content)+1).Draw(t, "n")
	v, err := m.segment.View(int64(pos), int64(n))
	if pos < 0 || n < 0 || pos+n > len(m.content) {
		require.ErrorIs(t, err, storage.ErrRange)
		return
	}
	require.NoError(t, err)
	want := append([]byte{}, m.content[pos:pos+n]...)
	var w collector
	sent, err := v.WriteTo(&w)
	require.NoError(t, err)
	require.Equal(t, int64(n), sent)
	if string(w.b) != string(want) {
		t.Fatalf("a view of %d bytes at %d differs", n, pos)
	}
	m.views = append(m.views, heldView{v, want})
}

func (m *model) slice(t *rapid.T) {
	if len(m.views) == 0 {
		return
	}
	v := m.views[rapid.IntRange(0, len(m.views)-1).Draw(t, "view")]
	length := int(v.view.Len())
	from := rapid.IntRange(0, length+1).Draw(t, "from")
	n := rapid.IntRange(0, length+1).Draw(t, "n")
	part, err := v.view.Slice(int64(from), int64(n))
	if from+n > length {
		require.ErrorIs(t, err, storage.ErrRange)
		return
	}
	require.NoError(t, err)
	held := heldView{view: part}
	if v.want != nil {
		held.want = v.want[from : from+n : from+n]
	}
	m.views = append(m.views, held)
}

func (m *model) release(t *rapid.T) {
	if len(m.views) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.views)-1).Draw(t, "view")
	m.views[i].view.Release()
	m.views = append(m.views[:i], m.views[i+1:]...)
}

func (m *model) read(t *rapid.T) {
	pos := rapid.IntRange(0, len(m.content)+10).Draw(t, "pos")
	b := make([]byte, rapid.IntRange(0, 10_000).Draw(t, "n"))
	n, err := m.segment.ReadAt(b, int64(pos))
	want := min(len(b), max(len(m.content)-pos, 0))
	require.Equal(t, want, n)
	if want < len(b) {
		require.Equal(t, io.EOF, err)
	} else if err != nil && pos+n != len(m.content) && len(b) > 0 {
		t.Fatalf("read of %d bytes at %d of %d: %v", len(b), pos, len(m.content), err)
	}
	if n > 0 && string(b[:n]) != string(m.content[pos:pos+n]) {
		t.Fatalf("%d bytes read at %d differ", n, pos)
	}
}

func (m *model) truncate(t *rapid.T) {
	size := rapid.IntRange(-1, len(m.content)+1).Draw(t, "size")
	err := m.segment.Truncate(int64(size))
	if size < 0 || size > len(m.content) {
		require.ErrorIs(t, err, storage.ErrRange)
		return
	}
	require.NoError(t, err)
	m.content, m.tail = m.content[:size:size], false
	m.forget()
}

// forget gives up what the held views must show, after a truncation.
func (m *model) forget() {
	for i := range m.views {
		m.views[i].want = nil
		_, _ = m.views[i].view.Bytes(nil)
	}
}

func (m *model) seal(t *rapid.T) {
	require.NoError(t, m.segment.Seal())
	m.sealed, m.tail = true, false
}

func (m *model) sync(t *rapid.T) { require.NoError(t, m.segment.Sync()) }

func (m *model) rename(t *rapid.T) {
	path := m.newPath()
	require.NoError(t, m.segment.Rename(path))
	require.NoFileExists(t, m.path)
	m.path = path
}

func (m *model) reopen(t *rapid.T) {
	require.NoError(t, m.segment.Close())
	o := m.options()
	o.ReadOnly = rapid.Bool().Draw(t, "read-only")
	m.tail = false
	if o.ReadOnly {
		g, err := m.storage.Open(m.path, o)
		require.NoError(t, err)
		require.NoError(t, g.Seal())
		m.segment = g
		m.check(t)
		require.NoError(t, g.Close())
	}
	g, err := m.storage.Open(m.path, m.options())
	require.NoError(t, err)
	m.segment, m.sealed = g, false
}

// crash goes on with a copy of the file as it is, its tail cut by whoever knows the end.
func (m *model) crash(t *rapid.T) {
	left, err := os.ReadFile(m.path)
	require.NoError(t, err)
	require.NoError(t, m.segment.Remove())
	m.path = m.newPath()
	require.NoError(t, os.WriteFile(m.path, left, 0o600))
	g, err := m.storage.Open(m.path, m.options())
	require.NoError(t, err)
	m.segment, m.sealed = g, false
	require.Equal(t, int64(len(left)), g.Size())
	require.NoError(t, g.Truncate(int64(len(m.content))))
	m.tail = false
}

func (m *model) remove(t *rapid.T) {
	require.NoError(t, m.segment.Remove())
	require.NoFileExists(t, m.path)
	m.create(t)
}
