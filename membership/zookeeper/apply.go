package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// A controller's writes. Items are put together into transactions, each of which begins with a check that nobody was elected since,
// and several of which are on their way at a time. An operation that ZooKeeper refuses undoes its whole transaction: then the item
// that it belongs to is told, and the others are tried again without it.

// item is what is done together or not at all.
type item struct {
	ops  []any
	done func(results []zk.MultiResponse) // told of the success
	// refused is told which of ops ZooKeeper refused, and with which of its words. It may change ops and say that the item is
	// to be tried again.
	refused func(op int, word error) (again bool)
}

const (
	// maxTransaction is how many bytes go into one transaction: ZooKeeper refuses packets of 1 MiB (jute.maxbuffer), and writes
	// transactions one after the other.
	maxTransaction = 256 << 10
	// maxItem is how large one item may be.
	maxItem = 1000 << 10
	// maxOps is how many operations go into one transaction.
	maxOps = 512
	// transactions is how many are on their way at a time.
	transactions = 8
)

// size is how many bytes an operation takes, nearly.
func size(op any) int {
	const rest = 64
	switch op := op.(type) {
	case *zk.CreateRequest:
		return len(op.Path) + len(op.Data) + 2*rest
	case *zk.SetDataRequest:
		return len(op.Path) + len(op.Data) + rest
	case *zk.DeleteRequest:
		return len(op.Path) + rest
	case *zk.CheckVersionRequest:
		return len(op.Path) + rest
	}
	return rest
}

func (it *item) size() (n int) {
	for _, op := range it.ops {
		n += size(op)
	}
	return n
}

// errTooLarge is the word for an item that ZooKeeper would close the connection for.
var errTooLarge = errors.New("it doesn't fit into a node of ZooKeeper (jute.maxbuffer)")

// controllerTerm is the term that a write's epoch belongs to: this member's, or another's on whose behalf the write is done.
func (c *coordination) controllerTerm(ctx context.Context, epoch int32) (*term, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	own, running, ended := c.term, c.running, c.ended
	c.mu.Unlock()
	switch {
	case !running:
		return nil, election.ErrClosed
	case own != nil && own.epoch == epoch:
		return own, nil
	case own != nil || epoch <= ended:
		return nil, fmt.Errorf("zookeeper: %w: epoch %d", election.ErrStaleController, epoch)
	}
	return c.deputize(ctx, epoch)
}

// deputize makes the term of a controller elsewhere, as far as writes on its behalf need it. Configurations are changed so, by
// whichever broker is asked.
func (c *coordination) deputize(ctx context.Context, epoch int32) (t *term, err error) {
	err = c.read(ctx, "whose epoch it is", func(ctx context.Context, s *session) error {
		stale := fmt.Errorf("%w: epoch %d", election.ErrStaleController, epoch)
		n, err := s.get(ctx, controllerEpochPath)
		if errors.Is(err, zk.ErrNoNode) {
			return stale
		}
		if err != nil {
			return err
		}
		if now, err := znode.DecodeNumber(n.data); err != nil || now != epoch {
			return errors.Join(err, stale)
		}
		at, err := s.get(ctx, controllerPath)
		if errors.Is(err, zk.ErrNoNode) || err == nil && at.stat.Czxid != n.stat.Mzxid { // it has resigned
			return stale
		}
		if err != nil {
			return err
		}
		t = &term{c: c, epoch: epoch, version: n.stat.Version, session: s, deputy: true, controller: at.stat.Version}
		return nil
	})
	return t, err
}

// controllerWrite does something under a controller's epoch. plan may read; what it does not write through t.apply is no write of
// a controller.
func (c *coordination) controllerWrite(ctx context.Context, epoch int32, what string, plan func(ctx context.Context, t *term) error) error {
	t, err := c.controllerTerm(ctx, epoch)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.o.ConnectionTimeout, errTooLong)
	defer cancel()
	err = plan(limited, t)
	if err != nil && !errors.Is(err, election.ErrStaleController) && t.over.Load() && !c.isStopped() && ctx.Err() == nil {
		// What failed because the session is over can't be tried again under this epoch.
		err = fmt.Errorf("%w: %w", election.ErrUnavailable, err)
	}
	return c.outcome(ctx, limited, what, err)
}

