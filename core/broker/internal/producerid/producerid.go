// Package producerid gives producers their ids, from blocks that the cluster's coordination hands to brokers.
//
// What isn't its business: epochs, sequences and transactions.
package producerid

import (
	"context"
	"fmt"
	"sync"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Blocks gives a broker a block of ids that nobody had before; election.Metadata does.
type Blocks interface {
	ProducerIDs(ctx context.Context, brokerID int32, from int64) (election.ProducerIDBlock, error)
}

// IDs gives one id after another. Any goroutine may use it.
type IDs struct {
	blocks Blocks
	broker int32

	mu    sync.Mutex // held while a block is fetched: whoever comes meanwhile needs it, too
	next  int64
	until int64
}

// New makes a source of ids for a broker. Nothing is fetched before the first one is asked for.
func New(blocks Blocks, brokerID int32) *IDs { return &IDs{blocks: blocks, broker: brokerID} }

// Next gives an id. It may wait for the coordination, as long as ctx allows.
func (i *IDs) Next(ctx context.Context) (int64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next >= i.until {
		b, err := i.blocks.ProducerIDs(ctx, i.broker, 0)
		if err != nil {
			return 0, fmt.Errorf("take a block of producer ids: %w", err)
		}
		if b.Count < 1 || b.First < 0 {
			return 0, fmt.Errorf("take a block of producer ids: got %d from %d", b.Count, b.First)
		}
		i.next, i.until = b.First, b.First+int64(b.Count)
	}
	id := i.next
	i.next++
	return id, nil
}
