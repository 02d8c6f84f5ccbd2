//go:build unix

package quiet_test

import (
	"bytes"
	"crypto/rand"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/quiet"
)

// TestReadWrite does with a pair of sockets all that can come of it, with few bytes and with many.
func TestReadWrite(t *testing.T) {
	for _, size := range []int{1, 1000, 1 << 20} {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		require.NoError(t, err)
		for _, fd := range fds {
			require.NoError(t, syscall.SetNonblock(fd, true))
		}
		here, there := uintptr(fds[0]), uintptr(fds[1])
		into := make([]byte, size)

		_, err = quiet.Read(here, into)
		require.Equal(t, syscall.EAGAIN, err, "nothing is there")

		n, err := quiet.Write(here, nil)
		require.NoError(t, err)
		require.Zero(t, n)

		sent := make([]byte, size)
		_, _ = rand.Read(sent)
		var came []byte
		for rest := sent; len(came) < size; {
			n, err := quiet.Write(here, rest)
			if err != nil {
				require.Equal(t, syscall.EAGAIN, err)
			} else {
				rest = rest[n:]
			}
			n, err = quiet.Read(there, into)
			require.NoError(t, err)
			came = append(came, into[:n]...)
		}
		require.True(t, bytes.Equal(sent, came))

		for err = nil; err == nil; {
			_, err = quiet.Write(here, sent)
		}
		require.Equal(t, syscall.EAGAIN, err, "there is no room")

		require.NoError(t, syscall.Close(fds[0]))
		for n = 1; n > 0; {
			n, err = quiet.Read(there, into)
			require.NoError(t, err)
		}
		_, err = quiet.Write(there, sent[:1])
		require.Equal(t, syscall.EPIPE, err)

		require.NoError(t, syscall.Close(fds[1]))
		_, err = quiet.Read(there, into)
		require.Equal(t, syscall.EBADF, err)
	}
}