// apply does items, in the order given where ordered, and returns when the outcome of all is known. Its error says that of some it
// isn't, or that the term is over.
func (t *term) apply(ctx context.Context, items []*item, ordered bool) error {
	// Where one is refused there may be more: the fewer are together, the fewer are tried in vain.
	for most := maxOps; len(items) > 0; most = max(most/4, 1) {
		var chunks [][]*item
		var chunk []*item
		bytes, ops := 0, 0
		for _, it := range items {
			n := it.size()
			if n > maxItem {
				it.refused(0, errTooLarge)
				continue
			}
			if len(chunk) > 0 && (bytes+n > maxTransaction || ops+len(it.ops) > most) {
				chunks = append(chunks, chunk)
				chunk, bytes, ops = nil, 0, 0
			}
			chunk = append(chunk, it)
			bytes, ops = bytes+n, ops+len(it.ops)
		}
		if len(chunk) > 0 {
			chunks = append(chunks, chunk)
		}
		rest, errs := make([][]*item, len(chunks)), make([]error, len(chunks))
		if ordered {
			for i := range chunks {
				for again := chunks[i]; len(again) > 0 && errs[i] == nil; {
					again, errs[i] = t.transact(ctx, again)
				}
				if errs[i] != nil {
					return errs[i]
				}
			}
			return nil
		}
		atMost(transactions, len(chunks), func(i int) { rest[i], errs[i] = t.transact(ctx, chunks[i]) })
		if err := firstOf(errs); err != nil {
			return err
		}
		items = nil
		for _, again := range rest {
			items = append(items, again...)
		}
	}
	return nil
}

// firstOf gives the error that says most: that the term is over, or else any.
func firstOf(errs []error) (first error) {
	for _, err := range errs {
		if first == nil || errors.Is(err, election.ErrStaleController) {
			if err != nil {
				first = err
			}
		}
	}
	return first
}

// transact tries items in one transaction, and returns those that are to be tried again.
func (t *term) transact(ctx context.Context, items []*item) (again []*item, err error) {
	if t.over.Load() {
		return nil, fmt.Errorf("%w: epoch %d", election.ErrStaleController, t.epoch)
	}
	ops := []any{&zk.CheckVersionRequest{Path: t.session.path(controllerEpochPath), Version: t.version}}
	if t.deputy { // as Kafka does when a broker changes a configuration
		ops = append(ops, &zk.CheckVersionRequest{Path: t.session.path(controllerPath), Version: t.controller})
	}
	checks := len(ops)
	for _, it := range items {
		ops = append(ops, it.ops...)
	}
	results, failed, err := t.session.multi(ctx, ops)
	switch {
	case err == nil:
		at := checks
		for _, it := range items {
			it.done(results[at : at+len(it.ops)])
			at += len(it.ops)
		}
		return nil, nil
	case failed < 0:
		return nil, err
	case failed < checks:
		t.c.mu.Lock()
		t.c.endTerm(t)
		t.c.mu.Unlock()
		return nil, fmt.Errorf("%w: epoch %d has a successor", election.ErrStaleController, t.epoch)
	}
	if passes(err) || errors.Is(err, zk.ErrNoAuth) {
		return nil, err
	}
	at := checks
	for i, it := range items {
		if failed < at+len(it.ops) {
			again = append(again, items[:i]...)
			if it.refused(failed-at, err) {
				again = append(again, it)
			}
			return append(again, items[i+1:]...), nil
		}
		at += len(it.ops)
	}
	return nil, err
}

// refusal makes ZooKeeper's word the contract's error.
func refusal(what string, word error, words map[error]error) error {
	if errors.Is(word, errTooLarge) {
		return invalid("%s: %w", what, errTooLarge)
	}
	for w, sentinel := range words {
		if errors.Is(word, w) {
			return fmt.Errorf("zookeeper: %s: %w", what, sentinel)
		}
	}
	return fmt.Errorf("zookeeper: %s: %w: %w", what, election.ErrUnavailable, word)
}
