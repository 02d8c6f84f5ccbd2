package compression

import (
	"context"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Set is the codecs that a program has, one for each id. It is a record.Codecs, and a plugin.Component that starts and stops
// all of them. It is immutable and safe for use from any goroutine.
type Set struct {
	byID  [record.Zstd + 1]Codec
	order []Codec
}

// NewSet makes a set of codecs. Two with the same id are an error, and so is one whose id does not exist.
func NewSet(codecs ...Codec) (*Set, error) {
	s := &Set{}
	for _, c := range codecs {
		id := c.ID()
		switch {
		case id == record.None || !id.Valid():
			return nil, fmt.Errorf("compression: codec id %d does not exist", id)
		case s.byID[id] != nil:
			return nil, fmt.Errorf("compression: two codecs for %s", id)
		}
		s.byID[id] = c
		s.order = append(s.order, c)
	}
	return s, nil
}

// Get returns the codec with an id, ErrMissing when there is none.
func (s *Set) Get(id record.Codec) (Codec, error) {
	if id <= record.None || !id.Valid() || s.byID[id] == nil {
		return nil, fmt.Errorf("%w: %s", ErrMissing, id)
	}
	return s.byID[id], nil
}

// ByName is Get for a name such as "zstd".
func (s *Set) ByName(name string) (Codec, error) {
	id, err := record.ParseCodec(name)
	if err != nil {
		return nil, err
	}
	return s.Get(id)
}

// IDs lists the codecs of the set, in the order they were given.
func (s *Set) IDs() []record.Codec {
	ids := make([]record.Codec, len(s.order))
	for i, c := range s.order {
		ids[i] = c.ID()
	}
	return ids
}

// Start starts the codecs in the order they were given. When one fails, those before it are stopped again.
func (s *Set) Start(ctx context.Context) error {
	for i, c := range s.order {
		if err := c.Start(ctx); err != nil {
			err = fmt.Errorf("start codec %s: %w", c.ID(), err)
			return errors.Join(err, stop(ctx, s.order[:i]))
		}
	}
	return nil
}

// Stop stops all codecs, the last first, whether or not one of them fails to.
func (s *Set) Stop(ctx context.Context) error { return stop(ctx, s.order) }

func stop(ctx context.Context, codecs []Codec) error {
	var errs []error
	for i := len(codecs) - 1; i >= 0; i-- {
		if err := codecs[i].Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop codec %s: %w", codecs[i].ID(), err))
		}
	}
	return errors.Join(errs...)
}

// Compress appends src, compressed with the codec id, to dst. Level 0 is the codec's own; any other is ErrLevel for a codec
// without levels. record.None copies.
func (s *Set) Compress(id record.Codec, level int, dst, src []byte) ([]byte, error) {
	if id == record.None {
		return append(dst, src...), nil
	}
	c, err := s.Get(id)
	if err != nil {
		return dst, err
	}
	if level == 0 {
		return c.Compress(dst, src)
	}
	l, ok := c.(Leveled)
	if !ok {
		return dst, fmt.Errorf("%w: %s has none, %d was asked for", ErrLevel, id, level)
	}
	return l.CompressLevel(dst, src, level)
}

// Decompress appends what the block src of the codec id holds to dst, at most limit bytes. record.None copies.
func (s *Set) Decompress(id record.Codec, dst, src []byte, limit int) ([]byte, error) {
	if id == record.None {
		if len(src) > limit {
			return dst, fmt.Errorf("%w: %d bytes, %d allowed", ErrTooLarge, len(src), limit)
		}
		return append(dst, src...), nil
	}
	c, err := s.Get(id)
	if err != nil {
		return dst, err
	}
	return c.Decompress(dst, src, limit)
}
