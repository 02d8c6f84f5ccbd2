package api

import (
	"context"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// Handler answers one kind of request. It is called from the goroutine of the connection and may wait there, between
// [Request.Waiting] and [Request.Resume]; ctx ends when the client has gone or the broker drains. A panic closes the
// connection.
type Handler func(ctx context.Context, r *Request) Reply

// Reply is what a handler answers: [Request.Answer], or one of package wire's.
type Reply = wire.Reply

// Request is one request. It is valid until its handler returns.
type Request struct {
	wire  *wire.Request
	row   *row
	meter *meter.Requests

	// Body is the decoded request, of the type that kmsg has for the key, its version set. It owns its memory. Nil for requests that
	// decode their bytes themselves.
	Body kmsg.Request
}

// Key is the request's key.
func (r *Request) Key() int16 { return r.wire.Key }

// Version is the request's version, one that the table lists.
func (r *Request) Version() int16 { return r.wire.Version }

// ClientID is what the client calls itself, "" when it does not.
func (r *Request) ClientID() string { return r.wire.ClientID }

// Listener is the name of the listener that the request came through.
func (r *Request) Listener() string { return r.wire.Conn.Listener() }

// RemoteHost is the client's IP address.
func (r *Request) RemoteHost() string { return r.wire.Conn.RemoteHost() }

// LocalAddr is the address at which the client reached this broker.
func (r *Request) LocalAddr() net.Addr { return r.wire.Conn.LocalAddr() }

// Software is what the client said of itself in ApiVersions 3 and up (KIP-511), empty when it did not.
func (r *Request) Software() wire.Software { return r.wire.Conn.Software() }

// Waiting says that the handler is about to wait: from now on ctx also ends when the client goes away.
func (r *Request) Waiting() { r.wire.Conn.Waiting() }

// Resume says that the wait is over.
func (r *Request) Resume() { r.wire.Conn.Resume() }

// Answer is the reply that sends resp, in the version of the request. resp is encoded at once and is the caller's again.
func (r *Request) Answer(resp kmsg.Response) Reply {
	resp.SetVersion(r.Version())
	r.countCodes(resp)
	out := r.wire.NewResponse()
	out.B = resp.AppendTo(out.B)
	return wire.Respond(out)
}
