// Package lz4 is the lz4 codec of Kafka's record batches (codec id 3), read and written with pierrec/lz4.
//
// A block is an lz4 frame. Written are frames as Kafka's KafkaLZ4BlockOutputStream makes them: independent blocks of 64 KiB,
// no checksums but the header's, no content size. Read is everything the frame format has, linked blocks and checksums
// included. The wrong header checksum of message format 0 is the business of core/record, which knows the format.
package lz4

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Kafka's numbers for compression.lz4.level. Its default stands for lz4's fast compressor, every other number for the
// high-compression one.
const (
	minLevel     = 1
	defaultLevel = 9
	maxLevel     = 17
)

const (
	// frameHeader is the magic number, the flags (version 1, independent blocks), the block size (64 KiB), and the checksum
	// of the two, which never changes.
	frameHeader = "\x04\x22\x4d\x18" + "\x60" + "\x40" + "\x82"
	blockSize   = 64 << 10
	// stored marks, in a block's length, a block that is not compressed.
	stored = 1 << 31
	// endMark is the block length that ends a frame.
	endMark = 0
)

// Options are what can be set in the YAML file.
type Options struct {
	Level int `yaml:"level" doc:"1 to 17 as Kafka counts them: 9 is the fast compressor, others are slower and smaller"`
}

// DefaultOptions are Kafka's.
func DefaultOptions() Options { return Options{Level: defaultLevel} }

// Validate checks the level.
func (o Options) Validate() error {
	if err := checkLevel(o.Level); err != nil {
		return config.At("level", err)
	}
	return nil
}

func checkLevel(level int) error {
	if level < minLevel || level > maxLevel {
		return fmt.Errorf("%w: lz4 has %d to %d, not %d", compression.ErrLevel, minLevel, maxLevel, level)
	}
	return nil
}

// NewFactory returns the factory for the broker's composition.
func NewFactory() compression.Factory {
	return plugin.NewFactory("lz4", "lz4 frames: the fastest, with levels", DefaultOptions,
		func(o Options, _ compression.Settings) (compression.Codec, error) { return New(o) })
}

// Codec is the lz4 codec. Its compressors and readers are pooled; one is taken for each call.
type Codec struct {
	compression.Gate
	level   int
	fast    sync.Pool // of *lz4.Compressor
	high    sync.Pool // of *lz4.CompressorHC
	readers sync.Pool // of *reader
}

// reader is a pooled reader with the source that it reads from.
type reader struct {
	src bytes.Reader
	z   *lz4.Reader
}

// New makes a codec. The error is that of Options.Validate.
func New(o Options) (*Codec, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Codec{level: o.Level}
	c.fast.New = func() any { return new(lz4.Compressor) }
	c.high.New = func() any { return new(lz4.CompressorHC) }
	return c, nil
}

// ID is record.LZ4.
func (c *Codec) ID() record.Codec { return record.LZ4 }

// CheckLevel implements compression.Leveled: 1 to 17.
func (c *Codec) CheckLevel(level int) error { return checkLevel(level) }

// Compress implements compression.Codec.
func (c *Codec) Compress(dst, src []byte) ([]byte, error) { return c.CompressLevel(dst, src, c.level) }

// CompressLevel implements compression.Leveled.
func (c *Codec) CompressLevel(dst, src []byte, level int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	if err := checkLevel(level); err != nil {
		return dst, err
	}
	z, pool := c.compressor(level)
	defer pool.Put(z)
	out := append(dst, frameHeader...)
	for len(src) > 0 {
		block := src[:min(len(src), blockSize)]
		src = src[len(block):]
		out = slices.Grow(out, 4+len(block))
		at := len(out)
		// With no more room than the block itself has, the library says 0 for what does not get smaller.
		n, err := z.CompressBlock(block, out[at+4:at+4+len(block)])
		length := uint32(n)
		if err != nil || n == 0 || n >= len(block) {
			n = copy(out[at+4:at+4+len(block)], block)
			length = uint32(n) | stored
		}
		binary.LittleEndian.PutUint32(out[at:at+4], length)
		out = out[:at+4+n]
	}
	return binary.LittleEndian.AppendUint32(out, endMark), nil
}

// compressor is what the library has for either kind of level.
type compressor interface {
	CompressBlock(src, dst []byte) (int, error)
}

// compressor takes the compressor of a level out of its pool, which is returned, too.
func (c *Codec) compressor(level int) (compressor, *sync.Pool) {
	if level == defaultLevel {
		return c.fast.Get().(*lz4.Compressor), &c.fast
	}
	z := c.high.Get().(*lz4.CompressorHC)
	// The library's levels 1 to 9 are powers of two from 1<<9 on.
	z.Level = lz4.CompressionLevel(1 << (8 + min(level, 9)))
	return z, &c.high
}

// Decompress implements compression.Codec.
func (c *Codec) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	r, _ := c.readers.Get().(*reader)
	if r == nil {
		r = &reader{z: lz4.NewReader(nil)}
		if err := r.z.Apply(lz4.ConcurrencyOption(1)); err != nil {
			return dst, fmt.Errorf("lz4: %w", err)
		}
	}
	defer func() {
		r.src.Reset(nil)
		c.readers.Put(r)
	}()
	// The library takes the end of its source for the end of a frame, also where no frame has begun.
	if len(src) < len(frameHeader) {
		return dst, fmt.Errorf("lz4: %w: frame of %d bytes", compression.ErrCorrupt, len(src))
	}
	r.src.Reset(src)
	r.z.Reset(&r.src)
	out, err := compression.ReadLimited(dst, r.z, limit)
	if err != nil {
		return dst, fmt.Errorf("lz4: %w", err)
	}
	return out, nil
}
