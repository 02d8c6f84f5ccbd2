package wire

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// memoryView is a storage.View over bytes of its own.
type memoryView struct {
	b        []byte
	mapped   bool
	released *atomic.Int32
}

func newView(n int, mapped bool) *memoryView {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return &memoryView{b: b, mapped: mapped, released: new(atomic.Int32)}
}

func (v *memoryView) Len() int64 { return int64(len(v.b)) }

func (v *memoryView) Slice(from, n int64) (storage.View, error) {
	return &memoryView{b: v.b[from : from+n], mapped: v.mapped, released: new(atomic.Int32)}, nil
}

func (v *memoryView) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(v.b)
	return int64(n), err
}

func (v *memoryView) Bytes([]byte) ([]byte, error) { return v.b, nil }

func (v *memoryView) Mapped() []byte {
	if v.mapped {
		return v.b
	}
	return nil
}

func (v *memoryView) Release() { v.released.Add(1) }

func TestViewsGoOutBetweenTheBytes(t *testing.T) {
	for _, sizes := range [][]int{{10}, {0, 5}, {100000, 3, 200000}, {9 << 20}, {1 << 20, 5 << 20, 1}} {
		for _, mapped := range []bool{false, true} {
			for _, trailer := range []string{"", "tail"} {
				t.Run(fmt.Sprint(sizes, mapped, trailer), func(t *testing.T) {
					s, h := start(t, nil)
					var views []*memoryView
					var want bytes.Buffer
					for _, n := range sizes {
						v := newView(n, mapped)
						views = append(views, v)
						h.mu.Lock()
						h.views = append(h.views, v)
						h.mu.Unlock()
						want.WriteByte('<')
						want.Write(v.b)
					}
					want.WriteString(trailer)
					p := dial(t, s)
					p.write(frameOf(keyViews, 1, 1, trailer))
					corr, body := p.read()
					require.Equal(t, int32(1), corr)
					require.True(t, body == want.String(), "the bytes differ")
					h.mu.Lock()
					h.views = nil
					h.mu.Unlock()
					p.write(frameOf(keyEcho, 1, 2, "next"))
					p.expect(2, "next")
					for _, v := range views {
						require.Eventually(t, func() bool { return v.released.Load() == 1 }, waitLimit, waitStep)
					}
				})
			}
		}
	}
}

func TestViewsBehindAPendingReplyAreReleasedWhenTheClientGoes(t *testing.T) {
	s, h := start(t, nil)
	v := newView(1000, true)
	h.mu.Lock()
	h.views = []storage.View{v}
	h.mu.Unlock()
	p := dial(t, s)
	p.write(append(frameOf(keyLater, 1, 1, ""), frameOf(keyViews, 1, 2, "")...))
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.requests) == 2
	}, waitLimit, waitStep)
	p.Close()
	require.Eventually(t, func() bool { return v.released.Load() == 1 }, waitLimit, waitStep)
}

func TestAResponseTooLargeForAFrameClosesTheConnection(t *testing.T) {
	s, h := start(t, nil)
	v := &hugeView{memoryView{released: new(atomic.Int32)}}
	h.mu.Lock()
	h.views = []storage.View{v}
	h.mu.Unlock()
	p := dial(t, s)
	p.write(frameOf(keyViews, 1, 1, strings.Repeat("x", 10)))
	p.expectClosed()
	require.Eventually(t, func() bool { return v.released.Load() == 1 }, waitLimit, waitStep)
}

type hugeView struct{ memoryView }

func (hugeView) Len() int64 { return 1 << 31 }
