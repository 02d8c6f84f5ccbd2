//go:build unix

package port

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/barnabas-mq/barnabas/core/quiet"
)

// quietly is the connection, which it takes over, with reads and writes of a few bytes that wake no thread, see package quiet. It does all that the
// connection does.
func quietly(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &still{conn, raw}
}

// still is a TCP connection.
type still struct {
	net.Conn
	raw syscall.RawConn
}

// Read implements net.Conn.
func (s *still) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return s.Conn.Read(b)
	}
	var failed error
	err = s.raw.Read(func(fd uintptr) bool {
		n, failed = quiet.Read(fd, b)
		return failed != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, s.fault("read", failed)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (s *still) Write(b []byte) (written int, err error) {
	if len(b) == 0 {
		return s.Conn.Write(b)
	}
	var failed error
	err = s.raw.Write(func(fd uintptr) bool {
		for written < len(b) {
			var n int
			if n, failed = quiet.Write(fd, b[written:]); failed != nil {
				break
			}
			written += n
		}
		return failed != syscall.EAGAIN
	})
	if err == nil && failed != nil {
		err = s.fault("write", failed)
	}
	return written, err
}

// fault is the error that a net.TCPConn returns.
func (s *still) fault(what string, failed error) error {
	return &net.OpError{Op: what, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(what, failed)}
}
