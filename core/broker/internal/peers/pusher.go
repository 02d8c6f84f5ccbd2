package peers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// PusherOptions are what a pusher is made of.
type PusherOptions struct {
	// Peers dials.
	Peers *Peers
	// Versions are those of the requests: brokers aren't asked what they speak.
	Versions Versions
	// Own answers requests to this broker itself, at once.
	Own func(req kmsg.Request) kmsg.Response
	// Deliver gets the answers of other brokers, from several goroutines. It must not wait.
	Deliver func(broker int32, epoch int64, req kmsg.Request, resp kmsg.Response)
	// RequestTimeout is how long a broker may take to answer before it is told again: controller.socket.timeout.ms. 0 means
	// Kafka's default.
	RequestTimeout time.Duration
	Logger         *slog.Logger
}

// Pusher brings the controller's requests to the brokers: to each in order, one at a time, over one connection. A request that
// can't be delivered is tried again, with a pause of 100 ms, until the broker is gone or registered anew, or the term of the
// controller is over.
//
// Who lives, and where, it takes from the UpdateMetadata requests that pass through it: the controller tells every broker of a
// change before anything else. So it knows of a broker's end or move as early as anybody.
type Pusher struct {
	o PusherOptions

	mu     sync.Mutex
	addrs  map[int32]string
	queues map[int32]*queue
	closed bool
	work   sync.WaitGroup
}

// warnAfter is how long a request has to be on its way before that is told: a broker that stops or starts is away for less.
const warnAfter = time.Second

// queue is what one registration of a broker is to be told yet.
type queue struct {
	p      *Pusher
	broker int32
	epoch  int64
	ctx    context.Context // ends when the queue is given up
	cancel context.CancelFunc

	mu      sync.Mutex
	pending []kmsg.Request
	signal  chan struct{} // of size 1: something is pending
}

// NewPusher makes a pusher that knows of nobody.
func NewPusher(o PusherOptions) *Pusher {
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Pusher{o: o, addrs: map[int32]string{}, queues: map[int32]*queue{}}
}

// Push sends a request to a broker that is registered under epoch, or sees that it is sent. It returns the answer of this
// broker itself, and nil for others, whose answers are delivered. It belongs to one goroutine, the controller's, and doesn't
// wait for other machines. The request is the pusher's from then on.
func (p *Pusher) Push(broker int32, epoch int64, req kmsg.Request) kmsg.Response {
	if update, ok := req.(*kmsg.UpdateMetadataRequest); ok {
		p.learn(update)
	}
	if broker == p.o.Peers.o.BrokerID {
		return p.o.Own(req)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[broker]
	if q != nil && q.epoch < epoch {
		q.cancel()
		q = nil
	}
	if p.closed || q != nil && q.epoch > epoch {
		return nil
	}
	if q == nil {
		q = &queue{p: p, broker: broker, epoch: epoch, signal: make(chan struct{}, 1)}
		q.ctx, q.cancel = context.WithCancel(context.Background())
		p.queues[broker] = q
		p.work.Go(q.run)
	}
	q.add(req)
	return nil
}

// Drop forgets what was not sent yet, and what was not answered: the controller's term is over. Requests of a next term may be
// pushed right away.
func (p *Pusher) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, q := range p.queues {
		q.cancel()
		delete(p.queues, id)
	}
}

// Close drops everything, for good, and returns when nothing runs any more.
func (p *Pusher) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Drop()
	p.work.Wait()
}

// learn takes in who lives and where, and gives up those who don't.
func (p *Pusher) learn(req *kmsg.UpdateMetadataRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.addrs)
	for i := range req.LiveBrokers {
		b := &req.LiveBrokers[i]
		p.addrs[b.ID] = "" // it lives, though it may have no such listener
		for _, e := range b.Endpoints {
			if e.ListenerName == p.o.Peers.o.Listener {
				p.addrs[b.ID] = net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
			}
		}
	}
	for id, q := range p.queues {
		if _, lives := p.addrs[id]; !lives {
			q.cancel()
			delete(p.queues, id)
		}
	}
}

func (p *Pusher) addr(broker int32) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addrs[broker]
}

// setVersion puts a request into the version that the protocol says.
func (v Versions) setVersion(req kmsg.Request) {
	switch req.(type) {
	case *kmsg.LeaderAndISRRequest:
		req.SetVersion(v.LeaderAndISR)
	case *kmsg.UpdateMetadataRequest:
		req.SetVersion(v.UpdateMetadata)
	case *kmsg.StopReplicaRequest:
		req.SetVersion(v.StopReplica)
	}
}

func (q *queue) add(req kmsg.Request) {
	q.mu.Lock()
	q.pending = append(q.pending, req)
	q.mu.Unlock()
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// next waits for a request, and takes it off the queue; false when the queue is given up.
func (q *queue) next() (kmsg.Request, bool) {
	for q.ctx.Err() == nil {
		q.mu.Lock()
		if len(q.pending) > 0 {
			req := q.pending[0]
			q.pending[0] = nil
			q.pending = q.pending[1:]
			q.mu.Unlock()
			return req, true
		}
		q.mu.Unlock()
		select {
		case <-q.signal:
		case <-q.ctx.Done():
		}
	}
	return nil, false
}

// run sends what is pending until the queue is given up.
func (q *queue) run() {
	defer q.cancel()
	var client *wire.Client
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for {
		req, ok := q.next()
		if !ok {
			return
		}
		q.p.o.Versions.setVersion(req)
		begin, warned := time.Now(), false
		for {
			used := client != nil
			resp, err := q.try(&client, req)
			if q.ctx.Err() != nil {
				return
			}
			if err == nil {
				if warned {
					q.p.o.Logger.Info("the controller reaches a broker again", "broker", q.broker, "after", time.Since(begin).Round(time.Millisecond))
				}
				q.p.o.Deliver(q.broker, q.epoch, req, resp)
				break
			}
			if client != nil {
				client.Close()
				client = nil
			}
			if used && !errors.Is(err, context.DeadlineExceeded) {
				continue // the broker had closed an idle connection, or restarted: a new one will tell
			}
			if !warned && time.Since(begin) >= warnAfter {
				warned = true
				q.p.o.Logger.Warn("the controller does not reach a broker, and tries again until it does or the broker is gone",
					"broker", q.broker, "request", kmsg.NameForKey(req.Key()), "err", err)
			}
			sleep(q.ctx, retryPause)
		}
	}
}

// try sends a request once.
func (q *queue) try(client **wire.Client, req kmsg.Request) (kmsg.Response, error) {
	if *client == nil {
		addr := q.p.addr(q.broker)
		if addr == "" {
			return nil, ErrUnknownBroker
		}
		c, err := q.p.o.Peers.dial(q.ctx, q.broker, addr)
		if err != nil {
			return nil, err
		}
		*client = c
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.p.o.RequestTimeout)
	defer cancel()
	return (*client).Do(ctx, req)
}
