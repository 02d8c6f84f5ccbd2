package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// clientID is what the generator calls itself.
const clientID = "barnabas-bench"

// maxResponse is the largest response that is believed; fetches ask for less.
const maxResponse = 256 << 20

// conn is a connection that speaks frames. One goroutine may write while another reads.
type conn struct {
	nc     net.Conn
	buf    []byte // of the last response
	ahead  []byte // what was read and belongs to the next response: part of stage
	stage  []byte
	size   [4]byte // of the next response
	cancel func() bool
}

// dial connects. When ctx ends, what waits on the connection fails.
func dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	c := &conn{nc: nc, stage: make([]byte, 16<<10)}
	c.cancel = context.AfterFunc(ctx, func() { _ = nc.Close() })
	return c, nil
}

func (c *conn) close() {
	c.cancel()
	_ = c.nc.Close()
}

// frame encodes a request with its frame and header. setCorrelation may change its correlation id.
func frame(r kmsg.Request) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	return f.AppendRequest(nil, r, 0)
}

// setCorrelation writes the correlation id of a frame.
func setCorrelation(frame []byte, id int32) { binary.BigEndian.PutUint32(frame[8:], uint32(id)) }

func (c *conn) write(frame []byte) error {
	_, err := c.nc.Write(frame)
	return err
}

// read returns the next response, from the correlation id on. It is valid until the next read.
func (c *conn) read() ([]byte, error) {
	if err := c.fill(c.size[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(c.size[:])))
	if n < 4 || n > maxResponse {
		return nil, fmt.Errorf("a response of %d bytes makes no sense", n)
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	c.buf = c.buf[:n]
	return c.buf, c.fill(c.buf)
}

// whole reports whether the next response has been read already, so that read won't wait.
func (c *conn) whole() bool {
	return len(c.ahead) >= 4 && len(c.ahead)-4 >= int(binary.BigEndian.Uint32(c.ahead))
}

// fill reads exactly len(p) bytes: small pieces through a buffer, so that a small response costs one system call.
func (c *conn) fill(p []byte) error {
	for len(p) > 0 {
		if len(c.ahead) > 0 {
			n := copy(p, c.ahead)
			p, c.ahead = p[n:], c.ahead[n:]
			continue
		}
		if len(p) >= len(c.stage) {
			_, err := io.ReadFull(c.nc, p)
			return cutOff(err)
		}
		n, err := c.nc.Read(c.stage)
		if c.ahead = c.stage[:n]; err != nil && n == 0 {
			return cutOff(err)
		}
	}
	return nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the broker closed the connection: %w", err)
	}
	return err
}
