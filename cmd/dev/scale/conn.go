package scale

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// clientID is what connections call themselves.
const clientID = "scale"

// conn is a client's connection without a client around it: thousands of them cost next to nothing on this side.
type conn struct {
	net.Conn
	end func() bool
}

// dial connects. When ctx ends, what waits on the connection fails.
func dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc, end: context.AfterFunc(ctx, func() { _ = nc.Close() })}, nil
}

func (c *conn) close() {
	c.end()
	_ = c.Close()
}

// frame encodes a request.
func frame(r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, r, 0)
}

// ask sends a request and reads its response.
func (c *conn) ask(r kmsg.Request) (kmsg.Response, error) {
	if _, err := c.Write(frame(r)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > 64<<20 {
		return nil, fmt.Errorf("a response of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	response := r.ResponseKind()
	b = b[4:]                                          // correlation id
	if response.IsFlexible() && response.Key() != 18 { // ApiVersions never has tags in its header
		b = b[1:]
	}
	return response, response.ReadFrom(b)
}
