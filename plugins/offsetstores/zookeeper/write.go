package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// write is a batch on its way to the writer.
type write struct {
	ctx      context.Context
	epoch    int32
	items    []item
	producer *offsets.Producer
	ended    offsets.End
	done     chan error // takes one
}

// late says whether the caller doesn't wait any more.
func (w *write) late() bool { return w.ctx.Err() != nil }

// writesTogether bounds how many batches go into one transaction.
const writesTogether = 256

// Write implements the contract. Batches that come while one is being stored go together in the next transaction.
func (s *Store) Write(ctx context.Context, shardID, epoch int32, b offsets.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("zookeeper: %w", err)
	}
	w := &write{ctx: ctx, epoch: epoch, ended: b.Ended, done: make(chan error, 1)}
	for _, e := range b.Entries {
		it, err := newItem(e)
		if err != nil {
			return fmt.Errorf("zookeeper: %w", err)
		}
		w.items = append(w.items, it)
	}
	if b.Producer != nil {
		producer := *b.Producer
		w.producer = &producer
	}
	if err := s.owners.Check(shardID, epoch); err != nil {
		return fmt.Errorf("zookeeper: %w", err)
	}
	if len(w.items) == 0 && w.ended == offsets.NotEnded {
		return nil
	}
	_, closed, err := s.connection()
	if err != nil {
		return fmt.Errorf("zookeeper: %w", err)
	}
	select {
	case s.writes <- w:
		select {
		case err = <-w.done:
		case <-ctx.Done():
			err = fmt.Errorf("%w: %w", offsets.ErrTimedOut, ctx.Err())
		case <-closed:
			err = offsets.ErrClosed
		}
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", offsets.ErrTimedOut, ctx.Err())
	case <-closed:
		err = offsets.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("zookeeper: write: %w", err)
	}
	return nil
}

// writer stores what comes, until the store stops.
func (s *Store) writer(closed <-chan struct{}) {
	for {
		var batch []*write
		select {
		case <-closed:
			return
		case w := <-s.writes:
			batch = append(batch, w)
		}
	collect:
		for len(batch) < writesTogether {
			select {
			case w := <-s.writes:
				batch = append(batch, w)
			default:
				break collect
			}
		}
		for len(batch) > 0 {
			batch = s.together(batch)
		}
	}
}

// together stores the batches at the front that fit into one transaction, tells their callers, and returns the rest.
func (s *Store) together(batch []*write) (rest []*write) {
	s.shardMu.Lock()
	sh := s.shard
	s.shardMu.Unlock()
	first := batch[0]
	if first.ctx.Err() != nil {
		first.done <- fmt.Errorf("%w: %w", offsets.ErrTimedOut, first.ctx.Err())
		return batch[1:]
	}
	if sh == nil || sh.epoch != first.epoch {
		first.done <- fmt.Errorf("%w: epoch %d", offsets.ErrNotOwner, first.epoch)
		return batch[1:]
	}
	for tries := 0; ; tries++ {
		t, n, err := s.compile(sh, batch)
		if err == nil {
			err = s.commit(first.ctx, sh, t)
		}
		if isTree(err) && tries < treeTries {
			// Somebody else makes or removes nodes here. What is there is looked up; the rest stays as it is.
			if err = s.look(first.ctx, sh, t); err == nil {
				continue
			}
		}
		if isTree(err) {
			err = fmt.Errorf("%w: somebody else changes these nodes: %w", offsets.ErrUnavailable, err)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			err = fmt.Errorf("%w: %w", offsets.ErrTimedOut, err)
			n = 1 // the others may have more time
		}
		for _, w := range batch[:n] {
			w.done <- err
		}
		if err == nil {
			s.prune(first.ctx, sh, t)
		}
		return batch[n:]
	}
}

// treeTries is how often a transaction is made anew because nodes were not as they were known.
const treeTries = 5

// isTree says whether an error comes from nodes that are there, or aren't, against what was known.
func isTree(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNotEmpty)
}

// fenceSize is what the fence's operation and the header take, at most.
const fenceSize = 300

// compile makes a transaction of the first batches, as many as fit; the first alone may be too large.
func (s *Store) compile(sh *shard, batch []*write) (*transaction, int, error) {
	limit := int(s.options.MaxBatch) - fenceSize - len(s.chroot)
	t := sh.begin(s.chroot)
	for n, w := range batch {
		if w.epoch != sh.epoch || n > 0 && w.late() {
			return t, n, nil
		}
		sh.numbers++
		if err := t.apply(w, sh.numbers); err != nil {
			return nil, n + 1, err
		}
		if t.size <= limit {
			continue
		}
		if n == 0 {
			return nil, 1, fmt.Errorf("%w: a transaction of %d bytes, the largest is %s", offsets.ErrTooLarge, t.size, s.options.MaxBatch)
		}
		return s.compile(sh, batch[:n]) // once: these fit
	}
	return t, len(batch), nil
}

