package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
)

// Request is one request, as the handler gets it. It is valid until the handler returns: the connection uses it again.
type Request struct {
	// Key, Version and CorrelationID are as the client sent them.
	Key, Version  int16
	CorrelationID int32
	// ClientID is "" when the client sent none.
	ClientID string
	// Body is what follows the header, in place: it may be written to, and is gone when the handler returns, also when the
	// reply is pending.
	Body []byte
	// Conn is where the request came in.
	Conn *Conn

	form Form
	kind meter.Kind
}

// CountAs says what kind of request this is, where its key alone doesn't tell.
func (r *Request) CountAs(k meter.Kind) { r.kind = k }

// NewResponse begins the response to r: frame and header are in place, the caller appends the body.
func (r *Request) NewResponse() *Response {
	s := r.Conn.server
	resp, ok := s.responses.Get().(*Response)
	if !ok {
		resp = &Response{home: s}
	}
	resp.B = appendResponseHeader(resp.B[:0], r.form, r.CorrelationID)
	resp.headerLen = len(resp.B)
	return resp
}

// Handler answers requests. Its methods are called from the goroutines of the connections, many at the same time, but for
// one connection never two at once.
type Handler interface {
	// Form says how the headers of this key and version look, or that they are refused.
	Form(key, version int16) Form

	// Refuse is told of a request whose form is Refused, before its connection is closed, and gives the cause for the log.
	Refuse(key, version int16) error

	// Serve answers one request. It may block; ctx ends when the server drains, when the connection breaks and, between
	// [Conn.Waiting] and the end of the wait, when the peer goes away. A panic closes the connection and is logged.
	Serve(ctx context.Context, r *Request) Reply
}

// maxPending is how many replies of one connection may wait to be sent. A client that pipelines more is not read from until
// there are fewer.
const maxPending = 256

// states of a connection, for whoever looks for idle ones.
const (
	reading uint32 = iota // waits for the peer's next byte
	working               // a handler has the request
	sending               // waits for the peer to take a response
)

// Conn is one client's connection.
type Conn struct {
	server   *Server
	listener *listener
	nc       net.Conn
	tcp      *net.TCPConn // nc, when it is one
	host     string       // the peer's address without the port
	ip       string       // the key under which the peer is counted
	shard    uint32       // of the counters

	ctx    context.Context // ends with the connection and when the server drains
	cancel context.CancelFunc
	gone   chan struct{} // closed when the connection is
	once   sync.Once

	in       frameReader
	request  Request
	clientID string
	software atomic.Pointer[Software]
	out      sender
	held     *Response // one or more responses that wait for the next one, see hold; only while nobody else writes
	holds    int16     // the key of the requests that these answer
	answered int64     // the bytes of these requests
	watch    watch

	state    atomic.Uint32
	progress atomic.Uint32 // rises with every read and every write done
	seen     sighting      // the sweeper's

	// The replies that wait behind a pending one.
	mu      sync.Mutex
	room    sync.Cond // signalled when the queue shrinks, or writing ends
	queue   []Reply
	writing bool // a goroutine writes the queue; only it may write then
}

// Software is what a client says of itself in ApiVersions 3 and up (KIP-511).
type Software struct{ Name, Version string }

// Listener is the name of the listener that the client came through.
func (c *Conn) Listener() string { return c.listener.name }

// RemoteHost is the client's IP address, without the port.
func (c *Conn) RemoteHost() string { return c.host }

// RemoteAddr is the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// LocalAddr is the address at which the client reached the broker.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// Software is what the client said of itself, empty when it did not.
func (c *Conn) Software() Software {
	if s := c.software.Load(); s != nil {
		return *s
	}
	return Software{}
}

// SetSoftware remembers what the client said of itself. Only for handlers of this connection.
func (c *Conn) SetSoftware(s Software) { c.software.Store(&s) }

