package wire

import (
	"crypto/rand"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWrite writes to a peer that reads late, one that is gone, and to a connection that is closed meanwhile.
func TestWrite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	pair := func() (*Conn, *net.TCPConn) {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		there, err := l.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { c.Close(); there.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(waitLimit)))
		require.NoError(t, there.SetDeadline(time.Now().Add(waitLimit)))
		return &Conn{nc: c, tcp: c.(*net.TCPConn)}, there.(*net.TCPConn)
	}

	c, there := pair()
	all := make([]byte, 1000*30_001)
	_, _ = rand.Read(all)
	done := make(chan error, 1)
	go func() {
		var s sender
		for at := 0; at < len(all); at += 30_001 {
			if err := s.write(c, all[at:at+30_001]); err != nil {
				done <- err
				return
			}
		}
		done <- c.nc.Close()
	}()
	time.Sleep(50 * time.Millisecond) // the buffers are full then
	got, err := io.ReadAll(there)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.True(t, string(all) == string(got), "other bytes came, or not all")

	c, there = pair()
	require.NoError(t, there.SetLinger(0))
	require.NoError(t, there.Close())
	var s sender
	for err = nil; err == nil; time.Sleep(waitStep) {
		err = s.write(c, []byte("x"))
	}
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "nobody reads this")

	c, _ = pair()
	go func() {
		time.Sleep(10 * time.Millisecond)
		c.nc.Close()
	}()
	var s2 sender
	for err = nil; err == nil; {
		err = s2.write(c, all[:50_000])
	}
	require.ErrorIs(t, err, net.ErrClosed)
}
