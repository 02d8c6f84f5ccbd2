package pluginv1

import (
	"fmt"
	"math/bits"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
)

// NewCodec makes gRPC's codec for protobuf with buffers that suit batches: gRPC's own takes 1 MiB for every message above
// 32 KiB, and clears it, which costs more than all the rest of a call. On the wire it is the same. It may be shared.
func NewCodec() encoding.CodecV2 { return &codec{pool: &buffers{}} }

type codec struct{ pool *buffers }

// Name implements encoding.CodecV2.
func (*codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(protobuf.Message)
	if !ok {
		return nil, fmt.Errorf("encode a plug-in's message: %T is none", v)
	}
	size := protobuf.Size(m)
	b := c.pool.Get(size)
	written, err := protobuf.MarshalOptions{UseCachedSize: true}.MarshalAppend((*b)[:0], m)
	if err != nil {
		c.pool.Put(b)
		return nil, fmt.Errorf("encode a plug-in's message: %w", err)
	}
	*b = written
	return mem.BufferSlice{mem.NewBuffer(b, c.pool)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(protobuf.Message)
	if !ok {
		return fmt.Errorf("decode a plug-in's message: %T is none", v)
	}
	b := data.MaterializeToBuffer(c.pool)
	defer b.Free()
	if err := protobuf.Unmarshal(b.ReadOnlyData(), m); err != nil {
		return fmt.Errorf("decode a plug-in's message: %w", err)
	}
	return nil
}

const (
	smallest = 10 // 1 KiB
	largest  = 22 // 4 MiB
)

// buffers is a mem.BufferPool of powers of two. What is in a buffer that it gives is left from the last use.
type buffers struct {
	sizes [largest + 1]sync.Pool // of buffers that have at least 1<<i bytes
}

// Get implements mem.BufferPool.
func (p *buffers) Get(n int) *[]byte {
	i := max(bits.Len(uint(max(n, 1)-1)), smallest)
	if i > largest {
		b := make([]byte, n)
		return &b
	}
	if b, ok := p.sizes[i].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<i)
	return &b
}

// Put implements mem.BufferPool.
func (p *buffers) Put(b *[]byte) {
	if i := bits.Len(uint(cap(*b))) - 1; i >= smallest && i <= largest {
		p.sizes[i].Put(b)
	}
}
