package wire

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// countingConn counts the writes to it.
type countingConn struct {
	*net.TCPConn
	mu     *sync.Mutex
	writes *int
}

func (c countingConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	*c.writes++
	c.mu.Unlock()
	return c.TCPConn.Write(b)
}

func TestResponsesThatFollowAtOnceGoOutTogether(t *testing.T) {
	s, _ := start(t, nil)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	client, err := net.Dial("tcp", other.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := other.Accept()
	require.NoError(t, err)
	var mu sync.Mutex
	writes := 0
	s.mu.Lock()
	l := s.listeners[0]
	s.mu.Unlock()
	s.admit(l, countingConn{server.(*net.TCPConn), &mu, &writes})
	p := &peer{t, client}
	require.NoError(t, client.SetDeadline(time.Now().Add(waitLimit)))
	var frames []byte
	for i := range int32(20) {
		frames = append(frames, frameOf(keySoon, 1, i, fmt.Sprint(i))...)
	}
	p.write(frames)
	for i := range int32(20) {
		p.expect(i, fmt.Sprint(i))
	}
	mu.Lock()
	require.LessOrEqual(t, writes, 2, "for 20 responses")
	mu.Unlock()
}

func TestNothingIsHeldBackForLong(t *testing.T) {
	for name, next := range map[string][]byte{
		"another kind that waits": frameOf(keyWait, 1, 9, ""),
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
	p := dial(t, s)
	body := string(bytes.Repeat([]byte{'x'}, 3000))
	var frames []byte
	for i := range int32(50) {
		frames = append(frames, frameOf(keySoon, 1, i, body)...)
	}
	p.write(frames)
	for i := range int32(50) {
		p.expect(i, body)
	}
}
