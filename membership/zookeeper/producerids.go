package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// producerIDs is how many producer ids a block holds, as in Kafka.
const producerIDs = 1000

// ProducerIDs moves /latest_producer_id_block on, by the version of the node.
func (m metadata) ProducerIDs(ctx context.Context, brokerID int32, from int64) (block election.ProducerIDBlock, err error) {
	if brokerID < 0 || from < 0 {
		return block, invalid("producer ids from %d for broker %d", from, brokerID)
	}
	err = m.c.write(ctx, "producer ids", func(ctx context.Context, s *session) error {
		for {
			n, err := s.get(ctx, producerIDsPath)
			if errors.Is(err, zk.ErrNoNode) {
				if err := m.c.createAll(ctx, s, producerIDsPath); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			next, err := znode.DecodeProducerIDs(n.data)
			if err != nil { // to guess could give ids twice
				return fmt.Errorf("%w: %s: %w", election.ErrUnavailable, producerIDsPath, err)
			}
			first := max(next, from)
			if first > math.MaxInt64-producerIDs {
				return fmt.Errorf("%w: no producer ids are left", election.ErrUnavailable)
			}
			block = election.ProducerIDBlock{First: first, Count: producerIDs}
			_, err = s.set(ctx, producerIDsPath, znode.EncodeProducerIDs(brokerID, block), n.stat.Version)
			if !errors.Is(err, zk.ErrBadVersion) {
				return err
			}
		}
	})
	if err != nil {
		return election.ProducerIDBlock{}, err
	}
	return block, nil
}
