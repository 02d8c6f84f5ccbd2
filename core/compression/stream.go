package compression

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// firstRead is the least room that ReadLimited makes before it reads.
const firstRead = 4 << 10

// ReadLimited appends what r gives until its end to dst, at most limit bytes: the body of Decompress for a codec whose
// library reads streams. It takes memory as bytes come: at most twice as much as there are. Errors of r become ErrCorrupt,
// except that a stream that is longer gives ErrTooLarge.
func ReadLimited(dst []byte, r io.Reader, limit int) ([]byte, error) {
	out := dst
	for {
		if len(out) == cap(out) {
			out = slices.Grow(out, max(firstRead, len(out)-len(dst)))
		}
		room := out[len(out):cap(out)]
		if left := limit - (len(out) - len(dst)); left <= 0 {
			// Only the end of the stream may follow.
			room = room[:1]
		} else if len(room) > left {
			room = room[:left]
		}
		n, err := r.Read(room)
		out = out[:len(out)+n]
		if len(out)-len(dst) > limit {
			return dst, fmt.Errorf("%w: %d bytes", ErrTooLarge, limit)
		}
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return dst, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
}

// Appender is an io.Writer that appends to B.
type Appender struct {
	B []byte
}

// Write appends p; it never fails.
func (a *Appender) Write(p []byte) (int, error) {
	a.B = append(a.B, p...)
	return len(p), nil
}
