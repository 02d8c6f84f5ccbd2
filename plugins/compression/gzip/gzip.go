// Package gzip is the gzip codec of Kafka's record batches (codec id 1): a gzip stream (RFC 1952), read and written with
// klauspost/compress.
package gzip

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Options are what can be set in the YAML file.
type Options struct {
	Level int `yaml:"level" doc:"1 (fastest) to 9 (smallest); -1 is the library's default"`
}

// DefaultOptions are Kafka's.
func DefaultOptions() Options { return Options{Level: gzip.DefaultCompression} }

// Validate checks the level.
func (o Options) Validate() error {
	if err := checkLevel(o.Level); err != nil {
		return config.At("level", err)
	}
	return nil
}

func checkLevel(level int) error {
	if level == gzip.DefaultCompression || level >= gzip.BestSpeed && level <= gzip.BestCompression {
		return nil
	}
	return fmt.Errorf("%w: gzip has -1 and 1 to 9, not %d", compression.ErrLevel, level)
}

// NewFactory returns the factory for the broker's composition.
func NewFactory() compression.Factory {
	return plugin.NewFactory("gzip", "gzip: small and slow, read by every client", DefaultOptions,
		func(o Options, _ compression.Settings) (compression.Codec, error) { return New(o) })
}

// Codec is the gzip codec. Its writers and readers are pooled; one is taken for each call.
type Codec struct {
	compression.Gate
	level   int
	writers [gzip.BestCompression + 2]sync.Pool // of *gzip.Writer, by level+1
	readers sync.Pool                           // of *reader
}

// reader is a pooled reader with the source that it reads from.
type reader struct {
	src bytes.Reader
	z   gzip.Reader
}

// New makes a codec. The error is that of Options.Validate.
func New(o Options) (*Codec, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Codec{level: o.Level}, nil
}

// ID is record.Gzip.
func (c *Codec) ID() record.Codec { return record.Gzip }

// CheckLevel implements compression.Leveled: -1 and 1 to 9.
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
	out := compression.Appender{B: dst}
	pool := &c.writers[level+1]
	w, _ := pool.Get().(*gzip.Writer)
	if w == nil {
		var err error
		if w, err = gzip.NewWriterLevel(&out, level); err != nil {
			return dst, fmt.Errorf("gzip level %d: %w", level, err)
		}
	} else {
		w.Reset(&out)
	}
	_, err := w.Write(src)
	if closed := w.Close(); err == nil {
		err = closed
	}
	w.Reset(io.Discard) // the pool must not keep the caller's memory
	pool.Put(w)
	if err != nil {
		return dst, fmt.Errorf("gzip: %w", err)
	}
	return out.B, nil
}

// Decompress implements compression.Codec. A block may be several gzip streams, one behind the other.
func (c *Codec) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	r, _ := c.readers.Get().(*reader)
	if r == nil {
		r = new(reader)
	}
	defer func() {
		r.src.Reset(nil)
		c.readers.Put(r)
	}()
	r.src.Reset(src)
	if err := r.z.Reset(&r.src); err != nil {
		return dst, fmt.Errorf("gzip: %w: %w", compression.ErrCorrupt, err)
	}
	out, err := compression.ReadLimited(dst, &r.z, limit)
	if err != nil {
		return dst, fmt.Errorf("gzip: %w", err)
	}
	return out, nil
}
