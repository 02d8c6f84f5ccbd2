// Package snappy is the snappy codec of Kafka's record batches (codec id 2), read and written with golang/snappy.
//
// Kafka's Java clients do not write snappy's own framing but that of xerial's snappy-java: a header of 16 bytes (magic,
// version 1, compatible with 1), then blocks: a 32-bit length, big-endian, and a raw snappy block. Other clients write one
// raw block without any frame. Both are read; the frame is written, with blocks of 32 KiB as snappy-java makes them.
package snappy

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/golang/snappy"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

const (
	// header is the magic number and the two versions of xerial's frame.
	header    = "\x82SNAPPY\x00" + "\x00\x00\x00\x01" + "\x00\x00\x00\x01"
	magicSize = 8
	blockSize = 32 << 10

	// maxRatio is more than raw snappy can expand by: its best instruction makes 64 bytes of 3.
	maxRatio = 22
)

// Options are what can be set in the YAML file: nothing. Snappy has no levels.
type Options struct{}

// NewFactory returns the factory for the broker's composition.
func NewFactory() compression.Factory {
	return plugin.NewFactory("snappy", "snappy in xerial's framing: fast, no levels", func() Options { return Options{} },
		func(o Options, _ compression.Settings) (compression.Codec, error) { return New(o), nil })
}

// Codec is the snappy codec.
type Codec struct {
	compression.Gate
}

// New makes a codec.
func New(Options) *Codec { return &Codec{} }

// ID is record.Snappy.
func (c *Codec) ID() record.Codec { return record.Snappy }

// Compress implements compression.Codec.
func (c *Codec) Compress(dst, src []byte) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	out := append(dst, header...)
	for len(src) > 0 {
		block := src[:min(len(src), blockSize)]
		src = src[len(block):]
		out = slices.Grow(out, 4+snappy.MaxEncodedLen(len(block)))
		at := len(out)
		made := snappy.Encode(out[at+4:cap(out)], block)
		binary.BigEndian.PutUint32(out[at:at+4], uint32(len(made)))
		out = out[:at+4+len(made)]
	}
	return out, nil
}

// Decompress implements compression.Codec. Frames may follow each other; what does not begin with a frame is one raw block.
func (c *Codec) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	if !framed(src) {
		out, err := appendBlock(dst, src, limit)
		if err != nil {
			return dst, err
		}
		return out, nil
	}
	out := dst
	for len(src) > 0 {
		if framed(src) {
			if len(src) < len(header) {
				return dst, fmt.Errorf("snappy: %w: frame header of %d bytes", compression.ErrCorrupt, len(src))
			}
			src = src[len(header):]
			continue
		}
		if len(src) < 4 {
			return dst, fmt.Errorf("snappy: %w: %d bytes where a block length belongs", compression.ErrCorrupt, len(src))
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return dst, fmt.Errorf("snappy: %w: block of %d bytes, %d are left", compression.ErrCorrupt, n, len(src))
		}
		var err error
		if out, err = appendBlock(out, src[:n], limit-(len(out)-len(dst))); err != nil {
			return dst, err
		}
		src = src[n:]
	}
	return out, nil
}

func framed(b []byte) bool { return len(b) >= magicSize && string(b[:magicSize]) == header[:magicSize] }

// appendBlock decodes one raw block behind dst, at most limit bytes.
func appendBlock(dst, block []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	switch {
	case err != nil:
		return dst, fmt.Errorf("snappy: %w: %w", compression.ErrCorrupt, err)
	case n > maxRatio*len(block):
		return dst, fmt.Errorf("snappy: %w: %d bytes claimed to come out of %d", compression.ErrCorrupt, n, len(block))
	case n > limit:
		return dst, fmt.Errorf("snappy: %w: %d bytes", compression.ErrTooLarge, limit)
	}
	out := slices.Grow(dst, n)
	at := len(out)
	if _, err := snappy.Decode(out[at:at+n], block); err != nil {
		return dst, fmt.Errorf("snappy: %w: %w", compression.ErrCorrupt, err)
	}
	return out[:at+n], nil
}
