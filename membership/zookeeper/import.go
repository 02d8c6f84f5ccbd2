package zookeeper

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// Import writes a cluster's nodes, in a session of its own. From the first write to the last one /cluster/id holds no id but the name of
// the import: no broker starts on it, this one or Apache Kafka's, and each transaction checks that node's version, so that of
// two imports only the one that began last goes on.
func (c *coordination) Import(ctx context.Context, d election.Dump, o election.ImportOptions) error {
	if err := fits(&d); err != nil {
		return fmt.Errorf("zookeeper: import: %w", err)
	}
	im := &importer{c: c, d: &d, progress: o.Progress}
	begun := false
	err := c.visit(ctx, func(ctx context.Context, s *session) error {
		im.s = s
		if err := im.look(ctx, o.Replace); err != nil || o.DryRun {
			return err
		}
		begun = true
		return im.run(ctx)
	})
	if err != nil && begun {
		err = im.settle(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("zookeeper: import: %w", err)
	}
	return nil
}

// maxRewrites is how many writes may be spent on versions: an hour's, about.
const maxRewrites = 100_000_000

// fits sees that a dump is valid, and that ZooKeeper's nodes can hold it.
func fits(d *election.Dump) error {
	if err := d.Validate(); err != nil {
		return err
	}
	rewrites := int64(max(0, d.LastBrokerID-reservedBrokerIDs))
	for i := range d.Topics {
		t := &d.Topics[i]
		if !isName(t.Name) {
			return fmt.Errorf("%w: topic %q can't be a node", election.ErrInvalid, t.Name)
		}
		if n := len(encodeTopic(t)); n > maxNode {
			return fmt.Errorf("%w: topic %q with its %d partitions takes %d bytes: %w", election.ErrInvalid, t.Name, len(t.Partitions), n, errTooLarge)
		}
		for n := range t.Partitions {
			if st := t.Partitions[n].State; st != nil {
				rewrites += int64(st.PartitionEpoch)
			}
		}
	}
	if rewrites > maxRewrites {
		return fmt.Errorf("%w: partition epochs and broker ids are versions of nodes, and it would take %d writes to reach the dump's", election.ErrInvalid, rewrites)
	}
	for i := range d.Configs {
		e := d.Configs[i].Entity
		if znode.EntityPath(e) == "" || !isName(entityName(e)) || len(znode.EncodeConfig(d.Configs[i].Values)) > maxNode {
			return fmt.Errorf("%w: a configuration of %q can't be a node", election.ErrInvalid, e.Name)
		}
	}
	if d.NextProducerID == math.MaxInt64 {
		return fmt.Errorf("%w: next producer id %d", election.ErrInvalid, d.NextProducerID)
	}
	return nil
}

// maxNode is how much data a node may have, with room for its path in the transaction.
const maxNode = maxItem - 8<<10

func encodeTopic(t *election.Topic) []byte {
	node := znode.Topic{ID: t.ID, Partitions: make([]election.Assignment, len(t.Partitions))}
	for n := range t.Partitions {
		node.Partitions[n] = t.Partitions[n].Assignment
	}
	return znode.EncodeTopic(node)
}

// importer does one import.
type importer struct {
	c        *coordination
	s        *session
	d        *election.Dump
	progress func(done, total int)

	fresh   bool   // there is nothing to remove
	mark    []byte // what /cluster/id holds meanwhile
	version int32  // of /cluster/id: -1 while there is none
	gap     int64  // how far the dump's broker epochs are above ZooKeeper's transactions

	mu          sync.Mutex
	done, total int
}

// look finds out what is there, and whether the dump may take its place.
func (im *importer) look(ctx context.Context, replace bool) error {
	if err := im.s.sync(ctx); err != nil {
		return err
	}
	if err := nobody(ctx, im.s); err != nil {
		return err
	}
	if err := im.count(ctx); err != nil {
		return err
	}
	n, err := im.s.get(ctx, clusterIDPath)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		im.version = -1
		im.fresh, err = im.empty(ctx)
		if err == nil && !im.fresh {
			err = fmt.Errorf("%w: there are topics or configurations below %q, without a cluster id", election.ErrNotEmpty, im.s.path("/"))
		}
		return err
	case err != nil:
		return err
	}
	im.version = n.stat.Version
	if znode.IsImport(n.data) {
		return nil
	}
	if !replace {
		return fmt.Errorf("%w: below %q there is a cluster", election.ErrNotEmpty, im.s.path("/"))
	}
	x := exporter{s: im.s}
	e, err := x.export(ctx)
	if err != nil {
		return err
	}
	e.Dump.BrokerEpoch = 0 // ZooKeeper's own transactions, which rise whatever is written
	return im.d.Follows(&e.Dump)
}

