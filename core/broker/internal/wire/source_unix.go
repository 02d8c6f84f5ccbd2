//go:build unix

package wire

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/barnabas-mq/barnabas/core/quiet"
)

// source reads from a connection. Unlike net.Conn it needs no buffer while it waits: readNew takes one from the pool only
// when there are bytes for it. And it says so before it waits.
type source struct {
	conn net.Conn
	raw  syscall.RawConn // nil when the connection has none, as a TLS one
	// idle is called before a wait, by the goroutine that reads. After an error nothing is read. Set before the first read.
	idle   func() error
	waited bool // since whoever reads set it to false

	// What the callbacks work on: they are made once, so that reading allocates nothing.
	try, tryInto func(fd uintptr) bool
	pool         *Buffers
	size         int
	buf          *Buffer
	into         []byte
	n            int
	err          error
}

// attach makes s read from c. s must not be moved afterwards.
func (s *source) attach(c net.Conn) {
	s.conn = c
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			s.raw = raw
			s.try, s.tryInto = s.tryRead, s.tryReadInto
		}
	}
}

// flows says that what was read since waited was set to false was there already, and that idle is called before a wait.
func (s *source) flows() bool { return s.raw != nil && !s.waited }

// read waits for bytes and reads them into p, which isn't empty. Deadlines of the connection hold.
func (s *source) read(p []byte) (int, error) {
	if s.raw == nil {
		return s.conn.Read(p)
	}
	s.into, s.n, s.err = p, 0, nil
	err := s.raw.Read(s.tryInto)
	s.into = nil
	return s.n, s.outcome(err)
}

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
	if err = s.outcome(err); err != nil {
		if b != nil {
			pool.Put(b)
		}
		return nil, err
	}
	b.B = b.B[:s.n]
	return b, nil
}

// outcome is the error of a read that ended with err.
func (s *source) outcome(err error) error {
	switch {
	case err != nil:
		return err
	case s.err != nil:
		return s.err
	case s.n == 0:
		return io.EOF
	}
	return nil
}

// tryRead reads once into a new buffer and tells whether that was enough: false makes the runtime wait until the descriptor is readable.
func (s *source) tryRead(fd uintptr) bool {
	if s.buf == nil {
		s.buf = s.pool.Get(s.size)
	}
	if s.once(fd, s.buf.B[:cap(s.buf.B)]) {
		return true
	}
	s.pool.Put(s.buf)
	s.buf = nil
	return s.rest()
}

// tryReadInto is tryRead into the caller's bytes.
func (s *source) tryReadInto(fd uintptr) bool { return s.once(fd, s.into) || s.rest() }

// once reads once, and says whether there was anything: bytes, the end, or an error.
func (s *source) once(fd uintptr, p []byte) bool {
	n, err := quiet.Read(fd, p)
	switch err {
	case nil:
		s.n = n
	case syscall.EAGAIN:
		return false
	default:
		s.err = os.NewSyscallError("read", err)
	}
	return true
}

// rest is told before a wait, and says whether there is none to be.
func (s *source) rest() bool {
	s.waited = true
	if s.idle == nil {
		return false
	}
	s.err = s.idle()
	return s.err != nil
}
