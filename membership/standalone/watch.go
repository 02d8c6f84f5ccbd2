package standalone

import (
	"context"
	"sync"

	"github.com/barnabas-mq/barnabas/core/election"
)

// watch implements election.Watch: a set of what changed, and a signal that it isn't empty.
type watch struct {
	c      *coordination
	wants  func(election.ChangeKind) bool
	signal chan struct{} // capacity 1
	ended  chan struct{}

	mu      sync.Mutex
	changes map[election.Change]struct{}
	order   []election.Change
	once    sync.Once
}

func (c *coordination) watch(ctx context.Context, wants func(election.ChangeKind) bool) (election.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return nil, election.ErrClosed
	}
	w := &watch{c: c, wants: wants, signal: make(chan struct{}, 1), ended: make(chan struct{}), changes: map[election.Change]struct{}{}}
	c.watches[w] = struct{}{}
	return w, nil
}

// changed tells the watches. The caller holds the lock.
func (c *coordination) changed(ch election.Change) {
	for w := range c.watches {
		if w.wants(ch.Kind) {
			w.add(ch)
		}
	}
}

// notify tells the watches what an operation changed. The caller holds the lock.
func (c *coordination) notify(o *op) {
	switch {
	case o.Topic != nil:
		c.changed(election.Change{Kind: election.TopicChanged, Topic: o.Topic.Name})
	case o.State != nil:
		c.changed(election.Change{Kind: election.TopicChanged, Topic: o.State.Topic})
	case o.Deleting != "":
		c.changed(election.Change{Kind: election.TopicChanged, Topic: o.Deleting})
	case o.Removed != "":
		c.changed(election.Change{Kind: election.TopicChanged, Topic: o.Removed})
		c.changed(election.Change{Kind: election.ConfigChanged, Entity: election.Entity{Kind: election.TopicEntity, Name: o.Removed}})
	case o.Config != nil:
		c.changed(election.Change{Kind: election.ConfigChanged, Entity: o.Config.entity()})
	}
}

func (w *watch) add(ch election.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.changes[ch]; ok {
		return
	}
	w.changes[ch] = struct{}{}
	w.order = append(w.order, ch)
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *watch) Next(ctx context.Context) ([]election.Change, error) {
	for {
		select {
		case <-w.ended:
			return nil, election.ErrClosed
		default:
		}
		w.mu.Lock()
		changes := w.order
		w.order = nil
		clear(w.changes)
		w.mu.Unlock()
		if len(changes) > 0 {
			return changes, nil
		}
		select {
		case <-w.signal:
		case <-w.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w *watch) Close() {
	w.c.mu.Lock()
	delete(w.c.watches, w)
	w.c.mu.Unlock()
	w.end()
}

func (w *watch) end() { w.once.Do(func() { close(w.ended) }) }
