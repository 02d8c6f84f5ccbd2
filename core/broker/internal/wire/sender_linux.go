package wire

import (
	"golang.org/x/sys/unix"
)

// writeMore writes bytes that others follow at once, so that the system puts both into one segment although TCP_NODELAY is
// set.
func writeMore(c *Conn, b []byte) error {
	if c.tcp == nil {
		_, err := c.nc.Write(b)
		return err
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for len(b) > 0 {
			n, err := unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			switch err {
			case nil:
				b = b[n:]
			case unix.EINTR:
			case unix.EAGAIN:
				return false
			default:
				failed = err
				return true
			}
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return err
}