// serve runs the connection until it ends. It is its goroutine.
func (c *Conn) serve() {
	err := c.loop()
	if sendErr := c.sendHeld(); err == nil {
		err = sendErr
	}
	c.flush()
	c.close()
	c.in.close()
	c.waitWriter()
	c.server.forget(c)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.server.logger.Debug("connection closed", "listener", c.listener.name, "client", c.nc.RemoteAddr().String(), "client_id", c.clientID, "cause", err)
	}
}

func (c *Conn) loop() error {
	for !c.server.draining.Load() {
		c.state.Store(reading)
		frame, err := c.in.next()
		if err != nil {
			return err
		}
		c.state.Store(working)
		if err := c.handle(frame); err != nil {
			return err
		}
		c.in.release()
	}
	return nil
}

// handle answers one frame. An error ends the connection.
func (c *Conn) handle(frame []byte) error {
	began := c.server.clock()
	h, err := parseKey(frame)
	if err != nil {
		c.server.meter.Broken()
		return err
	}
	if h.key != c.holds {
		if err := c.sendHeld(); err != nil {
			return err
		}
	}
	form := c.server.handler.Form(h.key, h.version)
	if form == Refused {
		return c.server.handler.Refuse(h.key, h.version)
	}
	if err := h.parse(form); err != nil {
		c.server.meter.Broken()
		return fmt.Errorf("key %d, version %d: %w", h.key, h.version, err)
	}
	if string(h.clientID) != c.clientID {
		c.clientID = string(h.clientID)
	}
	c.request = Request{Key: h.key, Version: h.version, CorrelationID: h.correlationID, ClientID: c.clientID, Body: h.body, Conn: c, form: form, kind: meter.Kind(h.key)}
	reply := c.call()
	reply.asked = asked{kind: c.request.kind, version: h.version, size: int64(len(frame)) + 4, at: began}
	return c.deliver(reply)
}

// call runs the handler.
func (c *Conn) call() (reply Reply) {
	defer func() {
		if p := recover(); p != nil {
			c.server.logger.Error("panic while serving a request: the connection is closed", "key", c.request.Key, "version", c.request.Version,
				"client", c.nc.RemoteAddr().String(), "client_id", c.clientID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			reply = Close(fmt.Errorf("panic: %v", p))
		}
	}()
	return c.server.handler.Serve(c.ctx, &c.request)
}

// deliver sends a reply, or queues it behind one that is pending. An error ends the connection.
func (c *Conn) deliver(r Reply) error {
	c.mu.Lock()
	if !c.writing && r.pending == nil {
		c.mu.Unlock()
		if c.hold(r) {
			return nil
		}
		return c.send(r)
	}
	if c.held != nil { // whoever writes from now on doesn't know of it
		c.mu.Unlock()
		if err := c.sendHeld(); err != nil {
			r.release()
			return err
		}
		c.mu.Lock()
	}
	for len(c.queue) >= maxPending && !c.closed() {
		c.state.Store(sending)
		c.room.Wait()
	}
	c.queue = append(c.queue, r)
	if !c.writing {
		c.writing = true
		go c.writeQueue()
	}
	c.mu.Unlock()
	if r.Closes() {
		return closeCause(r)
	}
	return nil
}

// writeQueue sends the replies of the queue in order, until there is none.
func (c *Conn) writeQueue() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.queue = nil
			c.writing = false
			c.room.Broadcast()
			c.mu.Unlock()
			return
		}
		r := c.queue[0]
		c.queue[0] = Reply{}
		c.queue = c.queue[1:]
		c.room.Broadcast()
		c.mu.Unlock()
		if r.pending != nil {
			asked := r.asked
			var ok bool
			if r, ok = r.pending.wait(c.gone); !ok {
				continue
			}
			r.asked = asked
		}
		if c.closed() {
			r.release()
			continue
		}
		if err := c.send(r); err != nil {
			c.close()
		}
	}
}

const (
	// maxHeld is the most bytes that are held back for one write.
	maxHeld = 16 << 10
	// maxAnswered is the most bytes of requests that are answered by what is held back, unless the next request is here as a whole: to deal with
	// so many takes a fraction of a millisecond.
	maxAnswered = 256 << 10
)

