package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// chunks is a connection that gives its bytes in pieces.
type chunks struct {
	net.Conn
	pieces [][]byte
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.pieces) > 0 && len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	c.pieces[0] = c.pieces[0][n:]
	return n, nil
}

func (*chunks) SetReadDeadline(time.Time) error { return nil }

// FuzzFrames feeds any bytes, in pieces of any size, to the frame reader: it must find the frames that a plain cut of the
// stream gives, and no buffer may be much larger than what came.
func FuzzFrames(f *testing.F) {
	one := frameOf(keyEcho, 1, 1, "body")
	f.Add(append(bytes.Clone(one), one...), uint8(3))
	f.Add([]byte{0, 0, 0, 0}, uint8(1))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1}, uint8(2))
	f.Add([]byte{0, 0, 0x20, 0, 1, 2, 3}, uint8(5))
	f.Add(append([]byte{0, 1, 0, 0}, make([]byte, 70_000)...), uint8(255))
	f.Fuzz(func(t *testing.T, stream []byte, step uint8) {
		const limit = 1 << 20
		c := &chunks{}
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), int(step)*37+1)
			c.pieces = append(c.pieces, bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		var moved atomic.Uint32
		r := frameReader{pool: new(Buffers), max: limit, moved: &moved}
		r.src.attach(c)
		for rest := stream; ; {
			frame, err := r.next()
			if len(rest) < 4 {
				want := io.EOF
				if len(rest) > 0 {
					want = io.ErrUnexpectedEOF
				}
				if !errors.Is(err, want) {
					t.Fatalf("at the end: %v", err)
				}
				break
			}
			size := int(int32(binary.BigEndian.Uint32(rest)))
			if size <= 0 || size > limit {
				if err == nil {
					t.Fatalf("a frame of %d bytes was accepted", size)
				}
				break
			}
			if len(rest)-4 < size {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("an unfinished frame: %v", err)
				}
				break
			}
			if err != nil || !bytes.Equal(frame, rest[4:4+size]) {
				t.Fatalf("frame of %d bytes: %v", size, err)
			}
			if cap(frame) != len(frame) {
				t.Fatal("appending to a frame would reach the next")
			}
			rest = rest[4+size:]
		}
		r.close()
		if r.ahead != nil || r.frame != nil {
			t.Fatal("buffers are kept")
		}
	})
}

// FuzzHeader parses any frame in every form.
func FuzzHeader(f *testing.F) {
	for form := Refused; form <= Unread; form++ {
		f.Add(uint8(form), frameOf(keyEcho, 1, 1, "\x00body")[4:])
		f.Add(uint8(form), frameOf(keyEcho, 9, 1, "\x02\x01\x02ab\x07\x00body")[4:])
	}
	f.Fuzz(func(t *testing.T, form uint8, frame []byte) {
		h, err := parseKey(frame)
		if err != nil {
			if len(frame) >= 8 {
				t.Fatal(err)
			}
			return
		}
		if h.parse(Form(form%6)) != nil {
			return
		}
		if h.body != nil && !bytes.HasSuffix(frame, h.body) || len(h.clientID)+len(h.body) > len(frame)-8 {
			t.Fatal("the header took bytes that aren't there")
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	s, _ := start(b, nil)
	p := dial(b, s)
	p.SetDeadline(time.Time{})
	frame := frameOf(keySilent, 1, 1, "a small body")
	echo := frameOf(keyEcho, 1, 1, "a small body")
	answer := make([]byte, 4+4+len("a small body"))
	b.ReportAllocs()
	for b.Loop() {
		p.write(frame)
		p.write(echo)
		if _, err := io.ReadFull(p, answer); err != nil {
			b.Fatal(err)
		}
	}
}
