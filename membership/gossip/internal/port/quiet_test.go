package port

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQuietly does the same with a connection as it is, and with what the port makes of it.
func TestQuietly(t *testing.T) {
	for name, of := range map[string]func(net.Conn) net.Conn{"as it is": func(c net.Conn) net.Conn { return c }, "quietly": quietly} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			pair := func() (here, there net.Conn) {
				here, err := net.Dial("tcp", l.Addr().String())
				require.NoError(t, err)

				there, err = l.Accept()
				require.NoError(t, err)
				t.Cleanup(func() { here.Close(); there.Close() })
				for _, c := range []net.Conn{here, there} {
					require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
				}
				return of(here), there
			}
			here, there := pair()
			b := make([]byte, 100)

			// A few bytes, and none.
			n, err := here.Write([]byte("request"))
			require.NoError(t, err)
			require.Equal(t, len("request"), n)
			n, err = there.Read(b)
			require.NoError(t, err)
			require.Equal(t, "request", string(b[:n]))
			_, err = there.Write([]byte("answer"))
			require.NoError(t, err)
			n, err = here.Read(b)
			require.NoError(t, err)
			require.Equal(t, "answer", string(b[:n]))
			n, err = here.Write(nil)
			require.NoError(t, err)
			require.Zero(t, n)
			n, err = here.Read(nil)
			require.NoError(t, err)
			require.Zero(t, n)

			// One waits for the other: for something to read, and for room to write.
			go func() {
				time.Sleep(20 * time.Millisecond)
				_, _ = there.Write([]byte("late"))
			}()
			n, err = here.Read(b)
			require.NoError(t, err)
			require.Equal(t, "late", string(b[:n]))
			pieces, total := [][]byte{make([]byte, 10_001), make([]byte, 100_001)}, 0
			for _, p := range pieces {
				_, _ = rand.Read(p)
			}
			written := make(chan error, 1)
			go func() {
				for range 200 {
					for _, p := range pieces {
						if n, err := here.Write(p); err != nil || n != len(p) {
							written <- err
							return
						}
					}
				}
				written <- here.Close()
			}()
			time.Sleep(50 * time.Millisecond) // the buffers are full then
			for range 200 {
				for _, p := range pieces {
					got := make([]byte, len(p))
					n, err := io.ReadFull(there, got)
					require.NoError(t, err)
					require.Equal(t, p, got)
					total += n
				}
			}
			require.Equal(t, 200*(10_001+100_001), total)
			require.NoError(t, <-written)

			// What ends it.
			here, there = pair()
			require.NoError(t, there.Close())
			_, err = here.Read(b)
			require.Equal(t, io.EOF, err)

			here, there = pair()
			require.NoError(t, there.(*net.TCPConn).SetLinger(0))
			require.NoError(t, there.Close())
			_, err = here.Read(b)
			require.ErrorIs(t, err, syscall.ECONNRESET)
			require.Contains(t, err.Error(), "reset by peer")
			require.True(t, strings.HasPrefix(err.Error(), "read tcp 127.0.0.1:"), err)
			_, err = here.Write(b)
			require.ErrorIs(t, err, syscall.EPIPE)

			here, _ = pair()
			require.NoError(t, here.SetDeadline(time.Now().Add(10*time.Millisecond)))
			_, err = here.Read(b)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, here.SetDeadline(time.Now().Add(200*time.Millisecond)))
			for err = nil; err == nil; {
				n, err = here.Write(bytes.Repeat([]byte("z"), 1000))
			}
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Less(t, n, 1000)

			here, _ = pair()
			go func() {
				time.Sleep(10 * time.Millisecond)
				here.Close()
			}()
			_, err = here.Read(b)
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = here.Write(b)
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}
