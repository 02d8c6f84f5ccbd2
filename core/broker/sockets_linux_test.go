package broker_test

import (
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// TestReceiveBufferOfASocket looks at the socket that a broker has for a connection: it runs in this process.
func TestReceiveBufferOfASocket(t *testing.T) {
	const name = "socket.receive.buffer.bytes"
	own := receiveBufferAt(t) // what the system gives when nobody asks for a size
	require.Equal(t, own, receiveBufferAt(t, brokertest.Property(name, "102400")))
	require.Equal(t, own, receiveBufferAt(t, brokertest.Property(name, "-1")))
	require.Equal(t, 2*32<<10, receiveBufferAt(t, brokertest.Property(name, "32768")), "Linux doubles it, for what it keeps beside the bytes")
	require.Equal(t, 2*64<<10, receiveBufferAt(t, brokertest.Property(name, "65536")))
}

// receiveBufferAt is SO_RCVBUF of the socket at the broker's end of a new connection to a broker with those options.
func receiveBufferAt(t *testing.T, options ...brokertest.Option) int {
	t.Helper()
	b := testbroker.Start(t, options...)
	c, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}) // ApiVersions, version 0, no client id
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1)) // so the connection has been taken
	require.NoError(t, err)
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		require.NoError(t, err)
		peer, err := unix.Getpeername(fd)
		if at, ok := peer.(*unix.SockaddrInet4); err != nil || !ok || at.Port != c.LocalAddr().(*net.TCPAddr).Port {
			continue
		}
		n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		require.NoError(t, err)
		return n
	}
	require.Fail(t, "no socket is the other end of the connection")
	return 0
}
