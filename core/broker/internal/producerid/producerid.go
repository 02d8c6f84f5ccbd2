// Package producerid gives producers their ids, from blocks that the cluster's coordination hands to brokers.
//
// Nobody waits here: a block is fetched in the background, and whoever wants an id meanwhile is told to try again (as with
// Apache Kafka since KIP-730). So a coordination that is away holds no connection.
//
// What isn't its business: epochs, sequences and transactions.
package producerid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
)

// ErrLoading says that the next block isn't there yet; trying again soon will help.
var ErrLoading = errors.New("a block of producer ids is being fetched")

var errStopped = errors.New("producer ids are not given any more")

// Blocks gives a broker a block of ids that nobody had before; election.Metadata does.
type Blocks interface {
	ProducerIDs(ctx context.Context, brokerID int32, from int64) (election.ProducerIDBlock, error)
}

// How long to wait after a fetch that failed: at first, and at most.
const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// IDs gives one id after another. Its methods may be called from any goroutine. It has a goroutine only while it fetches.
type IDs struct {
	blocks Blocks
	broker int32
	log    *slog.Logger
	ctx    context.Context // of fetches; ended by Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	next    int64 // of the block in use
	until   int64
	refill  int64         // the id from which on the following block is wanted
	after   *block        // the following block, once it is there
	fetched chan struct{} // closed when the fetch under way ends; nil without one
	stopped bool
}

type block struct{ first, until int64 }

// New makes a source of ids for a broker. The first block is fetched when the first id is asked for, or by Load.
func New(blocks Blocks, brokerID int32, logger *slog.Logger) *IDs {
	ctx, cancel := context.WithCancel(context.Background())
	return &IDs{blocks: blocks, broker: brokerID, log: logger, ctx: ctx, cancel: cancel}
}

// Next gives an id that nobody had before. It returns at once: with ErrLoading while the next block is being fetched.
func (i *IDs) Next() (int64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return 0, errStopped
	}
	if !i.ready() {
		i.fetch()
		return 0, ErrLoading
	}
	id := i.next
	i.next++
	if i.next >= i.refill && i.after == nil {
		i.fetch()
	}
	return id, nil
}

// Load waits until Next has an id to give, or ctx ends.
func (i *IDs) Load(ctx context.Context) error {
	for {
		i.mu.Lock()
		stopped, ready := i.stopped, i.ready()
		if !ready {
			i.fetch()
		}
		fetched := i.fetched
		i.mu.Unlock()
		if stopped {
			return errStopped
		}
		if ready {
			return nil
		}
		select {
		case <-fetched:
		case <-ctx.Done():
			return fmt.Errorf("wait for a block of producer ids: %w", ctx.Err())
		}
	}
}

// Stop ends a fetch that is under way. No block is taken afterwards.
func (i *IDs) Stop(context.Context) error {
	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.cancel()
	i.wg.Wait()
	return nil
}

// ready says whether there is an id to give; it goes on to the following block when that is there. i.mu is held.
func (i *IDs) ready() bool {
	if i.next >= i.until && i.after != nil {
		i.next, i.until = i.after.first, i.after.until
		i.refill = i.until - (i.until-i.next)/10 // when nine tenths are used, as Kafka does
		i.after = nil
	}
	return i.next < i.until
}

// fetch begins to fetch the following block, unless that is under way. i.mu is held.
func (i *IDs) fetch() {
	if i.fetched != nil || i.stopped {
		return
	}
	fetched := make(chan struct{})
	i.fetched = fetched
	i.wg.Go(func() {
		b := i.untilFetched()
		i.mu.Lock()
		i.after, i.fetched = b, nil
		i.mu.Unlock()
		close(fetched)
	})
}

// untilFetched tries until there is a block, which is nil only when Stop came first.
func (i *IDs) untilFetched() *block {
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		b, err := i.blocks.ProducerIDs(i.ctx, i.broker, 0)
		switch {
		case i.ctx.Err() != nil:
			return nil // a block that came all the same is lost: ids are plenty
		case err == nil && b.Count > 0 && b.First >= 0:
			return &block{b.First, b.First + int64(b.Count)}
		case err == nil:
			err = fmt.Errorf("got %d from %d", b.Count, b.First)
		}
		i.log.Warn("no block of producer ids yet; trying again", "in", backoff, "err", err)
		select {
		case <-time.After(backoff):
		case <-i.ctx.Done():
			return nil
		}
	}
}
