package txn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// Coordinators asks other brokers that coordinate transactions.
type Coordinators interface {
	// AddPartitionsToTxn asks a broker, as long as ctx allows. An error says that it could not be asked, or did not answer.
	AddPartitionsToTxn(ctx context.Context, broker int32, req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error)
}

// Guards know which producers may open transactions in partitions of this broker, by the word of a coordinator elsewhere. Its
// word is as of some time ago: a guard is set up before it is asked, and falls when a marker of the producer comes into the
// partition. So no transaction is opened behind the marker that ended it, which nobody would end then (KIP-890).
type Guards struct {
	mu sync.Mutex
	by map[guarded]map[*guard]struct{}
}

type guarded struct {
	to       partition.ID
	producer int64
}

// guard is what one request was told.
type guard struct {
	epoch    int16
	answered bool
	err      error
}

// NewGuards makes guards that know nothing.
func NewGuards() *Guards { return &Guards{by: map[guarded]map[*guard]struct{}{}} }

func (g *Guards) set(p Producer, partitions []partition.ID) []*guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*guard, len(partitions))
	for i, to := range partitions {
		list[i] = &guard{epoch: p.Epoch}
		k := guarded{to, p.ID}
		if g.by[k] == nil {
			g.by[k] = map[*guard]struct{}{}
		}
		g.by[k][list[i]] = struct{}{}
	}
	return list
}

func (g *Guards) release(p Producer, partitions []partition.ID, list []*guard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, to := range partitions {
		k := guarded{to, p.ID}
		if delete(g.by[k], list[i]); len(g.by[k]) == 0 {
			delete(g.by, k)
		}
	}
}

// fall ends all guards of a producer in a partition. It is called before a marker is appended there.
func (g *Guards) fall(to partition.ID, producer int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, guarded{to, producer})
}

// verify says what the coordinator said; known is false when it wasn't asked, or what it said isn't true any more.
func (g *Guards) verify(p Producer, to partition.ID) (known bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for one := range g.by[guarded{to, p.ID}] {
		if !one.answered || one.epoch != p.Epoch {
			continue
		}
		if known, err = true, one.err; err == nil {
			return true, nil
		}
	}
	return known, err
}

// permitTimeout bounds how long a coordinator is waited for. The producer is told to try again then.
const permitTimeout = 10 * time.Second

// Permit asks the coordinator of a transactional id whether a producer may write to partitions of this broker as part of its open
// transaction, when that coordinator is another broker. Until release is called, Verify and VerifyProducer go by its answer.
// Where this broker coordinates, or nothing is verified, it does nothing: they know better.
func (m *Manager) Permit(ctx context.Context, id string, p Producer, partitions []partition.ID) (release func()) {
	shard, elsewhere := m.Elsewhere(id)
	if !elsewhere || len(partitions) == 0 {
		return func() {}
	}
	list := m.o.Guards.set(p, partitions)
	errs := m.askPermission(ctx, shard, id, p, partitions)
	m.o.Guards.mu.Lock()
	for i, one := range list {
		one.answered, one.err = true, errs[i]
	}
	m.o.Guards.mu.Unlock()
	return func() { m.o.Guards.release(p, partitions, list) }
}

// blind reports whether coordinators elsewhere are too old to be asked: then what they coordinate isn't verified, as in Kafka.
func (m *Manager) blind() bool { return m.o.Coordinators != nil && m.o.VerifyVersion == 0 }

// Elsewhere reports whether Permit has somebody to ask about a transactional id, and about which shard.
func (m *Manager) Elsewhere(id string) (shard int32, elsewhere bool) {
	if m.o.Coordinators == nil || m.blind() || !m.verify.Load() || id == "" {
		return 0, false
	}
	at, err := m.ShardOf(id)
	if err != nil {
		return 0, false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return at, m.shards[at] == nil
}

func (m *Manager) askPermission(ctx context.Context, shard int32, id string, p Producer, partitions []partition.ID) []error {
	errs := make([]error, len(partitions))
	all := func(err error) []error {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	broker, _ := m.o.Leader(partition.ID{Topic: Topic, Partition: shard})
	if broker < 0 {
		return all(ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, permitTimeout)
	defer cancel()
	resp, err := m.o.Coordinators.AddPartitionsToTxn(ctx, broker, permitRequest(m.o.VerifyVersion, id, p, partitions))
	switch {
	case err != nil:
		m.log.Warn("a coordinator of transactions could not be asked", "broker", broker, "err", err)
		return all(fmt.Errorf("%w: %w", ErrUnavailable, err))
	case resp.ErrorCode != 0:
		return all(kerr.ErrorForCode(resp.ErrorCode))
	}
	codes := map[partition.ID]int16{}
	for _, t := range resp.Transactions {
		for _, topic := range t.Topics {
			for _, one := range topic.Partitions {
				codes[partition.ID{Topic: topic.Topic, Partition: one.Partition}] = one.ErrorCode
			}
		}
	}
	for i, to := range partitions {
		switch code, ok := codes[to]; {
		case !ok:
			errs[i] = fmt.Errorf("%w: broker %d does not speak of %s", ErrUnavailable, broker, to)
		default:
			errs[i] = kerr.ErrorForCode(code)
		}
	}
	return errs
}

// permitRequest asks whether partitions are part of a transaction.
func permitRequest(version int16, id string, p Producer, partitions []partition.ID) *kmsg.AddPartitionsToTxnRequest {
	txn := kmsg.NewAddPartitionsToTxnRequestTransaction()
	txn.TransactionalID, txn.ProducerID, txn.ProducerEpoch, txn.VerifyOnly = id, p.ID, p.Epoch, true
	at := map[string]int{}
	for _, to := range partitions {
		n, ok := at[to.Topic]
		if !ok {
			n = len(txn.Topics)
			at[to.Topic] = n
			t := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
			t.Topic = to.Topic
			txn.Topics = append(txn.Topics, t)
		}
		txn.Topics[n].Partitions = append(txn.Topics[n].Partitions, to.Partition)
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.SetVersion(version)
	req.Transactions = append(req.Transactions, txn)
	return req
}
