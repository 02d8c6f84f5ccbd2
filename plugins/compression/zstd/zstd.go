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

// Codec is the zstd codec. Encoders and decoder make their working memory when first used, for at most as many calls at a
// time as there are processors; others wait.
type Codec struct {
	compression.Gate
	level    int
	encoders [zstd.SpeedBestCompression + 1]encoder // by the library's level
	decoder  *zstd.Decoder
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
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)),
		zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &Codec{level: o.Level, decoder: d}, nil
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
	room := min(limit, max(firstRoom, c.expected(src)))
	out := dst
	for {
		// The library decodes into the capacity it is given and no further, so it is given more by and by: a few bytes can
		// claim, and make, a lot of output.
		out = slices.Grow(out[:len(dst)], room)
		room = min(limit, max(room, cap(out)-len(dst)))
		made, err := c.decoder.DecodeAll(src, out[:len(dst):len(dst)+room])
		switch {
		case err == nil:
			return made, nil
		case !errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return dst, fmt.Errorf("zstd: %w: %w", compression.ErrCorrupt, err)
		case room >= limit:
			return dst, fmt.Errorf("zstd: %w: %d bytes", compression.ErrTooLarge, limit)
		}
		room = min(limit, 2*room)
	}
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
