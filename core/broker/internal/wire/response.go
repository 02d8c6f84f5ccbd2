package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Response is one response on its way out: bytes, and views of log segments between them.
//
// It comes from [Request.NewResponse] with the header in place. Its owner appends the body to B and passes it on in a
// [Reply]; from then on it belongs to the connection. One goroutine at a time may use it.
type Response struct {
	// B is the frame so far, views left out. Only append to it, and don't touch its first [Response.HeaderLen] bytes.
	B []byte

	headerLen int
	cuts      []cut
	viewBytes int64
	home      *Server
}

// cut is a view that goes out before the byte at position at of B.
type cut struct {
	at   int
	view storage.View
}

// retainedResponse is the most bytes that a response keeps for its next use.
const retainedResponse = 64 << 10

// HeaderLen is the number of bytes of B that belong to the frame and the response header.
func (r *Response) HeaderLen() int { return r.headerLen }

// AddView puts a view behind what was appended to B so far. The response releases it, sent or not.
func (r *Response) AddView(v storage.View) {
	r.cuts = append(r.cuts, cut{at: len(r.B), view: v})
	r.viewBytes += v.Len()
}

// Size is the number of bytes of the frame as it stands, the four of its size field included.
func (r *Response) Size() int64 { return int64(len(r.B)) + r.viewBytes }

// seal fills in the frame's size.
func (r *Response) seal() error {
	size := r.Size() - 4
	if size > math.MaxInt32 {
		return fmt.Errorf("response of %d bytes does not fit into a frame", size)
	}
	binary.BigEndian.PutUint32(r.B, uint32(size))
	return nil
}

// Release gives up a response that will not be sent, views included.
func (r *Response) Release() {
	for i := range r.cuts {
		r.cuts[i].view.Release()
		r.cuts[i] = cut{}
	}
	r.cuts, r.viewBytes = r.cuts[:0], 0
	if cap(r.B) > retainedResponse {
		r.B = nil
	}
	r.home.responses.Put(r)
}

// Reply is what a handler answers: a response, none, or the end of the connection, now or later. The zero value closes the
// connection.
type Reply struct {
	response *Response
	pending  *Pending
	silent   bool
	soon     bool
	cause    error
	asked    asked
}

// asked is what a connection remembers of a request until it is answered.
type asked struct {
	kind    meter.Kind
	version int16
	size    int64         // bytes of the frame, its size field included
	at      time.Duration // by the server's clock, when all of it was there
}

// Respond is the reply that sends r.
func Respond(r *Response) Reply { return Reply{response: r} }

// RespondSoon is the reply that sends r, maybe together with the response to the next request: when that is being read already and
// is of the same kind. The handler promises that requests of this kind never wait for anything but the disk. It saves a
// client that pipelines small requests, and the broker, most of their system calls.
func RespondSoon(r *Response) Reply { return Reply{response: r, soon: true} }

// Silence is the reply to a request that gets no response: Produce with acks=0.
func Silence() Reply { return Reply{silent: true} }

// Close is the reply that ends the connection, once what was asked before has been answered. The cause goes to the log.
func Close(cause error) Reply { return Reply{cause: cause} }

// Later is the reply that p will have. Meanwhile the next request of the connection is read and handled; replies still go
// out in the order of the requests.
func Later(p *Pending) Reply { return Reply{pending: p} }

// Response is the response that the reply sends, nil when it sends none or isn't complete yet.
func (r Reply) Response() *Response { return r.response }

// Err is the cause that was given to [Close].
func (r Reply) Err() error { return r.cause }

// Closes reports whether the reply ends the connection.
func (r Reply) Closes() bool { return r.response == nil && r.pending == nil && !r.silent }

func (r Reply) release() {
	if r.response != nil {
		r.response.Release()
	}
}

// Pending is a reply that somebody completes later, from any goroutine.
type Pending struct {
	done      chan struct{}
	state     atomic.Uint32 // waiting, completed or abandoned
	reply     Reply
	onAbandon func()
}

const (
	waiting uint32 = iota
	completed
	abandoned
)

// NewPending makes a reply to be completed. When the connection breaks first, onAbandon (which may be nil) is called once, from
// the connection's goroutine, so that whoever waits can be told not to; Complete may still be called then.
func NewPending(onAbandon func()) *Pending {
	return &Pending{done: make(chan struct{}), onAbandon: onAbandon}
}

// Complete gives the reply, which must not be another pending one. The first call counts and later ones only release what
// they bring. It does not block and may be called from any goroutine. It reports whether it was the one that counts: then
// onAbandon is never called.
func (p *Pending) Complete(r Reply) bool {
	if !p.state.CompareAndSwap(waiting, completed) {
		r.release()
		return false
	}
	p.reply = r
	close(p.done)
	return true
}

// wait returns the reply, or false when gone is closed before there is one.
func (p *Pending) wait(gone <-chan struct{}) (Reply, bool) {
	select {
	case <-p.done:
		return p.reply, true
	default:
	}
	select {
	case <-p.done:
		return p.reply, true
	case <-gone:
		if p.state.CompareAndSwap(waiting, abandoned) {
			if p.onAbandon != nil {
				p.onAbandon()
			}
			return Reply{}, false
		}
		<-p.done
		return p.reply, true
	}
}