// empty says whether nothing is there but what a broker's start creates before it knows its cluster.
func (im *importer) empty(ctx context.Context) (bool, error) {
	for _, path := range []string{topicsPath, deletionsPath, "/config/topics", "/config/brokers"} {
		names, err := im.s.children(ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) || len(names) > 0 {
			return false, err
		}
	}
	for _, path := range []string{controllerEpochPath, reassignPath, preferredPath} {
		if exists, err := im.s.exists(ctx, path); exists || err != nil {
			return false, err
		}
	}
	for _, path := range []string{producerIDsPath, brokerSequencePath} {
		n, err := im.s.get(ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		if err == nil && (len(n.data) > 0 || n.stat.Version > 0) {
			return false, nil
		}
	}
	return true, nil
}

// maxGap is how many transactions are spent to bring ZooKeeper's count of them, from which broker epochs are taken, above the dump's.
const maxGap = 100_000

// count finds out how far ZooKeeper has counted its transactions, by one that leaves nothing.
func (im *importer) count(ctx context.Context) error {
	at := im.c.root
	for ; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		exists, err := call(ctx, im.s, func(conn *zk.Conn) (bool, error) { exists, _, err := conn.Exists(at); return exists, err })
		if err != nil {
			return err
		}
		if exists {
			break
		}
	}
	zxid, err := call(ctx, im.s, func(conn *zk.Conn) (int64, error) {
		path, err := conn.Create(at+"/barnabas-import-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return 0, err
		}
		_, stat, err := conn.Get(path)
		if err != nil {
			return 0, err
		}
		return stat.Czxid, conn.Delete(path, -1)
	})
	if err != nil {
		return fmt.Errorf("create a node below %q: %w", at+"/", err)
	}
	if im.gap = im.d.BrokerEpoch - zxid; im.gap > maxGap {
		return fmt.Errorf("%w: broker epochs went up to %d, and this ZooKeeper's next would be %d: each time that its ensemble elects a leader, they rise by %d",
			election.ErrInvalid, im.d.BrokerEpoch, zxid+1, int64(1)<<32)
	}
	return nil
}

// run does the import.
func (im *importer) run(ctx context.Context) error {
	if err := im.claim(ctx); err != nil {
		return err
	}
	if err := im.fill(ctx); err != nil {
		return err
	}
	if err := nobody(ctx, im.s); err != nil {
		return err
	}
	_, err := im.s.set(ctx, clusterIDPath, znode.EncodeClusterID(im.d.ClusterID), im.version)
	return placed(clusterIDPath, err)
}

// settle sees, in another session, what became of an import that failed, and takes away what is there in parts: also when nobody waits any
// more. It returns why the import failed; nothing, when all that failed was the answer to the last write.
func (im *importer) settle(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*im.c.o.ConnectionTimeout+10*time.Second)
	defer cancel()
	done := false
	err := im.c.visit(ctx, func(ctx context.Context, s *session) error {
		im.s = s
		if err := s.sync(ctx); err != nil {
			return err
		}
		n, err := s.get(ctx, clusterIDPath)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(n.data, im.mark) {
			id, err := znode.DecodeClusterID(n.data)
			done = err == nil && id == im.d.ClusterID && n.stat.Version == im.version+1
			return nil // otherwise somebody else's, or never changed
		}
		// With another version, nothing that this import has sent can be done any more.
		stat, err := s.set(ctx, clusterIDPath, im.mark, n.stat.Version)
		if err != nil {
			return err
		}
		im.version, im.total = stat.Version, 0
		if err := im.clear(ctx); err != nil {
			return err
		}
		return s.delete(ctx, clusterIDPath, im.version)
	})
	switch {
	case done:
		return nil
	case err != nil:
		return fmt.Errorf("%w (what was written could not be taken away and is marked as unfinished: %w)", why, err)
	}
	return why
}

