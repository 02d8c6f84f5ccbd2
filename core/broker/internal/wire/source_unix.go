//go:build unix

package wire

import (
	"io"
	"net"
	"os"
	"syscall"
)

// source reads from a connection. Unlike net.Conn it needs no buffer while it waits: readNew takes one from the pool only
// when there are bytes for it.
type source struct {
	conn net.Conn
	raw  syscall.RawConn // nil when the connection has none, as a TLS one

	// What the callback works on: it is made once, so that reading allocates nothing.
	try  func(fd uintptr) bool
	pool *Buffers
	size int
	buf  *Buffer
	n    int
	err  error
}

// attach makes s read from c. s must not be moved afterwards.
func (s *source) attach(c net.Conn) {
	s.conn = c
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			s.raw = raw
			s.try = s.tryRead
		}
	}
}

// read waits for bytes and reads them into p. Deadlines of the connection hold.
func (s *source) read(p []byte) (int, error) { return s.conn.Read(p) }

// readNew waits for bytes and reads them into a new buffer of the pool, of which the caller is the owner. Without bytes
// there is an error and no buffer.
func (s *source) readNew(pool *Buffers, size int) (*Buffer, error) {
	if s.raw == nil {
		return readNewPlain(s.conn, pool, size)
	}
	s.pool, s.size, s.n, s.err = pool, size, 0, nil
	err := s.raw.Read(s.try)
	b := s.buf
	s.buf = nil
	switch {
	case err == nil && s.err != nil:
		err = os.NewSyscallError("read", s.err)
	case err == nil && s.n == 0:
		err = io.EOF
	}
	if err != nil {
		if b != nil {
			pool.Put(b)
		}
		return nil, err
	}
	b.B = b.B[:s.n]
	return b, nil
}

// tryRead reads once and tells whether that was enough: false makes the runtime wait until the descriptor is readable.
func (s *source) tryRead(fd uintptr) bool {
	if s.buf == nil {
		s.buf = s.pool.Get(s.size)
	}
	for {
		n, err := syscall.Read(int(fd), s.buf.B[:cap(s.buf.B)])
		switch err {
		case nil:
			s.n = n
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			s.pool.Put(s.buf)
			s.buf = nil
			return false
		default:
			s.err = err
			return true
		}
	}
}
