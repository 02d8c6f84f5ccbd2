package zookeeper

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/core/election"
)

// hub brings changes from the sources to the watches. A source is set up for the first watch that wants it, and taken down
// with the last.
type hub struct {
	c *coordination

	mu      sync.Mutex
	sources map[election.ChangeKind]*source
	watches map[*watch]bool
}

// source is where changes of one kind come from.
type source struct {
	group *group
	users int
}

func newHub(c *coordination) *hub {
	return &hub{c: c, sources: map[election.ChangeKind]*source{}, watches: map[*watch]bool{}}
}

// open begins a watch, and returns when all that it is about is watched.
func (h *hub) open(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &watch{Changes: election.NewChanges(), hub: h, kinds: slices.Clone(kinds)}
	h.c.mu.Lock()
	running := h.c.running
	h.c.mu.Unlock()
	h.mu.Lock()
	if !running || h.c.isStopped() {
		h.mu.Unlock()
		return nil, election.ErrClosed
	}
	h.watches[w] = true
	groups := make([]*group, len(w.kinds))
	for i, kind := range w.kinds {
		if h.sources[kind] == nil {
			h.sources[kind] = &source{group: h.group(kind)}
			h.c.points.open(h.sources[kind].group)
		}
		h.sources[kind].users++
		groups[i] = h.sources[kind].group
	}
	h.mu.Unlock()
	for _, g := range groups {
		if err := g.await(ctx, h.c.closed); err != nil {
			w.Close()
			return nil, err
		}
	}
	return w, nil
}

// group sets up a source of one kind.
func (h *hub) group(kind election.ChangeKind) *group {
	g := newGroup()
	g.refreshed = func() { h.everything(kind) }
	switch kind {
	case election.BrokersChanged:
		h.brokerSource(g)
	case election.TopicChanged:
		h.topicSource(g)
	case election.ConfigChanged:
		h.configSource(g)
	case election.RequestsChanged:
		h.requestSource(g)
	}
	return g
}

// tell tells the watches that want it of a change.
func (h *hub) tell(ch election.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		if slices.Contains(w.kinds, ch.Kind) {
			w.Add(ch)
		}
	}
}

// everything tells the watches of one kind that they may have missed something.
func (h *hub) everything(kind election.ChangeKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		if slices.Contains(w.kinds, kind) {
			w.Add(election.Change{Kind: election.EverythingChanged})
		}
	}
}

// end ends all watches.
func (h *hub) end() {
	h.mu.Lock()
	watches := slices.Collect(maps.Keys(h.watches))
	h.mu.Unlock()
	for _, w := range watches {
		w.Close()
	}
}

// watch implements election.Watch.
type watch struct {
	*election.Changes
	hub   *hub
	kinds []election.ChangeKind
	once  sync.Once
}

func (w *watch) Close() {
	w.once.Do(func() {
		w.End()
		h := w.hub
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watches, w)
		for _, kind := range w.kinds {
			s := h.sources[kind]
			if s.users--; s.users == 0 {
				delete(h.sources, kind)
				h.c.points.close(s.group)
			}
		}
	})
}
