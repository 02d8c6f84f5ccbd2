package election

import (
	"context"
	"sync"
)

// Changes is what a [Watch] remembers between two calls of Next: each thing that changed once, in order. It is a kit for
// implementations, which add to it and leave Next to it. Its methods may be called from any goroutine.
type Changes struct {
	signal chan struct{} // capacity 1: something was added
	ended  chan struct{}
	once   sync.Once

	mu    sync.Mutex
	seen  map[Change]struct{}
	order []Change
}

// NewChanges remembers nothing yet.
func NewChanges() *Changes {
	return &Changes{signal: make(chan struct{}, 1), ended: make(chan struct{}), seen: map[Change]struct{}{}}
}

// Add remembers a change, and wakes Next. What is remembered already costs nothing more (clause 3.3).
func (c *Changes) Add(ch Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[ch]; ok {
		return
	}
	c.seen[ch] = struct{}{}
	c.order = append(c.order, ch)
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Next is that of a [Watch]: it returns what is remembered, and waits while that is nothing; [ErrClosed] after End.
func (c *Changes) Next(ctx context.Context) ([]Change, error) {
	for {
		select {
		case <-c.ended:
			return nil, ErrClosed
		default:
		}
		if changes := c.take(); len(changes) > 0 {
			return changes, nil
		}
		select {
		case <-c.signal:
		case <-c.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Changes) take() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := c.order
	c.order = nil
	clear(c.seen)
	return changes
}

// End makes Next return ErrClosed from now on. It may be called again.
func (c *Changes) End() { c.once.Do(func() { close(c.ended) }) }