// hold keeps a response back, to be sent together with the next one, when that follows at once: its request is here and is of a kind that doesn't
// wait, or will be read now by way of trial, since this one was there when it was looked for. What is held is sent before anything is waited
// for, and before a request of another kind is dealt with.
func (c *Conn) hold(r Reply) bool {
	if !r.soon || len(r.response.cuts) > 0 {
		return false
	}
	size, answered := len(r.response.B), r.asked.size
	if c.held != nil {
		size += len(c.held.B)
		answered += c.answered
	}
	if size > maxHeld || c.server.draining.Load() {
		return false
	}
	if key, ok := c.in.peek(); ok && key != c.request.Key || !ok && (!c.in.src.flows() || answered > maxAnswered) {
		return false
	}
	if r.response.seal() != nil {
		return false // send says why
	}
	c.count(r.asked, r.response.Size())
	c.join(r.response)
	c.holds, c.answered = c.request.Key, answered
	return true
}

// join puts a response, whose size is filled in, behind those that are held.
func (c *Conn) join(r *Response) {
	if c.held == nil {
		c.held = r
		return
	}
	c.held.B = append(c.held.B, r.B...)
	r.Release()
}

// sendHeld sends what was held back.
func (c *Conn) sendHeld() error {
	if c.held == nil {
		return nil
	}
	r := c.held
	c.held = nil
	return c.write(r)
}

// send writes one complete reply, and counts its request. Only the goroutine whose turn it is to write may call it.
func (c *Conn) send(r Reply) error {
	size := int64(0)
	if r.response != nil {
		size = r.response.Size()
	}
	err := c.transmit(r)
	switch {
	case r.Closes():
		if !errors.Is(r.cause, context.Canceled) {
			c.server.meter.Broken()
		}
	case err == nil:
		c.count(r.asked, size)
	}
	return err
}

// count counts a request that is answered.
func (c *Conn) count(q asked, out int64) {
	c.server.meter.Served(c.shard, q.kind, q.version, c.server.clock()-q.at, q.size, out)
}

// transmit writes one complete reply.
func (c *Conn) transmit(r Reply) error {
	if r.response == nil {
		if err := c.sendHeld(); err != nil || r.silent {
			return err
		}
		return closeCause(r)
	}
	if err := r.response.seal(); err != nil {
		r.response.Release()
		return errors.Join(c.sendHeld(), err)
	}
	if c.held != nil {
		if len(r.response.cuts) == 0 {
			c.join(r.response)
			return c.sendHeld()
		}
		if err := c.sendHeld(); err != nil {
			r.response.Release()
			return err
		}
	}
	return c.write(r.response)
}

// write writes and releases a response whose size is filled in.
func (c *Conn) write(r *Response) error {
	defer r.Release()
	before := c.state.Swap(sending)
	err := c.out.send(c, r)
	// While a queue is written the reader may have gone on: its state counts.
	c.state.CompareAndSwap(sending, before)
	c.progress.Add(1)
	return err
}

func closeCause(r Reply) error {
	if r.cause != nil {
		return r.cause
	}
	return errors.New("closed by the handler")
}

// flush waits until the queue is written: what was asked and handled before the end is still answered.
func (c *Conn) flush() {
	if !c.server.draining.Load() && !c.closing() {
		return
	}
	c.waitWriter()
}

// waitWriter waits for the goroutine that writes the queue, if there is one.
func (c *Conn) waitWriter() {
	c.mu.Lock()
	for c.writing {
		c.room.Wait()
	}
	c.mu.Unlock()
}

// closing reports whether the last reply of the queue ends the connection.
func (c *Conn) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0 && c.queue[len(c.queue)-1].Closes()
}

// close breaks the connection. Any goroutine may call it.
func (c *Conn) close() {
	c.once.Do(func() {
		close(c.gone)
		c.cancel()
		c.nc.Close()
		c.mu.Lock()
		c.room.Broadcast()
		c.mu.Unlock()
	})
}

func (c *Conn) closed() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// wake makes a reader that waits for the next request look up and see that the server drains.
func (c *Conn) wake() { c.nc.SetReadDeadline(time.Unix(1, 0)) }
