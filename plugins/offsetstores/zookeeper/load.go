package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// atOnce is how many requests of a load are on their way at a time.
const atOnce = 64

// shard is what the owner knows of the nodes. It belongs to the load, and then to the writer.
type shard struct {
	epoch   int32
	owner   string
	version int32 // the fence's
	numbers int64 // given to transactions

	known   map[string]bool // the nodes that are there
	pending map[int64]map[offsets.Key]pendingEntry

	// unsure are transactions whose answer got lost, by number; at most one of them happened.
	unsure map[int64]*transaction
}

// pendingEntry is an entry of a transaction that is open, and its node.
type pendingEntry struct {
	node string
	item item
}

// Load implements the contract.
func (s *Store) Load(ctx context.Context, shardID, epoch int32, visit func(offsets.Event) error) error {
	if shardID != 0 {
		return fmt.Errorf("zookeeper: %w: there is no shard %d", offsets.ErrNotOwner, shardID)
	}
	if err := s.owners.Begin(shardID, epoch); err != nil {
		return fmt.Errorf("zookeeper: %w", err)
	}
	loaded, err := s.load(ctx, epoch, visit)
	if err == nil {
		// Before the ownership is known: a write that finds it finds this, too.
		s.shardMu.Lock()
		if s.shard == nil || s.shard.epoch <= epoch {
			s.shard = loaded
		}
		s.shardMu.Unlock()
	}
	if err = s.owners.Finish(shardID, epoch, err); err != nil {
		return fmt.Errorf("zookeeper: load: %w", err)
	}
	return nil
}

func (s *Store) load(ctx context.Context, epoch int32, visit func(offsets.Event) error) (*shard, error) {
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	sh := &shard{epoch: epoch, owner: newOwner(), known: map[string]bool{},
		pending: map[int64]map[offsets.Key]pendingEntry{}, unsure: map[int64]*transaction{}}
	if err := s.take(ctx, sh); err != nil {
		return nil, err
	}
	events, err := s.read(ctx, sh)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := visit(e); err != nil {
			return nil, err
		}
	}
	return sh, ctx.Err()
}

// take makes this load the shard's owner: from then on nobody else's writes succeed.
func (s *Store) take(ctx context.Context, sh *shard) error {
	for {
		data, stat, err := s.get(ctx, fencePath)
		if err != nil {
			return fmt.Errorf("read %s: %w", fencePath, err)
		}
		before, err := decodeFence(data)
		if err != nil {
			return err
		}
		if before.Epoch > sh.epoch {
			return fmt.Errorf("%w: node %s is owned under epoch %d, after %d; if no other broker is controller, it is left over from another cluster and may be deleted",
				offsets.ErrNotOwner, s.chroot+fencePath, before.Epoch, sh.epoch)
		}
		if before.Owner == sh.owner { // an earlier round did it, and its answer got lost
			sh.version = stat.Version
			return nil
		}
		mine := fence{Epoch: sh.epoch, Owner: sh.owner}.encode()
		stat, err = once(ctx, s, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(s.chroot+fencePath, mine, stat.Version) })
		switch {
		case err == nil:
			sh.version = stat.Version
			return nil
		case lost(err):
			if err := wait(ctx, s); err != nil {
				return fmt.Errorf("%w: %w", offsets.ErrUnavailable, err)
			}
		case !errors.Is(err, zk.ErrBadVersion):
			return fmt.Errorf("write %s: %w", fencePath, err)
		}
	}
}

// node is one that was read.
type node struct {
	path string
	data []byte
	stat *zk.Stat
}

// read reads all nodes, notes which there are, and makes the events.
func (s *Store) read(ctx context.Context, sh *shard) ([]offsets.Event, error) {
	for _, p := range []string{consumersPath, fencePath, detailsPath, groupsPath, pendingPath} {
		sh.known[p] = true
	}
	numbers, err := s.readOffsets(ctx, sh, consumersPath, "/offsets")
	if err != nil {
		return nil, err
	}
	details, err := s.readOffsets(ctx, sh, detailsPath, "")
	if err != nil {
		return nil, err
	}
	events, err := s.offsetEvents(numbers, details)
	if err != nil {
		return nil, err
	}
	groups, err := s.readBelow(ctx, sh, []string{groupsPath})
	if err != nil {
		return nil, err
	}
	for _, n := range groups {
		name, ok := unescape(n.path[len(groupsPath)+1:])
		if !ok {
			return nil, fmt.Errorf("%w: node %s", offsets.ErrCorrupt, n.path)
		}
		entry, err := decode(offsets.GroupKey(name), n)
		if err != nil {
			return nil, err
		}
		events = append(events, offsets.Event{Entry: entry, Producer: offsets.None})
	}
	pending, err := s.readPending(ctx, sh)
	return append(events, pending...), err
}

// decode reads the record in a node that belongs to a key.
func decode(key offsets.Key, n node) (offsets.Entry, error) {
	k, err := offsets.AppendKey(nil, key)
	if err != nil {
		return offsets.Entry{}, fmt.Errorf("%w: node %s: %w", offsets.ErrCorrupt, n.path, err)
	}
	entry, _, err := offsets.Decode(k, append([]byte{}, n.data...)) // never nil: that is a tombstone's
	if err != nil {
		return offsets.Entry{}, fmt.Errorf("node %s: %w", n.path, err)
	}
	return entry, nil
}

