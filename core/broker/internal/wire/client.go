package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrClientClosed says that the connection was closed, by Close or because an earlier request failed midway.
var ErrClientClosed = errors.New("connection is closed")

// ClientOptions say how a broker introduces itself to another.
type ClientOptions struct {
	// ClientID goes into every request header.
	ClientID string
	// MaxResponseBytes is the largest response that is read; 0 means DefaultMaxRequestBytes.
	MaxResponseBytes int
}

// Client is a connection to another broker, for the requests that brokers send to one another. Requests go out one at a time:
// whoever calls while one is under way waits for it. Any goroutine may use it.
//
// It sends each request in the version that the request says: brokers agree on versions by configuration, not by asking.
type Client struct {
	o      ClientOptions
	conn   net.Conn
	closed atomic.Bool

	mu          sync.Mutex
	correlation int32
	out         []byte
	in          frameReader
	moved       atomic.Uint32
	pool        Buffers
}

// Dial connects to the broker at addr, host:port. ctx bounds the connecting only.
func Dial(ctx context.Context, addr string, o ClientOptions) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = DefaultMaxRequestBytes
	}
	c := &Client{o: o, conn: conn}
	c.in.pool, c.in.max, c.in.moved = &c.pool, o.MaxResponseBytes, &c.moved
	c.in.src.attach(conn)
	return c, nil
}

// Do sends a request and waits for its response, whose memory is the caller's. When ctx ends, or anything else goes wrong after
// the first byte was sent, the connection is closed, because what comes next on it is unknown.
func (c *Client) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, ErrClientClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		if c.conn.SetDeadline(time.Unix(1, 0)) != nil { // it is closed already
			return
		}
	})
	resp, err := c.exchange(req)
	if !stop() || err != nil {
		// The deadline has been or is being set, so the connection is of no use any more.
		c.Close()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("%s to %s: %w", kmsg.NameForKey(req.Key()), c.conn.RemoteAddr(), err)
	}
	return resp, nil
}

func (c *Client) exchange(req kmsg.Request) (kmsg.Response, error) {
	c.correlation++
	c.out = c.appendRequest(c.out[:0], req)
	_, err := c.conn.Write(c.out)
	if cap(c.out) > retainedResponse {
		c.out = nil
	}
	if err != nil {
		return nil, err
	}
	frame, err := c.in.next()
	if err != nil {
		return nil, err
	}
	body, err := c.parseResponse(req, frame)
	if err != nil {
		return nil, err
	}
	// What is decoded may point into the frame, so that isn't used again.
	if c.in.frame != nil {
		c.in.frame = nil
	} else {
		body = bytes.Clone(body)
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("malformed response: %w", err)
	}
	return resp, nil
}

func (c *Client) appendRequest(dst []byte, req kmsg.Request) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(req.Key()))
	dst = binary.BigEndian.AppendUint16(dst, uint16(req.GetVersion()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.correlation))
	if req.Key() != int16(kmsg.ControlledShutdown) || req.GetVersion() > 0 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.o.ClientID)))
		dst = append(dst, c.o.ClientID...)
	}
	if req.IsFlexible() {
		dst = append(dst, 0)
	}
	dst = req.AppendTo(dst)
	binary.BigEndian.PutUint32(dst, uint32(len(dst)-4))
	return dst
}

func (c *Client) parseResponse(req kmsg.Request, frame []byte) ([]byte, error) {
	if len(frame) < 4 {
		return nil, errShortHeader
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != c.correlation {
		return nil, fmt.Errorf("response with correlation id %d to request %d", got, c.correlation)
	}
	body := frame[4:]
	if req.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		var ok bool
		if body, ok = skipTags(body); !ok {
			return nil, errBadTags
		}
	}
	return body, nil
}

// Close ends the connection; a request under way fails. Safe twice.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.conn.Close()
}
