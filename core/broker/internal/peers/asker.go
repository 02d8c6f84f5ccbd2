package peers

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// askAtOnce is how many requests of an asker may be under way to one broker. More wait for their turn: none overtakes another
// by waiting for the replicas of a slow partition, and no broker is swamped.
const askAtOnce = 8

// Asker sends single requests to brokers that are known by id, over connections that it keeps. Any goroutine may use it.
type Asker struct {
	peers *Peers

	mu      sync.Mutex
	brokers map[int32]*asked
	closed  bool
}

// asked is what an asker keeps of one broker.
type asked struct {
	turns chan struct{} // holds a token for each request under way
	addr  string        // where idle connections lead
	idle  []*wire.Client
	busy  map[*wire.Client]struct{}
}

// NewAsker makes an asker without connections.
func NewAsker(p *Peers) *Asker { return &Asker{peers: p, brokers: map[int32]*asked{}} }

// Do sends a request to a broker, in the version that the request says, and returns its response, whose memory is the
// caller's. It waits as long as ctx allows. An error says that the broker is not known, could not be reached, or did not
// answer: then it may have done what it was asked. Where a connection that was kept turns out to be closed the request is
// sent again on a new one, so Do is for requests that may be repeated.
func (a *Asker) Do(ctx context.Context, broker int32, req kmsg.Request) (kmsg.Response, error) {
	addr, err := a.peers.Addr(broker)
	if err != nil {
		return nil, err
	}
	b, err := a.broker(broker)
	if err != nil {
		return nil, err
	}
	select {
	case b.turns <- struct{}{}:
		defer func() { <-b.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		client, kept, err := a.take(ctx, broker, b, addr)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(ctx, req)
		a.give(b, client, addr, err)
		if err == nil || !kept || ctx.Err() != nil {
			return resp, err
		}
	}
}

// Close ends all connections, those with requests under way too. It may be called twice.
func (a *Asker) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, b := range a.brokers {
		b.drop()
		for c := range b.busy {
			c.Close()
		}
	}
	return nil
}

func (a *Asker) broker(id int32) (*asked, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, wire.ErrClientClosed
	}
	b := a.brokers[id]
	if b == nil {
		b = &asked{turns: make(chan struct{}, askAtOnce), busy: map[*wire.Client]struct{}{}}
		a.brokers[id] = b
	}
	return b, nil
}

// take gives an idle connection to addr that was kept, or a new one.
func (a *Asker) take(ctx context.Context, id int32, b *asked, addr string) (c *wire.Client, kept bool, err error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, false, wire.ErrClientClosed
	}
	if b.addr != addr {
		b.drop()
		b.addr = addr
	}
	if n := len(b.idle); n > 0 {
		c := b.idle[n-1]
		b.idle = b.idle[:n-1]
		b.busy[c] = struct{}{}
		a.mu.Unlock()
		return c, true, nil
	}
	a.mu.Unlock()
	if c, err = a.peers.dial(ctx, id, addr); err != nil {
		return nil, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		c.Close()
		return nil, false, wire.ErrClientClosed
	}
	b.busy[c] = struct{}{}
	return c, false, nil
}

// give takes a connection back. After a failure all idle ones go as well: the broker has most likely restarted, and whoever
// asks next is not to find that out one connection after the other.
func (a *Asker) give(b *asked, c *wire.Client, addr string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(b.busy, c)
	switch {
	case err != nil:
		c.Close()
		b.drop()
	case a.closed || b.addr != addr:
		c.Close()
	default:
		b.idle = append(b.idle, c)
	}
}

func (b *asked) drop() {
	for _, c := range b.idle {
		c.Close()
	}
	b.idle = nil
}
