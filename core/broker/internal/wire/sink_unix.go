//go:build unix

package wire

import (
	"os"
	"syscall"

	"github.com/barnabas-mq/barnabas/core/quiet"
)

// sink is what a sender works on while it writes to a socket: it is made once, so that writing allocates nothing.
type sink struct {
	raw syscall.RawConn // nil before the first write
	try func(fd uintptr) bool
	b   []byte
	err error
}

// write writes all of b to c.
func (s *sender) write(c *Conn, b []byte) error {
	w := &s.sink
	if w.raw == nil {
		if c.tcp == nil {
			_, err := c.nc.Write(b)
			return err
		}
		raw, err := c.tcp.SyscallConn()
		if err != nil {
			return err
		}
		w.raw, w.try = raw, w.tryWrite
	}
	w.b, w.err = b, nil
	err := w.raw.Write(w.try)
	w.b = nil
	if err == nil {
		err = w.err
	}
	return err
}

// tryWrite writes until nothing is left, and tells whether that is so, or nothing more can be done: false makes the runtime wait for room.
func (w *sink) tryWrite(fd uintptr) bool {
	for len(w.b) > 0 {
		n, err := quiet.Write(fd, w.b)
		switch err {
		case nil:
			w.b = w.b[n:]
		case syscall.EAGAIN:
			return false
		default:
			w.err = os.NewSyscallError("write", err)
			return true
		}
	}
	return true
}