// commit carries a transaction out, as the next of the owner's. Errors leave nothing done, but for those of ctx and of the
// store's end.
func (s *Store) commit(ctx context.Context, sh *shard, t *transaction) error {
	for {
		sh.numbers++
		number := sh.numbers
		mine := fence{Epoch: sh.epoch, Owner: sh.owner, Write: number}.encode()
		ops := append([]any{&zk.SetDataRequest{Path: s.chroot + fencePath, Data: mine, Version: sh.version}}, t.ops...)
		sh.unsure[number] = t
		results, err := once(ctx, s, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
		if err == nil && len(results) == len(ops) {
			if err = firstError(results); err == nil {
				sh.settle(number, results[0].Stat.Version)
				return nil
			}
			if isTree(err) {
				delete(sh.unsure, number)
				return err
			}
		}
		if err == nil {
			err = zk.ErrConnectionClosed // an answer that isn't one
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, offsets.ErrClosed):
			return err // it stays unsure
		case lost(err), errors.Is(err, zk.ErrBadVersion):
			if lost(err) {
				if err := wait(ctx, s); err != nil {
					return err
				}
			}
			done, err := s.resolve(ctx, sh, t)
			if done || err != nil {
				return err
			}
		default:
			delete(sh.unsure, number)
			return fmt.Errorf("%w: %w", offsets.ErrUnavailable, err)
		}
	}
}

// firstError is the error of the operation that failed; those before it have none, and those after it one that says nothing.
func firstError(results []zk.MultiResponse) error {
	for _, r := range results {
		if r.Error != nil {
			return r.Error
		}
	}
	return nil
}

// resolve looks who wrote the fence last. done says that t has happened, though nobody said so; without error and done it
// hasn't, and may be tried again, with what is known now.
func (s *Store) resolve(ctx context.Context, sh *shard, t *transaction) (done bool, err error) {
	// The server that is asked may not have heard yet of what another one has answered.
	if _, err := retry(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(s.chroot + fencePath) }); err != nil {
		return false, err
	}
	data, stat, err := s.get(ctx, fencePath)
	if err != nil {
		return false, err
	}
	f, err := decodeFence(data)
	if err != nil {
		return false, err
	}
	if f.Owner != sh.owner {
		return false, fmt.Errorf("%w: it was loaded under epoch %d since", offsets.ErrNotOwner, f.Epoch)
	}
	if stat.Version == sh.version {
		return false, nil
	}
	happened := sh.unsure[f.Write]
	sh.settle(f.Write, stat.Version)
	if happened != nil && happened != t {
		// Another one, which its caller gave up, has happened, so what t was made of isn't true any more.
		return false, errChanged
	}
	return happened == t, nil
}

// errChanged says that a transaction has to be made anew. It counts as a difference in the tree.
var errChanged = fmt.Errorf("an earlier write has happened after all: %w", zk.ErrNoNode)

// settle notes that a transaction has happened, and with it that no other unsure one can happen any more: they all wanted
// the version before.
func (sh *shard) settle(number int64, version int32) {
	if t := sh.unsure[number]; t != nil {
		t.happened()
	}
	clear(sh.unsure)
	sh.version = version
}

// look finds out which of the nodes that a transaction is about are there.
func (s *Store) look(ctx context.Context, sh *shard, t *transaction) error {
	seen := map[string]bool{}
	for _, op := range t.ops {
		path := opPath(op)[len(s.chroot):]
		for ; path != consumersPath && path != ownPath && path != "" && !seen[path]; path = parent(path) {
			seen[path] = true
			there, err := retry(ctx, s, func(c *zk.Conn) (bool, error) {
				there, _, err := c.Exists(s.chroot + path)
				return there, err
			})
			if err != nil {
				return err
			}
			if there {
				sh.known[path] = true
			} else {
				delete(sh.known, path)
			}
		}
	}
	return nil
}

func opPath(op any) string {
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

// prune removes nodes that have nothing below them any more. That it fails doesn't matter: they say nothing.
func (s *Store) prune(ctx context.Context, sh *shard, t *transaction) {
	tried := map[string]bool{}
	for _, path := range t.emptied {
		for ; !tried[path] && strings.Count(path, "/") > 1 && path != groupsPath && path != detailsPath && path != pendingPath && sh.known[path]; path = parent(path) {
			tried[path] = true
			_, err := once(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(s.chroot+path, -1) })
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				break // most often: there are others below it
			}
			delete(sh.known, path)
		}
	}
}