// readOffsets reads all nodes <root>/<group><between>/<topic>/<partition>.
func (s *Store) readOffsets(ctx context.Context, sh *shard, root, between string) (map[offsets.Key]node, error) {
	groups, err := s.children(ctx, sh, []string{root})
	if err != nil {
		return nil, err
	}
	if between != "" {
		for i := range groups {
			groups[i] += between
		}
	}
	topics, err := s.children(ctx, sh, groups)
	if err != nil {
		return nil, err
	}
	nodes, err := s.readBelow(ctx, sh, topics)
	if err != nil {
		return nil, err
	}
	found := make(map[offsets.Key]node, len(nodes))
	foreign := 0
	for _, n := range nodes {
		parts := strings.Split(n.path[len(root)+1:], "/")
		group, ok1 := unescape(parts[0])
		topic, ok2 := unescape(parts[len(parts)-2])
		partition, err := strconv.ParseInt(parts[len(parts)-1], 10, 32)
		if !ok1 || !ok2 || err != nil || strconv.FormatInt(partition, 10) != parts[len(parts)-1] {
			foreign++
			continue
		}
		found[offsets.OffsetKey(group, topic, int32(partition))] = n
	}
	if foreign > 0 {
		s.logger.Warn("passed over nodes that aren't offsets", "below", s.chroot+root, "nodes", foreign)
	}
	return found, nil
}

// offsetEvents puts the numbers and the rest together.
func (s *Store) offsetEvents(numbers, details map[offsets.Key]node) ([]offsets.Event, error) {
	events := make([]offsets.Event, 0, len(numbers))
	foreign := 0
	for key, n := range numbers {
		number, err := strconv.ParseInt(strings.TrimSpace(string(n.data)), 10, 64)
		if err != nil {
			foreign++
			continue
		}
		// What an old consumer commits is a number and no more.
		entry := offsets.Entry{Key: key, Offset: &offsets.Offset{Offset: number, LeaderEpoch: offsets.None, CommitTimestamp: n.stat.Mtime, ExpireTimestamp: offsets.None}}
		if d, ok := details[key]; ok {
			whole, err := decode(key, d)
			if err != nil {
				return nil, err
			}
			if whole.Offset != nil && whole.Offset.Offset == number {
				entry = whole
			}
		}
		events = append(events, offsets.Event{Entry: entry, Producer: offsets.None})
	}
	if foreign > 0 {
		s.logger.Warn("passed over offsets that aren't numbers", "below", s.chroot+consumersPath, "nodes", foreign)
	}
	return events, nil
}

// readPending reads what transactions that are open have committed.
func (s *Store) readPending(ctx context.Context, sh *shard) ([]offsets.Event, error) {
	producers, err := s.children(ctx, sh, []string{pendingPath})
	if err != nil {
		return nil, err
	}
	nodes, err := s.readBelow(ctx, sh, producers)
	if err != nil {
		return nil, err
	}
	var events []offsets.Event
	for _, n := range nodes {
		id, err := strconv.ParseInt(strings.Split(n.path[len(pendingPath)+1:], "/")[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: node %s", offsets.ErrCorrupt, n.path)
		}
		it, entry, err := decodePending(n.data)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.path, err)
		}
		if sh.pending[id] == nil {
			sh.pending[id] = map[offsets.Key]pendingEntry{}
		}
		sh.pending[id][entry.Key] = pendingEntry{node: n.path, item: it}
		events = append(events, offsets.Event{Entry: entry, Producer: id})
	}
	return events, nil
}

// get reads a node.
func (s *Store) get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	n, err := retry(ctx, s, func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(s.chroot + path)
		return node{path, data, stat}, err
	})
	return n.data, n.stat, err
}

// children lists the nodes below others, and notes them. Those that are gone have none.
func (s *Store) children(ctx context.Context, sh *shard, of []string) ([]string, error) {
	lists := make([][]string, len(of))
	there := make([]atomic.Bool, len(of))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, path := range of {
		g.Go(func() error {
			names, err := retry(ctx, s, func(c *zk.Conn) ([]string, error) {
				names, _, err := c.Children(s.chroot + path)
				return names, err
			})
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", path, err)
			}
			there[i].Store(true)
			for _, name := range names {
				lists[i] = append(lists[i], path+"/"+name)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []string
	for i, list := range lists {
		if there[i].Load() {
			sh.known[of[i]] = true
		}
		for _, path := range list {
			sh.known[path] = true
		}
		all = append(all, list...)
	}
	return all, nil
}

// readBelow reads the nodes below others. Those that are gone meanwhile are left out.
func (s *Store) readBelow(ctx context.Context, sh *shard, of []string) ([]node, error) {
	paths, err := s.children(ctx, sh, of)
	if err != nil {
		return nil, err
	}
	nodes := make([]node, len(paths))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, path := range paths {
		g.Go(func() error {
			data, stat, err := s.get(ctx, path)
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			nodes[i] = node{path, data, stat}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	found := nodes[:0]
	for i, n := range nodes {
		if n.stat == nil {
			delete(sh.known, paths[i])
			continue
		}
		found = append(found, n)
	}
	return found, nil
}
