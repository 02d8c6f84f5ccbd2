package gossip

import (
	"context"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// watch implements election.Watch.
type watch struct {
	*election.Changes
	c     *coordination
	kinds []election.ChangeKind
}

func (c *coordination) watch(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil {
		return nil, election.ErrClosed
	}
	w := &watch{Changes: election.NewChanges(), c: c, kinds: slices.Clone(kinds)}
	c.watches[w] = struct{}{}
	return w, nil
}

// tell tells the watches. The caller holds the lock.
func (c *coordination) tell(ch election.Change) {
	for w := range c.watches {
		if ch.Kind == election.EverythingChanged || slices.Contains(w.kinds, ch.Kind) {
			w.Add(ch)
		}
	}
}

func (w *watch) Close() {
	w.c.mu.Lock()
	delete(w.c.watches, w)
	w.c.mu.Unlock()
	w.End()
}
