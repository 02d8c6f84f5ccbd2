package zookeeper

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// transaction is what one of ZooKeeper's does: all of it or nothing, in order, on nodes of which it is known whether they are
// there. Its effects on what the owner knows come true when it has happened.
type transaction struct {
	sh      *shard
	chroot  string
	ops     []any
	size    int
	changed map[string]bool // nodes that are there afterwards, or aren't
	pending map[int64]map[offsets.Key]pendingEntry
	emptied []string // nodes that may have no children any more
}

// opSize is what an operation takes beside its path and data, at most: headers, lengths, access control.
const opSize = 50

func (sh *shard) begin(chroot string) *transaction {
	return &transaction{sh: sh, chroot: chroot, changed: map[string]bool{}, pending: map[int64]map[offsets.Key]pendingEntry{}}
}

func (t *transaction) has(path string) bool {
	if there, ok := t.changed[path]; ok {
		return there
	}
	return t.sh.known[path]
}

func (t *transaction) add(op any, path string, data []byte) {
	t.ops = append(t.ops, op)
	t.size += opSize + len(t.chroot) + len(path) + len(data)
}

// put writes a node, and makes it and those above it where they are missing.
func (t *transaction) put(path string, data []byte) {
	if t.has(path) {
		t.add(&zk.SetDataRequest{Path: t.chroot + path, Data: data, Version: -1}, path, data)
		return
	}
	t.need(parent(path))
	t.create(path, data)
}

func (t *transaction) create(path string, data []byte) {
	t.add(&zk.CreateRequest{Path: t.chroot + path, Data: data, Acl: zk.WorldACL(zk.PermAll)}, path, data)
	t.changed[path] = true
}

// need makes a node and those above it where they are missing.
func (t *transaction) need(path string) {
	if !t.has(path) {
		t.need(parent(path))
		t.create(path, nil)
	}
}

// remove removes a node, if it is there.
func (t *transaction) remove(path string) {
	if !t.has(path) {
		return
	}
	t.add(&zk.DeleteRequest{Path: t.chroot + path, Version: -1}, path, nil)
	t.changed[path] = false
	t.emptied = append(t.emptied, parent(path))
}

// store stores an entry that counts.
func (t *transaction) store(it item) {
	switch {
	case it.key.Kind == offsets.KindGroup && it.value == nil:
		t.remove(groupPath(it.key.Group))
	case it.key.Kind == offsets.KindGroup:
		t.put(groupPath(it.key.Group), it.value)
	case it.value == nil:
		t.remove(offsetPath(it.key))
		t.remove(detailPath(it.key))
	default:
		t.put(offsetPath(it.key), it.text())
		t.put(detailPath(it.key), it.value)
	}
}

// entriesOf are a producer's pending entries, as the transaction leaves them.
func (t *transaction) entriesOf(producer int64) map[offsets.Key]pendingEntry {
	if of, ok := t.pending[producer]; ok {
		return of
	}
	of := maps.Clone(t.sh.pending[producer])
	if of == nil {
		of = map[offsets.Key]pendingEntry{}
	}
	t.pending[producer] = of
	return of
}

// hold stores an entry that counts when its producer's transaction commits. number is one that no other node has.
func (t *transaction) hold(producer int64, it item, number string) error {
	data, err := it.encodePending()
	if err != nil {
		return err
	}
	of := t.entriesOf(producer)
	path := producerPath(producer) + "/" + number
	if before, ok := of[it.key]; ok {
		path = before.node
	}
	t.put(path, data)
	of[it.key] = pendingEntry{node: path, item: it}
	return nil
}

// end ends a producer's transaction.
func (t *transaction) end(producer int64, how offsets.End) {
	of := t.entriesOf(producer)
	for _, p := range slices.SortedFunc(maps.Values(of), func(a, b pendingEntry) int { return compareText(a.node, b.node) }) {
		if how == offsets.Committed {
			t.store(p.item)
		}
		t.remove(p.node)
	}
	clear(of)
	t.remove(producerPath(producer))
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// apply adds a batch. number makes names for the nodes of pending entries.
func (t *transaction) apply(w *write, number int64) error {
	switch {
	case w.producer == nil:
		for _, it := range w.items {
			t.store(it)
		}
	case w.ended != offsets.NotEnded:
		t.end(w.producer.ID, w.ended)
	default:
		for i, it := range w.items {
			if err := t.hold(w.producer.ID, it, fmt.Sprintf("%s-%d-%d", t.sh.owner, number, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// happened makes the effects come true.
func (t *transaction) happened() {
	for path, there := range t.changed {
		if there {
			t.sh.known[path] = true
		} else {
			delete(t.sh.known, path)
		}
	}
	for producer, of := range t.pending {
		if len(of) == 0 {
			delete(t.sh.pending, producer)
		} else {
			t.sh.pending[producer] = of
		}
	}
}
