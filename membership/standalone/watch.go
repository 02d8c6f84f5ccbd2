package standalone

import (
	"context"

	"github.com/barnabas-mq/barnabas/core/election"
)

// watch implements election.Watch.
type watch struct {
	*election.Changes
	c     *coordination
	wants func(election.ChangeKind) bool
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
	w := &watch{Changes: election.NewChanges(), c: c, wants: wants}
	c.watches[w] = struct{}{}
	return w, nil
}

// changed tells the watches. The caller holds the lock.
func (c *coordination) changed(ch election.Change) {
	for w := range c.watches {
		if w.wants(ch.Kind) {
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