// claim puts the import's name where the cluster's id belongs.
func (im *importer) claim(ctx context.Context) error {
	if err := im.c.createRoots(ctx, im.s); err != nil {
		return err
	}
	if err := im.c.createAll(ctx, im.s, "/cluster"); err != nil {
		return err
	}
	im.mark = znode.EncodeImport(rand.Text())
	if im.version < 0 {
		im.version = 0
		_, err := im.s.create(ctx, clusterIDPath, im.mark, 0, im.c.acl(clusterIDPath))
		return placed(clusterIDPath, err)
	}
	im.version++
	_, err := im.s.set(ctx, clusterIDPath, im.mark, im.version-1)
	return placed(clusterIDPath, err)
}

// fill writes all but the cluster's id.
func (im *importer) fill(ctx context.Context) error {
	if !im.fresh {
		if err := im.clear(ctx); err != nil {
			return err
		}
	}
	for _, path := range persistentPaths() {
		if err := im.c.createAll(ctx, im.s, path); err != nil {
			return err
		}
	}
	steps := []iter.Seq[any]{im.roots, im.parents, im.partitions, im.states, im.rewrites, im.last}
	for _, step := range steps {
		for range step {
			im.total++
		}
	}
	for _, step := range steps {
		if err := im.write(ctx, step); err != nil {
			return err
		}
	}
	return im.spend(ctx)
}

