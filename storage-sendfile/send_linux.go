package storagesendfile

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// sender is the state of a sendfile loop. It lives in the pooled view together with its callback, so that sending
// allocates neither.
type sender struct {
	step func(socket uintptr) bool // bound once to view.sendSome
	file int
	sent int64
	err  error
}

func (s *sender) init(v *view) { s.step = v.sendSome }

// send gives the view to the kernel, chunk by chunk, at explicit offsets: the file's own position is neither used nor
// moved, so any number of views of a file can be sent at once. Between chunks that the socket won't take the goroutine
// waits in the network poller, where deadlines and Close of the connection reach it.
func (v *view) send(conn *net.TCPConn) (int64, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	v.sender.file, v.sender.sent, v.sender.err = v.file.Fd(), 0, nil
	if v.n > 0 {
		err = raw.Write(v.sender.step)
	}
	if err == nil {
		err = v.sender.err
	}
	// Sockets and file systems that can't do it say so with the first call.
	if v.sender.sent == 0 && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)) {
		return v.copyTo(conn)
	}
	return v.sender.sent, err
}

// sendSome sends until the view is through (true), something failed (true) or the socket is full (false).
func (v *view) sendSome(socket uintptr) bool {
	s := &v.sender
	for s.sent < v.n {
		offset := v.pos + s.sent
		n, err := unix.Sendfile(int(socket), s.file, &offset, int(min(v.n-s.sent, int64(v.storage.chunk))))
		switch {
		case n > 0:
			s.sent += int64(n)
		case err == unix.EAGAIN:
			return false
		case err == unix.EINTR:
		case err == nil:
			// End of file, inside of what was once written: somebody cut it.
			s.err = v.file.Error("send view of", storage.ErrFault)
			return true
		case err == unix.EIO:
			s.err = v.file.Error("send view of", err)
			return true
		default:
			s.err = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("sendfile", err)}
			return true
		}
	}
	return true
}
