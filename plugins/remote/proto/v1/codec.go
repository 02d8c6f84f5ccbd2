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

// NewCodec makes gRPC's codec for protobuf with buffers that suit batches, and messages that need no reflection: gRPC's own takes 1 MiB for every message above
// 32 KiB, and clears it, which costs more than all the rest of a call. On the wire it is the same. It may be shared.
func NewCodec() encoding.CodecV2 { return &codec{pool: &buffers{}} }

type codec struct{ pool *buffers }

// Name implements encoding.CodecV2.
func (*codec) Name() string { return proto.Name }

// outgoing is a message that writes itself.
type outgoing interface {
	// size is how many bytes append will add.
	size() int
	append(b []byte) ([]byte, error)
}

// Marshal implements encoding.CodecV2.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(outgoing)
	if !ok {
		plain, is := v.(protobuf.Message)
		if !is {
			return nil, fmt.Errorf("encode a plug-in's message: %T is none", v)
		}
		m = message{plain}
	}
	b := c.pool.Get(m.size())
	written, err := m.append((*b)[:0])
	if err != nil {
		c.pool.Put(b)
		return nil, fmt.Errorf("encode a plug-in's message: %w", err)
	}
	*b = written
	return mem.BufferSlice{mem.NewBuffer(b, c.pool)}, nil
}

// message is a generated message.
type message struct{ protobuf.Message }

func (m message) size() int { return protobuf.Size(m.Message) }
func (m message) append(b []byte) ([]byte, error) {
	return protobuf.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m.Message)
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) (err error) {
	b := data.MaterializeToBuffer(c.pool)
	defer b.Free()
	switch m := v.(type) {
	case *PartitionTask:
		err = m.keep(b)
	case *PartitionAnswer:
		err = m.decode(b.ReadOnlyData())
	case protobuf.Message:
		err = protobuf.Unmarshal(b.ReadOnlyData(), m)
	default:
		err = fmt.Errorf("%T is none", v)
	}
	if err != nil {
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
