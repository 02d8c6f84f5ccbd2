package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	// readAhead is the buffer that a connection gets when bytes arrive: large enough for a whole small request.
	readAhead = 8 << 10
	// trust is how many times the bytes that came the buffer of an unfinished frame may be. A frame whose first part came
	// with the read-ahead buffer gets room for 128 KiB at once, so that an ordinary produce request is never copied twice.
	trust = 16
)

var errEmptyFrame = errors.New("frame without a header")

// frameReader cuts a byte stream into frames: a size of four bytes and as many bytes as it says. It belongs to one
// goroutine.
type frameReader struct {
	src   source
	pool  *Buffers
	max   int            // the largest size that is accepted
	moved *atomic.Uint32 // rises with every read

	ahead *Buffer // bytes that were read and not yet used: ahead.B[from:]; nil when there are none
	from  int
	frame *Buffer // holds the current frame when the read-ahead buffer doesn't

	prefix  [4]byte // what came of a size field before the peer paused
	nprefix int
}

// next returns the next frame, without its size field, valid until release or the next call. io.EOF means that the stream
// ended between two frames.
func (f *frameReader) next() ([]byte, error) {
	f.release()
	f.src.waited = false
	size, err := f.size()
	if err != nil {
		return nil, err
	}
	switch {
	case size < 0 || size > f.max:
		return nil, fmt.Errorf("frame of %d bytes: the limit is %d", size, f.max)
	case size == 0:
		return nil, errEmptyFrame
	}
	if f.ahead != nil && len(f.ahead.B)-f.from >= size {
		frame := f.ahead.B[f.from : f.from+size : f.from+size]
		f.from += size
		return frame, nil
	}
	return f.body(size)
}

// peek tells the key of the frame that next will return, if all of it is there already.
func (f *frameReader) peek() (key int16, ok bool) {
	if f.ahead == nil {
		return 0, false
	}
	b := f.ahead.B[f.from:]
	if len(b) < 6 {
		return 0, false
	}
	if size := int32(binary.BigEndian.Uint32(b)); size < 2 || int64(size) > int64(len(b)-4) {
		return 0, false
	}
	return int16(binary.BigEndian.Uint16(b[4:])), true
}

// release gives back the buffers that nothing lies in any more. The frame that next returned is gone then.
func (f *frameReader) release() {
	if f.frame != nil {
		f.pool.Put(f.frame)
		f.frame = nil
	}
	if f.ahead != nil && f.from == len(f.ahead.B) {
		f.pool.Put(f.ahead)
		f.ahead = nil
	}
}

// close gives back everything.
func (f *frameReader) close() {
	if f.ahead != nil {
		f.from = len(f.ahead.B)
	}
	f.release()
}

// size reads a size field.
func (f *frameReader) size() (int, error) {
	for {
		if f.ahead != nil {
			n := copy(f.prefix[f.nprefix:], f.ahead.B[f.from:])
			f.nprefix += n
			f.from += n
		}
		if f.nprefix == len(f.prefix) {
			f.nprefix = 0
			return int(int32(binary.BigEndian.Uint32(f.prefix[:]))), nil
		}
		f.release() // a buffer isn't kept while waiting
		if err := f.fill(); err != nil {
			if f.nprefix > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
}

// fill waits for bytes and reads them into a new read-ahead buffer.
func (f *frameReader) fill() error {
	b, err := f.src.readNew(f.pool, readAhead)
	f.ahead, f.from = b, 0
	f.moved.Add(1)
	return err
}

// body reads a frame that isn't in the read-ahead buffer as a whole.
func (f *frameReader) body(size int) ([]byte, error) {
	var have []byte
	if f.ahead != nil {
		have = f.ahead.B[f.from:]
	}
	frame := f.pool.Get(min(size, trust*max(len(have), 1)))
	frame.B = append(frame.B, have...)
	if f.ahead != nil {
		f.from = len(f.ahead.B)
	}
	f.release()
	f.frame = frame
	for len(frame.B) < size {
		if len(frame.B) == cap(frame.B) {
			grown := f.pool.Get(min(size, trust*len(frame.B)))
			grown.B = append(grown.B, frame.B...)
			f.pool.Put(frame)
			f.frame, frame = grown, grown
		}
		n, err := f.src.read(frame.B[len(frame.B):min(cap(frame.B), size)])
		frame.B = frame.B[:len(frame.B)+n]
		f.moved.Add(1)
		if err != nil && len(frame.B) < size {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return frame.B[:size:size], nil
}
