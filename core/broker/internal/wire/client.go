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

// Call says what [Client.Exchange] sends and to whom it gives the answer.
type Call struct {
	Key, Version int16
	// Flexible says that the version has tagged fields, also in the headers (KIP-482).
	Flexible bool
	// Timeout bounds the whole exchange; 0 means for ever.
	Timeout time.Duration
	// Request appends the body of the request.
	Request func(dst []byte) []byte
	// Response is given the body of the response, which is the connection's again when it returns.
	Response func(body []byte) error
}

// Exchange is Do for who encodes and decodes by hand, many times and without garbage. Close ends it, too. When anything goes wrong, or
// Response returns an error, the connection is closed.
func (c *Client) Exchange(call *Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return ErrClientClosed
	}
	err := c.call(call)
	if err != nil {
		closed := c.closed.Load()
		c.Close()
		if closed {
			err = ErrClientClosed
		}
		return fmt.Errorf("%s to %s: %w", kmsg.NameForKey(call.Key), c.conn.RemoteAddr(), err)
	}
	return nil
}

func (c *Client) call(call *Call) error {
	if call.Timeout > 0 {
		if err := c.conn.SetDeadline(time.Now().Add(call.Timeout)); err != nil {
			return err
		}
	}
	c.correlation++
	c.out = call.Request(c.appendHeader(c.out[:0], call.Key, call.Version, call.Flexible))
	frame, err := c.send()
	if err != nil {
		return err
	}
	body, err := c.parseResponse(call.Key, call.Flexible, frame)
	if err == nil {
		err = call.Response(body)
	}
	c.in.release()
	if err == nil && call.Timeout > 0 {
		err = c.conn.SetDeadline(time.Time{})
	}
	return err
}

// send sends c.out, whose length isn't filled in yet, and returns the next frame.
func (c *Client) send() ([]byte, error) {
	binary.BigEndian.PutUint32(c.out, uint32(len(c.out)-4))
	_, err := c.conn.Write(c.out)
	if cap(c.out) > retainedResponse {
		c.out = nil
	}
	if err != nil {
		return nil, err
	}
	return c.in.next()
}

func (c *Client) exchange(req kmsg.Request) (kmsg.Response, error) {
	c.correlation++
	c.out = AppendBody(c.appendHeader(c.out[:0], req.Key(), req.GetVersion(), req.IsFlexible()), req)
	frame, err := c.send()
	if err != nil {
		return nil, err
	}
	body, err := c.parseResponse(req.Key(), req.IsFlexible(), frame)
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

// appendHeader appends a request's header, behind room for the length.
func (c *Client) appendHeader(dst []byte, key, version int16, flexible bool) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.correlation))
	if key != int16(kmsg.ControlledShutdown) || version > 0 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.o.ClientID)))
		dst = append(dst, c.o.ClientID...)
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

func (c *Client) parseResponse(key int16, flexible bool, frame []byte) ([]byte, error) {
	if len(frame) < 4 {
		return nil, errShortHeader
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != c.correlation {
		return nil, fmt.Errorf("response with correlation id %d to request %d", got, c.correlation)
	}
	body := frame[4:]
	if flexible && key != int16(kmsg.ApiVersions) {
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