// write does operations in transactions, several of which are on their way at a time: in whatever order.
func (im *importer) write(ctx context.Context, ops iter.Seq[any]) error {
	g, together := errgroup.WithContext(ctx)
	g.SetLimit(transactions)
	var chunk []any
	bytes := 0
	flush := func() {
		todo := chunk
		g.Go(func() error { return im.transact(together, todo) })
		chunk, bytes = nil, 0
	}
	for op := range ops {
		n := size(op)
		if len(chunk) > 0 && (bytes+n > maxTransaction || len(chunk) == maxOps) {
			flush()
		}
		if together.Err() != nil {
			break
		}
		chunk, bytes = append(chunk, op), bytes+n
	}
	if len(chunk) > 0 {
		flush()
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func pathOf(op any) string {
	switch op := op.(type) {
	case *zk.CreateRequest:
		return op.Path
	case *zk.SetDataRequest:
		return op.Path
	case *zk.DeleteRequest:
		return op.Path
	}
	return ""
}

// transact does operations together, if this import is still the one that goes on.
func (im *importer) transact(ctx context.Context, ops []any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all := append([]any{&zk.CheckVersionRequest{Path: im.s.path(clusterIDPath), Version: im.version}}, ops...)
	_, failed, err := im.s.multi(ctx, all)
	switch {
	case err == nil:
		im.tell(len(ops))
		return nil
	case failed == 0:
		return fmt.Errorf("%w: another import was begun", election.ErrConflict)
	case failed > 0:
		return placed(pathOf(all[failed]), err)
	}
	return err
}

func (im *importer) tell(n int) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.done = min(im.done+n, im.total)
	if im.progress != nil && im.total > 0 {
		im.progress(im.done, im.total)
	}
}

func (im *importer) creation(path string, data []byte) any {
	return &zk.CreateRequest{Path: im.s.path(path), Data: data, Acl: im.c.acl(path)}
}

func (im *importer) setting(path string, data []byte, version int32) any {
	return &zk.SetDataRequest{Path: im.s.path(path), Data: data, Version: version}
}

// roots are the nodes that others are below, and those that stand for themselves.
func (im *importer) roots(yield func(any) bool) {
	if !yield(im.creation(controllerEpochPath, znode.EncodeNumber(im.d.ControllerEpoch))) {
		return
	}
	if next := im.d.NextProducerID; next > 0 {
		first := max(0, next-producerIDs)
		block := election.ProducerIDBlock{First: first, Count: int32(next - first)}
		if !yield(im.setting(producerIDsPath, znode.EncodeProducerIDs(0, block), -1)) {
			return
		}
	}
	for i := range im.d.Topics {
		t := &im.d.Topics[i]
		if !yield(im.creation(topicPath(t.Name), encodeTopic(t))) || t.Deleting && !yield(im.creation(deletionPath(t.Name), nil)) {
			return
		}
	}
	for i := range im.d.Configs {
		c := &im.d.Configs[i]
		if !yield(im.creation(configPath+"/"+znode.EntityPath(c.Entity), znode.EncodeConfig(c.Values))) {
			return
		}
	}
}

// eachState calls do for the partitions that have a state, until it returns false.
func (im *importer) eachState(do func(t *election.Topic, n int32, st *election.PartitionState) bool) {
	for i := range im.d.Topics {
		t := &im.d.Topics[i]
		for n := range t.Partitions {
			if st := t.Partitions[n].State; st != nil && !do(t, int32(n), st) {
				return
			}
		}
	}
}

func (im *importer) parents(yield func(any) bool) {
	last := ""
	im.eachState(func(t *election.Topic, _ int32, _ *election.PartitionState) bool {
		if t.Name == last {
			return true
		}
		last = t.Name
		return yield(im.creation(partsPath(t.Name), nil))
	})
}

func (im *importer) partitions(yield func(any) bool) {
	im.eachState(func(t *election.Topic, n int32, _ *election.PartitionState) bool {
		return yield(im.creation(partPath(t.Name, n), nil))
	})
}

// states creates the nodes of states: with version 0, and therefore what has partition epoch 0 with its data.
func (im *importer) states(yield func(any) bool) {
	im.eachState(func(t *election.Topic, n int32, st *election.PartitionState) bool {
		var data []byte
		if st.PartitionEpoch == 0 {
			data = znode.EncodeState(*st)
		}
		return yield(im.creation(statePath(t.Name, n), data))
	})
}

// rewrites raises versions, which nothing but writes does, to one below what they are to be: of states, whose partition epochs they are,
// and of the node that broker ids are counted by.
func (im *importer) rewrites(yield func(any) bool) {
	im.eachState(func(t *election.Topic, n int32, st *election.PartitionState) bool {
		op := im.setting(statePath(t.Name, n), nil, -1)
		for range st.PartitionEpoch - 1 {
			if !yield(op) {
				return false
			}
		}
		return true
	})
	op := im.setting(brokerSequencePath, nil, -1)
	for range im.d.LastBrokerID - reservedBrokerIDs {
		if !yield(op) {
			return
		}
	}
}

// last writes states by the version that they must have by now.
func (im *importer) last(yield func(any) bool) {
	im.eachState(func(t *election.Topic, n int32, st *election.PartitionState) bool {
		return st.PartitionEpoch == 0 || yield(im.setting(statePath(t.Name, n), znode.EncodeState(*st), st.PartitionEpoch-1))
	})
}

// spend does transactions that change nothing, if ZooKeeper's count isn't above the dump's broker epochs yet.
func (im *importer) spend(ctx context.Context) error {
	if im.gap <= 0 {
		return nil
	}
	n, err := im.s.get(ctx, producerIDsPath)
	if err != nil {
		return err
	}
	op := im.setting(producerIDsPath, n.data, -1)
	errs := make([]error, im.gap+1)
	atMost(8*transactions, len(errs), func(i int) { errs[i] = im.transact(ctx, []any{op}) })
	return firstOf(errs)
}

// clear takes away what was there: what an earlier import left, or what the dump replaces. What others keep beside it stays.
func (im *importer) clear(ctx context.Context) error {
	for _, path := range []string{topicsPath, deletionsPath, "/config/topics", "/config/brokers", configChangesPath, isrChangesPath, dirEventsPath} {
		below, err := im.c.below(ctx, im.s, path)
		if err != nil {
			return err
		}
		// Children come before their parents, so the transactions are done one after the other.
		for len(below) > 0 {
			n := min(maxOps, len(below))
			ops := make([]any, n)
			for i, path := range below[:n] {
				ops[i] = &zk.DeleteRequest{Path: im.s.path(path), Version: -1}
			}
			if err := im.transact(ctx, ops); err != nil {
				return err
			}
			below = below[n:]
		}
	}
	for _, path := range []string{controllerEpochPath, reassignPath, preferredPath, producerIDsPath, brokerSequencePath} {
		exists, err := im.s.exists(ctx, path)
		if err == nil && exists {
			err = im.transact(ctx, []any{&zk.DeleteRequest{Path: im.s.path(path), Version: -1}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
