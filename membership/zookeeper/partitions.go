package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// UpdatePartitions writes states by the versions of their nodes, which are the partition epochs.
func (m metadata) UpdatePartitions(ctx context.Context, epoch int32, updates []election.PartitionUpdate) ([]election.PartitionResult, error) {
	results := make([]election.PartitionResult, len(updates))
	err := m.c.controllerWrite(ctx, epoch, "update partitions", func(ctx context.Context, t *term) error {
		w := stateWriter{c: m.c, t: t, updates: updates, results: results}
		return w.write(ctx)
	})
	return outcomes(results, err)
}

// stateWriter does one UpdatePartitions.
type stateWriter struct {
	c       *coordination
	t       *term
	updates []election.PartitionUpdate
	results []election.PartitionResult
	missing []int // updates whose node isn't there
}

func (w *stateWriter) write(ctx context.Context) error {
	if err := w.makeRoom(ctx); err != nil {
		return err
	}
	type key struct {
		topic     string
		partition int32
	}
	seen, ordered := map[key]bool{}, false
	var items []*item
	for i := range w.updates {
		u := &w.updates[i]
		if w.results[i].Err != nil {
			continue
		}
		if !isName(u.Topic) || u.Partition < 0 {
			w.missing = append(w.missing, i)
			continue
		}
		ordered = ordered || seen[key{u.Topic, u.Partition}]
		seen[key{u.Topic, u.Partition}] = true
		items = append(items, w.item(i))
	}
	if err := w.t.apply(ctx, items, ordered); err != nil {
		return err
	}
	return w.explain(ctx)
}

func (w *stateWriter) conflict(i int) {
	u := &w.updates[i]
	w.results[i].Err = fmt.Errorf("zookeeper: %w: %q partition %d isn't at partition epoch %d", election.ErrConflict, u.Topic, u.Partition, u.State.PartitionEpoch)
}

// item is one update.
func (w *stateWriter) item(i int) *item {
	u := &w.updates[i]
	path := w.t.session.path(statePath(u.Topic, u.Partition))
	data := znode.EncodeState(u.State)
	it := &item{}
	if u.State.PartitionEpoch == -1 {
		it.ops = []any{&zk.CreateRequest{Path: path, Data: data, Acl: w.c.acl(statePath(u.Topic, u.Partition))}}
	} else {
		// ZooKeeper takes a negative version for "any": what is below -1 must meet none.
		it.ops = []any{&zk.SetDataRequest{Path: path, Data: data, Version: u.State.PartitionEpoch}}
		if u.State.PartitionEpoch < -1 {
			it.ops = []any{&zk.CheckVersionRequest{Path: path, Version: 1<<31 - 1}}
		}
	}
	it.done = func(results []zk.MultiResponse) {
		if results[0].Stat != nil {
			w.results[i].PartitionEpoch = results[0].Stat.Version
		}
	}
	it.refused = func(_ int, word error) bool {
		switch {
		case errors.Is(word, zk.ErrBadVersion), errors.Is(word, zk.ErrNodeExists):
			w.conflict(i)
		case errors.Is(word, zk.ErrNoNode):
			w.t.c.mu.Lock() // refused is called from several goroutines
			w.missing = append(w.missing, i)
			w.t.c.mu.Unlock()
		default:
			w.results[i].Err = refusal(fmt.Sprintf("%q partition %d", u.Topic, u.Partition), word, nil)
		}
		return false
	}
	return it
}

// makeRoom creates the nodes above states that are to be created, for partitions that their topics have.
func (w *stateWriter) makeRoom(ctx context.Context) error {
	firsts := map[string][]int{}
	var topics []string
	for i := range w.updates {
		if u := &w.updates[i]; u.State.PartitionEpoch == -1 && isName(u.Topic) && u.Partition >= 0 {
			if firsts[u.Topic] == nil {
				topics = append(topics, u.Topic)
			}
			firsts[u.Topic] = append(firsts[u.Topic], i)
		}
	}
	counts, have, errs := make([]int, len(topics)), make([]map[string]bool, len(topics)), make([]error, len(topics))
	each(len(topics), func(i int) { counts[i], have[i], errs[i] = w.look(ctx, topics[i]) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s := w.t.session
	var above, rooms []*item
	there := func(int, error) bool { return false } // it exists by now, or what comes next says why not
	room := func(path string) *item {
		return &item{ops: []any{&zk.CreateRequest{Path: s.path(path), Acl: w.c.acl(path)}}, done: func([]zk.MultiResponse) {}, refused: there}
	}
	for i, topic := range topics {
		if counts[i] == 0 {
			for _, at := range firsts[topic] {
				w.results[at].Err = fmt.Errorf("zookeeper: %w: %q", election.ErrUnknownTopic, topic)
			}
			continue
		}
		if have[i] == nil {
			above, have[i] = append(above, room(partsPath(topic))), map[string]bool{}
		}
		for _, at := range firsts[topic] {
			n := w.updates[at].Partition
			if int(n) >= counts[i] {
				w.results[at].Err = fmt.Errorf("zookeeper: %w: %q partition %d", election.ErrUnknownPartition, topic, n)
				continue
			}
			if name := strconv.Itoa(int(n)); !have[i][name] {
				have[i][name] = true
				rooms = append(rooms, room(partPath(topic, n)))
			}
		}
	}
	if err := w.t.apply(ctx, above, false); err != nil {
		return err
	}
	return w.t.apply(ctx, rooms, false)
}

// look says how many partitions a topic has (0 when there is no such topic), and which of them have nodes; nil when there is nothing
// for them to be below.
func (w *stateWriter) look(ctx context.Context, topic string) (count int, have map[string]bool, err error) {
	n, err := w.t.session.get(ctx, topicPath(topic))
	if errors.Is(err, zk.ErrNoNode) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	t, err := znode.DecodeTopic(n.data)
	if err != nil {
		return 0, nil, nil //nolint:nilerr // left out wherever topics are read
	}
	names, err := w.t.session.children(ctx, partsPath(topic))
	if errors.Is(err, zk.ErrNoNode) {
		return len(t.Partitions), nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	have = make(map[string]bool, len(names))
	for _, name := range names {
		have[name] = true
	}
	return len(t.Partitions), have, nil
}

// explain says why nodes aren't there.
func (w *stateWriter) explain(ctx context.Context) error {
	counts := map[string]int{}
	for _, i := range w.missing {
		u := &w.updates[i]
		if _, ok := counts[u.Topic]; !ok && isName(u.Topic) {
			count, _, err := w.look(ctx, u.Topic)
			if err != nil {
				return err
			}
			counts[u.Topic] = count
		}
		switch count := counts[u.Topic]; {
		case count == 0:
			w.results[i].Err = fmt.Errorf("zookeeper: %w: %q", election.ErrUnknownTopic, u.Topic)
		case u.Partition < 0 || int(u.Partition) >= count:
			w.results[i].Err = fmt.Errorf("zookeeper: %w: %q partition %d", election.ErrUnknownPartition, u.Topic, u.Partition)
		default:
			w.conflict(i)
		}
	}
	return nil
}
