package acceptance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// exchange sends bytes on a connection of its own, says that nothing more comes, and reads whatever the broker answers
// until it closes. A connection that doesn't end fails the test.
func (n *node) exchange(b []byte, why string) []byte {
	n.t.Helper()
	c, err := net.Dial("tcp", n.options.Addr)
	require.NoError(n.t, err)
	defer func() { _ = c.Close() }()
	require.NoError(n.t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, _ = c.Write(b) // the broker may close before it has read everything
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	require.False(n.t, errors.Is(err, os.ErrDeadlineExceeded), "%s: the connection doesn't end", why)
	return got
}

// calm demands that the broker never panicked.
func (n *node) calm() {
	n.t.Helper()
	assert.NotContains(n.t, n.said(), "panic")
}

func noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// contents are bytes of a size that say nothing sensible.
func contents(size int) map[string][]byte {
	return map[string][]byte{
		"zeros": make([]byte, size), "ff": bytes.Repeat([]byte{0xff}, size), "7f": bytes.Repeat([]byte{0x7f}, size),
		"80": bytes.Repeat([]byte{0x80}, size), "01": bytes.Repeat([]byte{1}, size), "noise": noise(size), "more noise": noise(size),
	}
}

// TestGarbageFrames: frames of any length and content end a connection, or are answered, and do nothing else.
func TestGarbageFrames(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	witness := n.dial()
	before := n.memory()
	for _, size := range []int{0, 1, 2, 7, 8, 9, 10, 11, 13, 14, 30, 100, 1000, 8187, 8188, 8189, 8192, 70_000, 1 << 20} {
		for name, body := range contents(size) {
			why := fmt.Sprintf("%d bytes of %s", size, name)
			n.exchange(append(binary.BigEndian.AppendUint32(nil, uint32(size)), body...), why)
			n.exchange(body, why+", no length")
			n.exchange(append(binary.BigEndian.AppendUint32(nil, uint32(size+1)), body...), why+", one more promised")
		}
		witness.alive()
	}
	// Hundreds of small frames in one piece, good and bad.
	c := n.dial()
	var many []byte
	for range 500 {
		many = append(many, c.frame(versioned(kmsg.NewPtrApiVersionsRequest(), 0))...)
	}
	got := n.exchange(append(many, c.rawFrame(999, 0, nil)...), "many")
	assert.Len(t, got, 500*(4+int(binary.BigEndian.Uint32(got))), "what was good is answered")
	assert.Less(t, n.memory()-before, int64(100<<20))
	n.calm()
}

// served lists the requests that a broker serves.
func (c *conn) served() []kmsg.ApiVersionsResponseApiKey {
	c.t.Helper()
	return ask[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest()).ApiKeys
}

// request makes an empty request of a version.
func request(key, version int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	return req
}

// TestGarbageBodies: every request that is served, in every version, with bodies that were cut, flipped, padded, or are no
// bodies at all.
func TestGarbageBodies(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	witness := n.dial()
	witness.createTopic("kept", 1, forever())
	witness.createTopic("t", 1, forever()) // which the requests name, and may delete
	witness.accepted("kept", 0, unhex(t, va1))
	for _, k := range witness.served() {
		for version := k.MinVersion; version <= k.MaxVersion; version++ {
			header := func(body []byte) []byte {
				req := request(k.ApiKey, version)
				b := []byte{0, 0, 0, 0}
				b = binary.BigEndian.AppendUint16(b, uint16(k.ApiKey))
				b = binary.BigEndian.AppendUint16(b, uint16(version))
				b = append(b, 0, 0, 0, 1, 0, 1, 'x')
				if req.IsFlexible() {
					b = append(b, 0)
				}
				b = append(b, body...)
				binary.BigEndian.PutUint32(b, uint32(len(b)-4))
				return b
			}
			why := fmt.Sprintf("key %d v%d", k.ApiKey, version)
			for name, body := range contents(60) {
				n.exchange(header(body), why+": "+name)
			}
			req := request(k.ApiKey, version)
			fill(req, "t")
			good := req.AppendTo(nil)
			cut := header(nil)
			for at := 0; at < len(good); at += 1 + len(good)/5 {
				cut = append(cut, header(good[:at])...) // the first that can't be read ends the connection
				n.exchange(header(good[:at]), fmt.Sprintf("%s: cut at %d", why, at))
				flipped := bytes.Clone(good)
				flipped[at] ^= 0xff
				n.exchange(header(flipped), fmt.Sprintf("%s: flipped at %d", why, at))
			}
			n.exchange(cut, why+": all cuts")
			n.exchange(header(append(good, noise(20)...)), why+": bytes behind")
		}
		witness.alive()
	}
	n.calm()
	assert.Equal(t, unhex(t, va1)[21:], witness.fetch(11, "kept", 0, 0).RecordBatches[21:], "what was there is as it was")
}

// TestLargeArrays: a body that promises an array of millions, in a frame of megabytes, isn't believed.
func TestLargeArrays(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	for _, k := range c.served() {
		for name, lead := range map[string][]byte{"int32": {0x01, 0, 0, 0}, "varint": {0xff, 0xff, 0xff, 7}, "string then array": {0, 0, 1, 0, 0, 0}} {
			body := append(bytes.Clone(lead), make([]byte, 20<<20)...)
			n.exchange(c.rawFrame(k.ApiKey, k.MaxVersion, body), fmt.Sprintf("key %d: %s", k.ApiKey, name))
		}
	}
	n.dial().alive()
	assert.Less(t, n.peak(), int64(400<<20), "the largest that it ever was")
	n.calm()
}
