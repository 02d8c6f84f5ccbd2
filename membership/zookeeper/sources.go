package zookeeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// This file says which nodes changes are seen at. What it gives to points is called by their loop alone, so it needs no locks of
// its own.

// brokerSource: brokers come and go, or register anew under the same id.
func (h *hub) brokerSource(g *group) {
	changed := func() { h.tell(election.Change{Kind: election.BrokersChanged}) }
	h.list(g, brokersPath, func(id string) { changed() })
}

// list watches the children of a node, and the data of each. changed is told of a child that appears, is another one, or is gone.
func (h *hub) list(g *group, path string, changed func(child string)) {
	known := map[string]bool{}
	first := true
	h.c.points.add(g, path, true, false, func(_ context.Context, now sight) {
		there := make(map[string]bool, len(now.children))
		for _, child := range now.children {
			there[child] = true
			if !known[child] {
				h.c.points.add(g, path+"/"+child, false, !first, func(_ context.Context, now sight) {
					if now.changed {
						changed(child)
					}
				})
			}
		}
		for child := range known {
			if !there[child] {
				h.c.points.remove(g, path+"/"+child)
				changed(child)
			}
		}
		known, first = there, false
	})
}

// topicSource: topics appear, get partitions or other replicas, are marked for deletion, and disappear; leaders of old brokers have
// written states themselves.
func (h *hub) topicSource(g *group) {
	changed := func(topic string) { h.tell(election.Change{Kind: election.TopicChanged, Topic: topic}) }
	h.list(g, topicsPath, changed)
	marked, first := map[string]bool{}, true
	h.c.points.add(g, deletionsPath, true, false, func(ctx context.Context, now sight) {
		there := make(map[string]bool, len(now.children))
		for _, topic := range now.children {
			if there[topic] = true; !marked[topic] && !first {
				h.unmarkNothing(ctx, topic)
				changed(topic)
			}
		}
		for topic := range marked {
			if !there[topic] {
				changed(topic)
			}
		}
		marked, first = there, false
	})
	h.c.points.add(g, isrChangesPath, true, false, func(ctx context.Context, now sight) {
		if len(now.children) > 0 {
			h.takeISRChanges(ctx, now.children, changed)
		}
	})
}

// unmarkNothing takes the mark of a topic away that doesn't exist: one that is created later must not be deleted for it.
func (h *hub) unmarkNothing(ctx context.Context, topic string) {
	if s := h.c.current(); s != nil && isName(topic) {
		if exists, err := s.exists(ctx, topicPath(topic)); err == nil && !exists {
			h.c.discard(ctx, deletionPath(topic), -1)
		}
	}
}

// takeISRChanges reads what leaders with an inter.broker.protocol.version below 2.7-IV2 say that they have written, and takes it
// away, as the controller does. Whoever begins to watch reads all states, so it doesn't matter what was there before.
func (h *hub) takeISRChanges(ctx context.Context, nodes []string, changed func(topic string)) {
	s := h.c.current()
	if s == nil {
		return
	}
	slices.Sort(nodes)
	for _, name := range nodes {
		path := isrChangesPath + "/" + name
		n, err := s.get(ctx, path)
		if err != nil {
			continue // gone, or everything will be looked at again
		}
		partitions, _, err := znode.DecodePartitions(n.data)
		if err != nil {
			h.c.log.Warn("a notification of a changed ISR can't be read, and is taken away", "node", path, "error", err)
		}
		for _, p := range partitions {
			changed(p.Topic)
		}
		h.c.discard(ctx, path, n.stat.Version)
	}
}

// discard deletes a node on the controller's behalf; it is no matter when it doesn't succeed.
func (c *coordination) discard(ctx context.Context, path string, version int32) {
	c.mu.Lock()
	t := c.term
	c.mu.Unlock()
	if t == nil {
		return // somebody else is controller by now, and will do it
	}
	_, failed, err := t.session.multi(ctx, []any{
		&zk.CheckVersionRequest{Path: t.session.path(controllerEpochPath), Version: t.version},
		&zk.DeleteRequest{Path: t.session.path(path), Version: version},
	})
	if err != nil && failed < 0 && ctx.Err() == nil {
		c.log.Warn("could not take away a node", "node", path, "error", err)
	}
}

// changesLive is how long notifications of changed configurations are kept: every broker must have seen them by then, or have lost
// its session, after which it reads everything.
const changesLive = 15 * time.Minute

// configSource: notifications of changed configurations, which come after the change.
func (h *hub) configSource(g *group) {
	last, first := "", true
	h.c.points.add(g, configChangesPath, true, false, func(ctx context.Context, now sight) {
		nodes := now.children
		slices.Sort(nodes) // they end with ten digits, and begin alike
		from, _ := slices.BinarySearch(nodes, last+"\x00")
		if !first {
			h.tellConfigChanges(ctx, nodes[from:])
		}
		if first = false; len(nodes) > 0 {
			last = max(last, nodes[len(nodes)-1])
		}
		h.purgeConfigChanges(ctx, nodes)
	})
}

// tellConfigChanges reads notifications and tells of them.
func (h *hub) tellConfigChanges(ctx context.Context, nodes []string) {
	s := h.c.current()
	if s == nil {
		return // with another session, everything is read again
	}
	data, errs := make([]node, len(nodes)), make([]error, len(nodes))
	each(len(nodes), func(i int) { data[i], errs[i] = s.get(ctx, configChangesPath+"/"+nodes[i]) })
	for i, name := range nodes {
		if errs[i] != nil {
			h.everything(election.ConfigChanged) // purged, or unreadable: what it said isn't known
			continue
		}
		path, err := znode.DecodeConfigChange(data[i].data)
		if err != nil {
			h.c.log.Warn("a notification of a changed configuration can't be read; all are read again", "node", name, "error", err)
			h.everything(election.ConfigChanged)
			continue
		}
		if e, ok := znode.ParseEntityPath(path); ok {
			h.tell(election.Change{Kind: election.ConfigChanged, Entity: e})
		}
	}
}

// purgeConfigChanges takes notifications away that are old. Whoever sees one does it, as in Kafka; they are looked at from the
// oldest on.
func (h *hub) purgeConfigChanges(ctx context.Context, nodes []string) {
	s := h.c.current()
	for _, name := range nodes {
		if s == nil || ctx.Err() != nil {
			return
		}
		path := configChangesPath + "/" + name
		n, err := s.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil || h.c.now().Sub(time.UnixMilli(n.stat.Ctime)) <= changesLive {
			return
		}
		if err := s.delete(ctx, path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			h.c.log.Warn("could not take away an old notification", "node", path, "error", err)
			return
		}
	}
}

// requestSource: the nodes of Requests.
func (h *hub) requestSource(g *group) {
	changed := func(_ context.Context, now sight) {
		if now.changed {
			h.tell(election.Change{Kind: election.RequestsChanged})
		}
	}
	h.c.points.add(g, reassignPath, false, false, changed)
	h.c.points.add(g, preferredPath, false, false, changed)
	h.c.points.add(g, dirEventsPath, true, false, changed)
}
