package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func serve(t testing.TB, handlers map[string]Handler) (address string, s *Server) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s = NewServer(handlers, slog.New(slog.DiscardHandler))
	s.Serve(l)
	t.Cleanup(s.Close)
	return l.Addr().String(), s
}

func client(t testing.TB) *Client {
	c := NewClient(func(ctx context.Context, _, address string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	})
	t.Cleanup(c.Close)
	return c
}

func echo(_ context.Context, body []byte) (any, error) {
	var text string
	err := json.Unmarshal(body, &text)
	return text, err
}

func TestCalls(t *testing.T) {
	block := make(chan struct{})
	address, _ := serve(t, map[string]Handler{
		"echo": echo,
		"coded": func(context.Context, []byte) (any, error) {
			return nil, fmt.Errorf("it is: %w", &Error{"mine", "text", "detail"})
		},
		"plain": func(context.Context, []byte) (any, error) { return nil, errors.New("no") },
		"waits": func(ctx context.Context, _ []byte) (any, error) {
			select {
			case <-block:
				return "done", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	c, ctx := client(t), within(t)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		var out string
		if err := c.Call(ctx, "s", address, "waits", nil, &out); err != nil || out != "done" {
			t.Errorf("%v, %q", err, out)
		}
	})
	for i := range 50 { // one that waits is in nobody's way
		waiting.Go(func() {
			var out string
			if err := c.Call(ctx, "s", address, "echo", fmt.Sprint(i), &out); err != nil || out != fmt.Sprint(i) {
				t.Errorf("%v, %q", err, out)
			}
		})
	}
	var coded *Error
	require.ErrorAs(t, c.Call(ctx, "s", address, "coded", nil, nil), &coded)
	require.Equal(t, &Error{"mine", "text", "detail"}, coded)
	require.ErrorAs(t, c.Call(ctx, "s", address, "plain", nil, nil), &coded)
	require.Equal(t, CodeFailed, coded.Code)
	require.ErrorAs(t, c.Call(ctx, "s", address, "nothing", nil, nil), &coded)
	require.Equal(t, CodeUnknownMethod, coded.Code)
	brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.Error(t, c.Call(brief, "s", address, "waits", nil, nil)) // at whichever end the time is up first
	large := string(bytes.Repeat([]byte("x"), 1<<20))
	var out string
	require.NoError(t, c.Call(ctx, "s", address, "echo", large, &out))
	require.Equal(t, large, out)
	close(block)
	waiting.Wait()
}

// TestWhatIsSure tells what wasn't sent from what may have been carried out.
func TestWhatIsSure(t *testing.T) {
	c, ctx := client(t), within(t)
	require.ErrorIs(t, c.Call(ctx, "s", "127.0.0.1:1", "echo", "x", nil), ErrNotSent)
	began := make(chan struct{}, 1)
	address, s := serve(t, map[string]Handler{"echo": echo, "waits": func(ctx context.Context, _ []byte) (any, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	got := make(chan error, 1)
	go func() { got <- c.Call(ctx, "s", address, "waits", nil, nil) }()
	<-began
	s.Close()
	err := <-got
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNotSent, "it was begun")
	require.ErrorIs(t, c.Call(ctx, "s", address, "echo", "x", nil), ErrNotSent, "nobody is there any more")
	c.Close()
	require.ErrorIs(t, c.Call(ctx, "s", address, "echo", "x", nil), ErrNotSent)
	require.ErrorIs(t, c.Call(ctx, "s", address, "echo", "x", nil), ErrClosed)
}

// TestComesBack calls a server that was gone: the next call finds its new connection.
func TestComesBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	c, ctx := client(t), within(t)
	for range 3 {
		s := NewServer(map[string]Handler{"echo": echo}, slog.New(slog.DiscardHandler))
		s.Serve(l)
		require.Eventually(t, func() bool { return c.Call(ctx, "s", address, "echo", "x", nil) == nil }, time.Minute, 10*time.Millisecond)
		s.Close()
		require.Eventually(t, func() bool { l, err = net.Listen("tcp", address); return err == nil }, time.Minute, 10*time.Millisecond)
	}
	l.Close()
}

// TestGarbage sends what is no request. The connection ends, and others aren't affected.
func TestGarbage(t *testing.T) {
	address, _ := serve(t, map[string]Handler{"echo": echo})
	message := func(text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	for name, bytes := range map[string][]byte{
		"no JSON":             message("garbage"),
		"an empty message":    message(""),
		"too large":           binary.BigEndian.AppendUint32(nil, maxMessage+1),
		"HTTP":                []byte("GET / HTTP/1.1\r\n\r\n"),
		"another JSON":        message("[1]"),
		"a negative id":       message(`{"id":-1,"method":"echo"}`),
		"half a message":      message(`{"id":1}`)[:6],
		"a length that lies":  append(binary.BigEndian.AppendUint32(nil, maxMessage), "{}"...),
		"nothing but a start": {0},
	} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = conn.Write(bytes)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = io.ReadAll(conn)
		var timeout net.Error
		require.False(t, errors.As(err, &timeout) && timeout.Timeout(), name)
		conn.Close()
	}
	require.NoError(t, client(t).Call(within(t), "s", address, "echo", "x", nil))
}

// FuzzDecode gives the decoder any bytes: it takes no more memory than there are, and never panics.
func FuzzDecode(f *testing.F) {
	text, err := encode(request{ID: 1, Method: "echo", Wait: 5, Body: []byte(`"x"`)})
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r request
		if decode(bytes.NewReader(data), &r) == nil {
			again, err := encode(r)
			require.NoError(t, err)
			require.NoError(t, decode(bytes.NewReader(again), &r))
		}
		var a answer
		_ = decode(bytes.NewReader(data), &a)
	})
}

// TestConnectionsEndUnderCalls ends the connection again and again while many use it: each call gets its answer or an error, and
// whoever comes next a connection that lives.
func TestConnectionsEndUnderCalls(t *testing.T) {
	address, _ := serve(t, map[string]Handler{"echo": echo})
	c, ctx := client(t), within(t)
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for n := range 100 {
				text, out := fmt.Sprint(i, n), ""
				if err := c.Call(ctx, "s", address, "echo", text, &out); err == nil && out != text {
					t.Errorf("%q is answered with %q", text, out)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Millisecond):
		}
		c.mu.Lock()
		if p := c.peers[target{"s", address}]; p != nil && p.conn != nil {
			p.conn.end(io.EOF)
		}
		c.mu.Unlock()
	}
	require.Eventually(t, func() bool {
		var out string
		return c.Call(ctx, "s", address, "echo", "x", &out) == nil && out == "x"
	}, time.Minute, time.Millisecond)
}
