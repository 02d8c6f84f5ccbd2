//go:build unix

package wire

import "syscall"

// peerGone waits until the peer has closed the connection, and reports true, or until it sends something, the read deadline
// passes or the connection is closed here, and reports false. It takes no byte from the stream.
func (c *Conn) peerGone() bool {
	if c.tcp == nil {
		return false
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	var b [1]byte
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
			switch err {
			case nil:
				gone = n == 0
				return true
			case syscall.EINTR:
			case syscall.EAGAIN:
				return false
			default: // reset
				gone = true
				return true
			}
		}
	})
	return err == nil && gone
}
