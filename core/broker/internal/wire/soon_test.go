package wire

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writes are the sizes of what was written to a connection.
type writes struct {
	mu    sync.Mutex
	sizes []int
}

func (w *writes) all() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sizes)
}

// countingConn notes the writes to it.
type countingConn struct {
	*net.TCPConn
	writes *writes
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.mu.Lock()
	c.writes.sizes = append(c.writes.sizes, len(b))
	c.writes.mu.Unlock()
	return c.TCPConn.Write(b)
}

// dialCounted connects to s once the peer has sent something, as far as there is room for it, and notes what s writes.
func dialCounted(t *testing.T, s *Server, sent []byte) (*peer, *writes) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	client, err := net.Dial("tcp", other.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	server, err := other.Accept()
	require.NoError(t, err)
	require.NoError(t, client.SetDeadline(time.Now().Add(waitLimit)))
	require.NoError(t, client.(*net.TCPConn).SetWriteBuffer(len(sent)))
	require.NoError(t, server.(*net.TCPConn).SetReadBuffer(len(sent)))
	p, w, written := &peer{t, client}, &writes{}, make(chan struct{})
	go func() {
		defer close(written)
		client.Write(sent)
	}()
	select {
	case <-written:
	case <-time.After(time.Second): // there isn't room for all
	}
	s.mu.Lock()
	l := s.listeners[0]
	s.mu.Unlock()
	s.admit(l, countingConn{server.(*net.TCPConn), w})
	return p, w
}

func TestResponsesThatFollowAtOnceGoOutTogether(t *testing.T) {
	s, _ := start(t, nil)
	var frames []byte
	for i := range int32(20) {
		frames = append(frames, frameOf(keySoon, 1, i, fmt.Sprint(i))...)
	}
	p, w := dialCounted(t, s, frames)
	for i := range int32(20) {
		p.expect(i, fmt.Sprint(i))
	}
	require.LessOrEqual(t, len(w.all()), 2, "for 20 responses")
}

// TestResponsesToLargeRequests sends requests that are read in parts: their responses leave together all the same, but for no more than so many
// bytes of requests.
func TestResponsesToLargeRequests(t *testing.T) {
	s, _ := start(t, nil)
	const n, size = 40, 2 * readAhead
	body := strings.Repeat("x", size)
	var frames []byte
	for i := range int32(n) {
		frames = append(frames, frameOf(keySmall, 1, i, body)...)
	}
	p, w := dialCounted(t, s, frames)
	for i := range int32(n) {
		p.expect(i, "")
	}
	const response = 8 // a size, a correlation id
	for _, written := range w.all() {
		require.LessOrEqual(t, written/response, maxAnswered/size, "more than was to be answered at once")
	}
	require.Less(t, len(w.all()), n/2, "for %d responses", n)
}

func TestNothingIsHeldBackForLong(t *testing.T) {
	for name, next := range map[string][]byte{
		"another kind that waits": frameOf(keyWait, 1, 9, ""),
		"a large one that waits":  frameOf(keyWait, 1, 9, strings.Repeat("x", 2*readAhead)),
		"half of a large one":     frameOf(keySoon, 1, 9, strings.Repeat("x", 2*readAhead))[:readAhead+100],
		"half a request":          frameOf(keySoon, 1, 9, "cut off")[:9],
		"half a size":             {0, 0},
		"nothing":                 nil,
		"one that is pending":     frameOf(keySoon, 1, 9, "later"),
		"one without an answer":   frameOf(keySoon, 1, 9, "silent"),
		"one that closes":         frameOf(keySoon, 1, 9, "close"),
		"one that panics":         frameOf(keySoon, 1, 9, "panic"),
		"one that is malformed":   {0, 0, 0, 3, 0, byte(keySoon), 0},
		"one that is refused":     frameOf(keySoon, 10, 9, ""),
	} {
		t.Run(name, func(t *testing.T) {
			s, h := start(t, nil)
			p := dial(t, s)
			p.write(bytes.Join([][]byte{frameOf(keySoon, 1, 1, "one"), frameOf(keySoon, 1, 2, "two"), next}, nil))
			p.expect(1, "one")
			p.expect(2, "two")
			close(h.release)
			if name == "one that is pending" {
				h.awaitLater(1)
				h.complete(0)
				p.expect(9, "later")
			}
		})
	}
}

func TestHeldResponsesAreBounded(t *testing.T) {
	s, _ := start(t, nil)
	body := strings.Repeat("x", 3000)
	var frames []byte
	for i := range int32(50) {
		frames = append(frames, frameOf(keySoon, 1, i, body)...)
	}
	p, w := dialCounted(t, s, frames)
	for i := range int32(50) {
		p.expect(i, body)
	}
	for _, written := range w.all() {
		require.LessOrEqual(t, written, maxHeld+len(body)+100, "what is held, and the response that was too much")
	}
}
