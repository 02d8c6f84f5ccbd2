// Package zstd is the zstd codec of Kafka's record batches (codec id 4, KIP-110): zstd frames (RFC 8878), read and written
// with klauspost/compress.
package zstd

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Kafka's numbers for compression.zstd.level, which are those of the zstd library.
const (
	minLevel     = -131072
	defaultLevel = 3
	maxLevel     = 22
)

const (
	// window bounds what an encoder looks back on, and with it the memory that each of them keeps.
	window = 1 << 20
	// maxWindow is the largest window that is read: what the zstd library itself takes by default.
	maxWindow = 128 << 20
	// minBound is the least output that a decoder is bounded to, so that small limits need no decoder of their own.
	minBound = 1 << 20
	// firstRoom is the least room that is made for what comes out of a block.
	firstRoom = 16 << 10
	// plausible is how much more than the block's size is believed to come out, before it does.
	plausible = 32
)

// Options are what can be set in the YAML file.
type Options struct {
	Level int `yaml:"level" doc:"-131072 (fastest) to 22 (smallest)"`
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
		return fmt.Errorf("%w: zstd has %d to %d, not %d", compression.ErrLevel, minLevel, maxLevel, level)
	}
	return nil
}

// NewFactory returns the factory for the broker's composition.
func NewFactory() compression.Factory {
	return plugin.NewFactory("zstd", "zstd: nearly as fast as lz4, nearly as small as it gets", DefaultOptions,
		func(o Options, _ compression.Settings) (compression.Codec, error) { return New(o) })
}

// Codec is the zstd codec. Encoders make their working memory when first used, for at most as many calls at a time as there
// are processors; others wait. Decoders are pooled; one is taken for each call.
type Codec struct {
	compression.Gate
	level    int
	encoders [zstd.SpeedBestCompression + 1]encoder // by the library's level
	decoders sync.Pool                              // of *decoder
}

// decoder is a decoder and what bounds its output: the library knows no bound for a single call.
type decoder struct {
	z     *zstd.Decoder
	bound int
}

// encoder is made when first used.
type encoder struct {
	once sync.Once
	z    *zstd.Encoder
	err  error
}

// New makes a codec. The error is that of Options.Validate.
func New(o Options) (*Codec, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Codec{level: o.Level}, nil
}

// ID is record.Zstd.
func (c *Codec) ID() record.Codec { return record.Zstd }

// CheckLevel implements compression.Leveled: -131072 to 22.
func (c *Codec) CheckLevel(level int) error { return checkLevel(level) }

// Compress implements compression.Codec.
func (c *Codec) Compress(dst, src []byte) ([]byte, error) { return c.CompressLevel(dst, src, c.level) }

// CompressLevel implements compression.Leveled. The library has four levels; the nearest is taken.
func (c *Codec) CompressLevel(dst, src []byte, level int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	if err := checkLevel(level); err != nil {
		return dst, err
	}
	speed := zstd.EncoderLevelFromZstd(level)
	e := &c.encoders[speed]
	e.once.Do(func() {
		e.z, e.err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(speed),
			zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
			zstd.WithWindowSize(window),
			zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderCRC(false), // the batch has a checksum, and Kafka's writer adds none
			zstd.WithZeroFrames(true))
	})
	if e.err != nil {
		return dst, fmt.Errorf("zstd level %d: %w", level, e.err)
	}
	return e.z.EncodeAll(src, dst), nil
}

// Decompress implements compression.Codec. A block may be several frames, or none: no bytes are zstd for no bytes.
func (c *Codec) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	out := slices.Grow(dst, min(limit, max(firstRoom, c.expected(src))))
	made, err := c.decode(src, out[len(dst):len(dst)], limit)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || err == nil && len(made) > limit:
		return dst, fmt.Errorf("zstd: %w: %d bytes", compression.ErrTooLarge, limit)
	case err != nil:
		return dst, fmt.Errorf("zstd: %w: %w", compression.ErrCorrupt, err)
	case len(made) == 0:
		return dst, nil
	case len(made) <= cap(out)-len(dst) && &made[0] == &out[:len(dst)+1][len(dst)]:
		return out[:len(dst)+len(made)], nil
	}
	return append(dst, made...), nil // the room did not suffice
}

// decode decodes src into room, or more memory. What it makes is bounded by limit or by the window that src asks for,
// whichever is more: the library refuses a frame whose window, not only whose contents, is larger than its bound.
func (c *Codec) decode(src, room []byte, limit int) ([]byte, error) {
	bound := max(limit, minBound)
	for {
		d, err := c.bounded(bound)
		if err != nil {
			return nil, err
		}
		made, err := d.z.DecodeAll(src, room)
		c.decoders.Put(d)
		if !errors.Is(err, zstd.ErrWindowSizeExceeded) || bound >= maxWindow {
			return made, err
		}
		bound = maxWindow
	}
}

// bounded takes a decoder out of the pool that makes no more than bound bytes of a block, or little more.
func (c *Codec) bounded(bound int) (*decoder, error) {
	d, _ := c.decoders.Get().(*decoder)
	if d != nil && d.bound == bound {
		return d, nil
	}
	if d != nil {
		d.bound = bound
		return d, d.z.ResetWithOptions(nil, zstd.WithDecoderMaxMemory(uint64(bound)))
	}
	z, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(uint64(bound)),
		zstd.WithDecoderLowmem(true))
	return &decoder{z, bound}, err
}

// expected guesses how much will come out of src: what its first frame claims, where that is plausible.
func (c *Codec) expected(src []byte) int {
	most := uint64(plausible) * uint64(len(src))
	var h zstd.Header
	if h.Decode(src) == nil && h.HasFCS {
		most = min(most, h.FrameContentSize)
	}
	return int(most)
}
