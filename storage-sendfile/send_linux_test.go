package storagesendfile

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// sending gives a segment, a view of all of it, and a connection whose other end is collected.
func sending(t *testing.T, s *Storage, want []byte) (storage.View, string, *net.TCPConn, chan []byte) {
	t.Helper()
	require.NoError(t, s.Start(context.Background()))
	path := filepath.Join(t.TempDir(), "a.log")
	g, err := s.Create(path, storage.Options{Capacity: int64(len(want))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	_, err = g.Append(want)
	require.NoError(t, err)
	v, err := g.View(0, int64(len(want)))
	require.NoError(t, err)
	t.Cleanup(v.Release)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	server, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(client)
		got <- b
	}()
	return v, path, server.(*net.TCPConn), got
}

// TestSendfile holds that a send over TCP copies nothing in this process, and leaves the file's position alone.
func TestSendfile(t *testing.T) {
	s, err := New(DefaultOptions())
	require.NoError(t, err)
	s.buffers.New = func() any {
		t.Error("a copy was made")
		return new([]byte)
	}
	want := bytes.Repeat([]byte("0123456789"), 300_000)
	v, _, server, got := sending(t, s, want)
	n, err := v.WriteTo(server)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), n)
	require.NoError(t, server.Close())
	require.True(t, bytes.Equal(want, <-got))
	position, err := unix.Seek(v.(*view).file.Fd(), 0, io.SeekCurrent)
	require.NoError(t, err)
	require.Zero(t, position)
}

func TestSendFromAFileThatWasCut(t *testing.T) {
	s, err := New(DefaultOptions())
	require.NoError(t, err)
	v, path, server, got := sending(t, s, make([]byte, 500_000))
	require.NoError(t, os.Truncate(path, 100_000))
	n, err := v.WriteTo(server)
	require.ErrorIs(t, err, storage.ErrFault)
	require.NoError(t, server.Close())
	require.Equal(t, int64(100_000), n)
	require.Len(t, <-got, 100_000)
}
