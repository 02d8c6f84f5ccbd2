//go:build !race

package port

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// quietly is the connection, which it takes over, with reads and writes of a few bytes that Go's scheduler isn't told of. It does all that the
// connection does.
//
// The scheduler is told of system calls as they may take long, and others shall run meanwhile. For that it wakes a thread that watches, when all were
// asleep: in a process that does little else than to send a few bytes now and then, about a third of what it costs. None of these takes long on a socket
// that doesn't block. The race detector learns from those calls what happens before what, so with it all stays as it is.
func quietly(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &quiet{conn, raw}
}

// few is how many bytes are copied in next to no time.
const few = 16 << 10

// quiet is a TCP connection.
type quiet struct {
	net.Conn
	raw syscall.RawConn
}

// Read implements net.Conn.
func (q *quiet) Read(b []byte) (int, error) {
	if len(b) == 0 || len(b) > few {
		return q.Conn.Read(b)
	}
	var n int
	var failed syscall.Errno
	err := q.raw.Read(func(fd uintptr) bool {
		n, failed = call(syscall.SYS_READ, fd, b)
		return failed != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case failed != 0:
		return 0, q.fault("read", failed)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (q *quiet) Write(b []byte) (written int, err error) {
	if len(b) == 0 || len(b) > few {
		return q.Conn.Write(b)
	}
	var failed syscall.Errno
	err = q.raw.Write(func(fd uintptr) bool {
		for written < len(b) {
			var n int
			if n, failed = call(syscall.SYS_WRITE, fd, b[written:]); failed != 0 {
				break
			}
			written += n
		}
		return failed != syscall.EAGAIN
	})
	if err == nil && failed != 0 {
		err = q.fault("write", failed)
	}
	return written, err
}

// fault is the error that a net.TCPConn returns.
func (q *quiet) fault(what string, failed syscall.Errno) error {
	return &net.OpError{Op: what, Net: "tcp", Source: q.LocalAddr(), Addr: q.RemoteAddr(), Err: os.NewSyscallError(what, failed)}
}

// call reads into b, or writes it: not empty. The socket must not block.
func call(what, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, failed := syscall.RawSyscall(what, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch failed {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, failed
		}
	}
}
