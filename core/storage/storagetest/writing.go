package storagetest

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

func writeToClauses() []Clause {
	return []Clause{
		{"12.1 views go out over TCP whole", checkSend},
		{"12.1 views of one segment can be sent at the same time", checkSendTogether},
		{"12.2 a writer that fails or falls short", checkWriterFails},
		{"12.2 views go through a pipe", checkPipe},
		{"12.3 deadlines hold", checkDeadline},
		{"12.3 a peer that goes away ends the send", checkPeerGone},
	}
}

// connect gives both ends of a TCP connection over the loopback.
func connect(t T) (server, client *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- c
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	s, ok := <-accepted
	require.True(t, ok, "accept")
	t.Cleanup(func() { _ = c.Close(); _ = s.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

// requireSent sends the view over a connection and compares what arrives.
func requireSent(t T, v storage.View, want []byte) {
	t.Helper()
	server, client := connect(t)
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(client)
		got <- b
	}()
	n, err := v.WriteTo(server)
	require.NoError(t, server.Close())
	arrived := <-got
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), n)
	requireSame(t, want, arrived, "bytes sent")
}

// sendAnyway sends a view whose bytes may be gone: all or ErrFault, and no crash.
func sendAnyway(t T, v storage.View) {
	t.Helper()
	server, client := connect(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, client)
	}()
	n, err := v.WriteTo(server)
	require.NoError(t, server.Close())
	<-done
	if err != nil {
		require.ErrorIs(t, err, storage.ErrFault)
		return
	}
	require.Equal(t, v.Len(), n)
}

func checkSend(t T, h Harness) {
	g, _ := h.create(t, storage.Options{Capacity: 16 << 20})
	want := pattern(1, 9_000_001)
	for rest := want; len(rest) > 0; {
		n := min(len(rest), 500_000)
		mustAppend(t, g, rest[:n])
		rest = rest[n:]
	}
	check := func() {
		for _, r := range [][2]int{{0, len(want)}, {0, 0}, {0, 1}, {4095, 2}, {100_001, 70_000}, {len(want) - 1, 1}} {
			v := mustView(t, g, int64(r[0]), int64(r[1]))
			requireSent(t, v, want[r[0]:r[0]+r[1]])
			requireSent(t, v, want[r[0]:r[0]+r[1]]) // again: nothing was used up
			v.Release()
		}
	}
	check()
	require.NoError(t, g.Seal())
	check()
}

func checkSendTogether(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	want := pattern(1, 3_000_000)
	mustAppend(t, g, want)
	failed := make(chan error, 4)
	for i := range 4 {
		server, client := connect(t)
		v := mustView(t, g, int64(i), int64(len(want)-i))
		go func() {
			defer v.Release()
			_, err := v.WriteTo(server)
			_ = server.Close()
			if err != nil {
				_ = client.Close()
			}
		}()
		go func() {
			got, err := io.ReadAll(client)
			if err == nil && string(got) != string(want[i:]) {
				err = errors.New("what arrived isn't what was viewed")
			}
			failed <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-failed)
	}
}

// limitedWriter takes so many bytes and then answers with err, or falls short without an error.
type limitedWriter struct {
	room int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

func checkWriterFails(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	mustAppend(t, g, pattern(1, 300_000))
	v := mustView(t, g, 0, 300_000)
	defer v.Release()
	broken := errors.New("broken")
	for _, room := range []int{0, 1, 100_000, 299_999} {
		n, err := v.WriteTo(&limitedWriter{room: room, err: broken})
		require.ErrorIs(t, err, broken)
		require.Equal(t, int64(room), n)
		n, err = v.WriteTo(&limitedWriter{room: room})
		require.ErrorIs(t, err, io.ErrShortWrite)
		require.Equal(t, int64(room), n)
	}
}

func checkPipe(t T, h Harness) {
	g, _ := h.create(t, storage.Options{})
	want := pattern(1, 300_000)
	mustAppend(t, g, want)
	v := mustView(t, g, 0, 300_000)
	defer v.Release()
	r, w := io.Pipe()
	go func() {
		_, err := v.WriteTo(w)
		_ = w.CloseWithError(err)
	}()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	requireSame(t, want, got, "bytes through the pipe")
}

// filled gives a segment with more than a connection's buffers hold.
func filled(t T, h Harness) storage.View {
	t.Helper()
	g, _ := h.create(t, storage.Options{Capacity: 64 << 20})
	for b := pattern(1, 1<<20); g.Size() < 32<<20; {
		mustAppend(t, g, b)
	}
	return mustView(t, g, 0, g.Size())
}

func checkDeadline(t T, h Harness) {
	v := filled(t, h)
	defer v.Release()
	server, _ := connect(t) // whose peer never reads
	require.NoError(t, server.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	n, err := v.WriteTo(server)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, n, v.Len())

	closed, _ := connect(t)
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = closed.Close()
	}()
	_, err = v.WriteTo(closed)
	require.ErrorIs(t, err, net.ErrClosed)
}

func checkPeerGone(t T, h Harness) {
	v := filled(t, h)
	defer v.Release()
	server, client := connect(t)
	go func() {
		_, _ = io.ReadFull(client, make([]byte, 1<<20))
		_ = client.SetLinger(0)
		_ = client.Close()
	}()
	n, err := v.WriteTo(server)
	require.Error(t, err)
	require.NotErrorIs(t, err, storage.ErrFault)
	require.Less(t, n, v.Len())
}
