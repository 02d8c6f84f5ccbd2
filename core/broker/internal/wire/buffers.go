package wire

import (
	"math/bits"
	"sync"
)

const (
	minClass = 10 // 1 KiB, the smallest buffer
	maxClass = 24 // 16 MiB, room for a follower's fetch; larger buffers are left to the garbage collector
)

// Buffer is memory borrowed from [Buffers].
type Buffer struct {
	// B has the capacity that was asked for, or more; its length is the holder's business.
	B []byte
}

// Buffers lends buffers, in size classes of powers of two, so that a large request does not leave a large buffer behind
// with a connection that sends small ones. The zero value is ready; any goroutine may use it.
type Buffers struct {
	classes [maxClass - minClass + 1]sync.Pool
}

func classOf(n int) int { return max(minClass, bits.Len(uint(max(n, 1)-1))) }

// Get lends a buffer of length 0 with a capacity of at least n bytes.
func (p *Buffers) Get(n int) *Buffer {
	class := classOf(n)
	if class > maxClass {
		return &Buffer{B: make([]byte, 0, n)}
	}
	if b, ok := p.classes[class-minClass].Get().(*Buffer); ok {
		b.B = b.B[:0]
		return b
	}
	return &Buffer{B: make([]byte, 0, 1<<class)}
}

// Put takes a buffer back. Nothing may use it, or any slice of it, afterwards.
func (p *Buffers) Put(b *Buffer) {
	class := classOf(cap(b.B))
	if class > maxClass || cap(b.B) != 1<<class {
		return
	}
	p.classes[class-minClass].Put(b)
}
