package liar

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pair are two brokers of which one follows the other, as badly as it is told. Both begin empty.
type Pair struct {
	follower string
	lagAt    int // produce requests after which the follower is left behind
	failAt   int // produce requests after which it is asked instead of the leader; 0 is never
	zombie   bool

	mu       sync.Mutex
	conn     *Broker // to the follower
	produces int
}

// FailsOver is a leader whose follower gets all but some of what is acknowledged, and then takes over.
func FailsOver(follower string, lagAt, failAt int) *Pair {
	return &Pair{follower: follower, lagAt: lagAt, failAt: failAt}
}

// AsksZombie is a leader and a former one, which gets nothing any more and goes on telling its ends.
func AsksZombie(follower string, lagAt int) *Pair {
	return &Pair{follower: follower, lagAt: lagAt, zombie: true}
}

// Close ends the connection to the follower.
func (p *Pair) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.conn.Close()
	}
}

// Lie asks the one or the other.
func (p *Pair) Lie(ask Ask, req kmsg.Request) (kmsg.Response, error) {
	switch req := req.(type) {
	case *kmsg.ProduceRequest, *kmsg.CreateTopicsRequest:
		return p.write(ask, req)
	case *kmsg.FetchRequest:
		if p.failed() {
			return p.askFollower(req)
		}
	case *kmsg.ListOffsetsRequest:
		if p.failed() || p.zombie {
			return p.askFollower(req)
		}
	}
	return ask(req)
}

func (p *Pair) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failAt > 0 && p.produces > p.failAt
}

// askFollower asks the follower over a connection of its own: a fetch may wait.
func (p *Pair) askFollower(req kmsg.Request) (kmsg.Response, error) {
	b, err := Dial(p.follower)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.Ask(req)
}

// write writes to both, in one order.
func (p *Pair) write(ask Ask, req kmsg.Request) (kmsg.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		var err error
		if p.conn, err = Dial(p.follower); err != nil {
			return nil, err
		}
	}
	if !produced(req, func(_ string, r *kmsg.ProduceRequestTopicPartition) { r.Records = anonymous(r.Records) }) {
		resp, err := ask(req)
		if err == nil {
			_, err = p.conn.Ask(req)
		}
		return resp, err
	}
	p.produces++
	if p.failAt > 0 && p.produces > p.failAt {
		return p.conn.Ask(req)
	}
	resp, err := ask(req)
	if err != nil || p.produces > p.lagAt {
		return resp, err
	}
	_, err = p.conn.Ask(req)
	return resp, err
}
