package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrNotSent says that a request didn't reach the other end, or not as a whole: it was not carried out.
var ErrNotSent = errors.New("the request was not sent")

// ErrClosed says that the client is closed.
var ErrClosed = errors.New("client is closed")

// errBroken says that a connection ended before the answer came: whether the request was carried out isn't known.
var errBroken = errors.New("the connection ended before the answer came")

// dialPause is how soon after a failure the same server is dialled again; calls meanwhile fail with what the last attempt said.
const dialPause = 50 * time.Millisecond

// Dial opens a connection to a server at an address, on which only this package's messages follow.
type Dial func(ctx context.Context, server, address string) (net.Conn, error)

// Client sends requests, over one connection to each server and address. Its methods may be called from any goroutine.
type Client struct {
	dial    Dial
	running sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc

	mu    sync.Mutex
	peers map[target]*peer
}

type target struct{ server, address string }

// NewClient makes a client without connections.
func NewClient(dial Dial) *Client {
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{dial: dial, ctx: ctx, cancel: cancel, peers: map[target]*peer{}}
}

// Call asks a server: in is the request's body, and the answer's is decoded into out, which may be nil. Its error is the
// other end's [*Error], [ErrNotSent], ctx's error, or something else; after the latter two nobody knows whether the request was carried out.
func (c *Client) Call(ctx context.Context, server, address, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	conn, err := c.conn(ctx, target{server, address})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	a, err := conn.call(ctx, method, body)
	switch {
	case err != nil:
		return err
	case a.Error != nil:
		return a.Error
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("%s answers %s with something else than expected: %w", address, method, err)
	}
	return nil
}

// Close ends all connections. Calls in flight return.
func (c *Client) Close() {
	c.mu.Lock()
	c.cancel()
	for _, p := range c.peers {
		if p.conn != nil {
			p.conn.end(ErrClosed)
		}
	}
	c.mu.Unlock()
	c.running.Wait()
}

// peer is the connection to a server, or the attempt to get one.
type peer struct {
	conn    *conn         // nil while there is none
	dialing chan struct{} // closed when the attempt that is under way has ended; nil when there is none
	failed  error         // why the last attempt failed
	again   time.Time     // when the next may be made
}

// conn gives a living connection.
func (c *Client) conn(ctx context.Context, to target) (*conn, error) {
	for {
		c.mu.Lock()
		if c.ctx.Err() != nil {
			c.mu.Unlock()
			return nil, ErrClosed
		}
		p := c.peers[to]
		if p == nil {
			p = &peer{}
			c.peers[to] = p
		}
		if conn := p.conn; conn != nil && !conn.ended() {
			c.mu.Unlock()
			return conn, nil
		}
		if p.dialing == nil {
			if failed := p.failed; failed != nil && time.Now().Before(p.again) {
				c.mu.Unlock()
				return nil, failed
			}
			p.dialing = make(chan struct{})
			c.running.Add(1)
			go c.dialTo(to, p)
		}
		dialing := p.dialing
		c.mu.Unlock()
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c.mu.Lock()
		failed := p.failed
		c.mu.Unlock()
		if failed != nil {
			return nil, failed
		}
	}
}

// dialTo makes one attempt, for all who wait for it.
func (c *Client) dialTo(to target, p *peer) {
	defer c.running.Done()
	raw, err := c.dial(c.ctx, to.server, to.address)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(p.dialing)
	p.dialing, p.failed = nil, err
	p.again = time.Now().Add(dialPause)
	if err != nil {
		return
	}
	conn := &conn{raw: raw, waiting: map[uint64]chan answer{}, done: make(chan struct{})}
	p.conn = conn
	if c.ctx.Err() != nil {
		conn.end(ErrClosed)
		return
	}
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		conn.read()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.peers[to] == p && p.conn == conn && p.dialing == nil {
			delete(c.peers, to) // addresses come and go
		}
	}()
}

// conn is one connection with the calls on it.
type conn struct {
	raw   net.Conn
	write sync.Mutex    // over writes
	done  chan struct{} // closed when it has ended

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan answer
	cause   error // why it has ended
}

func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *conn) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
		c.raw.Close()
		close(c.done)
	}
}

// read hands answers out until the connection ends.
func (c *conn) read() {
	in := bufio.NewReaderSize(c.raw, 4096)
	for {
		var a answer
		if err := decode(in, &a); err != nil {
			c.end(err)
			return
		}
		c.mu.Lock()
		waiting := c.waiting[a.ID]
		delete(c.waiting, a.ID)
		c.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

func (c *conn) call(ctx context.Context, method string, body []byte) (answer, error) {
	r := request{Method: method, Body: body}
	if deadline, ok := ctx.Deadline(); ok {
		r.Wait = max(1, time.Until(deadline).Milliseconds())
	}
	got := make(chan answer, 1)
	c.mu.Lock()
	c.last++
	r.ID = c.last
	c.waiting[r.ID] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, r.ID)
		c.mu.Unlock()
	}()
	text, err := encode(r)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if err := c.send(ctx, text); err != nil {
		return answer{}, err
	}
	select {
	case a := <-got:
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-c.done:
	}
	select {
	case a := <-got: // it came just before the end
		return a, nil
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return answer{}, fmt.Errorf("%w: %w", errBroken, c.cause)
}

// send writes a message. One that wasn't written as a whole can't be carried out, and ends the connection: what follows it could
// not be told from its rest.
func (c *conn) send(ctx context.Context, text []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	deadline := time.Now().Add(writeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) && len(text) > 64<<10 {
		deadline = d // a large one may fill the connection's buffers
	}
	c.raw.SetWriteDeadline(deadline)
	if _, err := c.raw.Write(text); err != nil {
		c.end(err)
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return nil
}
