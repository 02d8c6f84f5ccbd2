package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// TxnCommit is a request to commit offsets with a producer's transaction: they count when that commits (KIP-98). Since KIP-447
// members name themselves; who gives generation -1 and no ids isn't checked.
type TxnCommit struct {
	Member
	Producer offsets.Producer
	Offsets  map[TopicPartition]offsets.Offset
}

// txnWrites is what is being written for a transaction.
type txnWrites struct {
	epoch   int16
	known   bool // epoch is; after a load, and once the transaction is being ended, it isn't
	writing map[TopicPartition]int
	count   int
	waiting []Ticket // for count to become 0
}

// InTxn reports whether the group has offsets that a producer has committed in its transaction, which is open as far as the group
// knows.
func (g *Group) InTxn(p offsets.Producer) bool {
	w := g.txnWrites[p.ID]
	return w != nil && w.known && w.epoch == p.Epoch
}

// TxnCommit checks a commit and, when it is in order, asks for it to be written: then the answer comes under the ticket. A
// commit that is refused changes nothing.
func (g *Group) TxnCommit(now time.Time, t Ticket, r TxnCommit) (Effects, error) {
	g.begin(now)
	err := g.txnCommit(t, r)
	return g.end(), err
}

func (g *Group) txnCommit(t Ticket, r TxnCommit) error {
	switch {
	case g.state == Dead:
		return ErrUnavailable
	case r.Generation < 0 && g.state == Empty:
	case r.Generation >= 0 || r.ID != "" || r.InstanceID != nil:
		if _, err := g.checkGeneration(r.Member); err != nil {
			return err
		}
	}
	w := g.txnWrites[r.Producer.ID]
	if w == nil {
		w = &txnWrites{writing: map[TopicPartition]int{}}
		if g.txnWrites == nil {
			g.txnWrites = map[int64]*txnWrites{}
		}
		g.txnWrites[r.Producer.ID] = w
	}
	w.epoch, w.known = r.Producer.Epoch, true
	entries := make([]offsets.Entry, 0, len(r.Offsets))
	for _, tp := range slices.SortedFunc(maps.Keys(r.Offsets), compareTP) {
		o := r.Offsets[tp]
		entries = append(entries, offsets.Entry{Key: offsets.OffsetKey(g.id, tp.Topic, tp.Partition), Offset: &o})
		w.writing[tp]++
	}
	w.count++
	g.write(Write{kind: writeTxnCommit, ticket: t, Producer: &r.Producer}, entries)
	return nil
}

func (g *Group) txnCommitted(w Write, err error) {
	id := w.Producer.ID
	open := g.txnWrites[id]
	if open == nil { // ended meanwhile, which only happens when transactions aren't verified
		g.answer(w.ticket, commitError(err))
		return
	}
	for _, e := range w.Entries {
		tp := partitionOf(e.Key)
		if open.writing[tp]--; open.writing[tp] <= 0 {
			delete(open.writing, tp)
		}
		if err != nil {
			continue
		}
		if g.txn == nil {
			g.txn = map[int64]map[TopicPartition]offsets.Offset{}
		}
		if g.txn[id] == nil {
			g.txn[id] = map[TopicPartition]offsets.Offset{}
		}
		g.txn[id][tp] = *e.Offset
	}
	if open.count--; open.count == 0 {
		for _, t := range open.waiting {
			g.answer(t, nil)
		}
		open.waiting = nil
		if len(g.txn[id]) == 0 {
			delete(g.txnWrites, id)
		}
	}
	g.answer(w.ticket, commitError(err))
}

// knowsTxn reports whether there is anything of a producer's transaction.
func (g *Group) knowsTxn(producer int64) bool {
	return g.txnWrites[producer] != nil || g.txn[producer] != nil
}

// AwaitTxn says that somebody is about to end a producer's transaction, and waits for all its writes to be over. When nothing is
// being written, done is true; else the answer comes under the ticket. From then on the group isn't sure that the transaction is
// open.
func (g *Group) AwaitTxn(t Ticket, producer int64) (done bool) {
	w := g.txnWrites[producer]
	if w == nil {
		return true
	}
	w.known = false
	if w.count == 0 {
		return true
	}
	w.waiting = append(w.waiting, t)
	return false
}

// EndTxn ends the transaction of a producer: its offsets count now, or are forgotten.
func (g *Group) EndTxn(now time.Time, producer int64, commit bool) Effects {
	g.begin(now)
	if commit {
		maps.Copy(g.offsets, g.txn[producer])
	}
	delete(g.txn, producer)
	delete(g.txnWrites, producer)
	return g.end()
}

// inTransaction reports whether an open transaction commits to a partition.
func (g *Group) inTransaction(tp TopicPartition) bool {
	for _, pending := range g.txn {
		if _, ok := pending[tp]; ok {
			return true
		}
	}
	for _, w := range g.txnWrites {
		if w.writing[tp] > 0 {
			return true
		}
	}
	return false
}

// TxnCommit stores offsets of a group that count when the producer's transaction commits, and waits until they are as durable
// as the store promises. verify says whether the group is part of that transaction; it is asked, with the group locked, unless
// the group knows already. Partitions whose metadata is too large are in tooLarge and not committed.
func (m *Manager) TxnCommit(ctx context.Context, group string, r TxnCommit, verify func() error) (tooLarge map[TopicPartition]bool, err error) {
	s, err := m.findValid(group)
	if err != nil {
		return nil, err
	}
	e, err := m.lock(s, group, true)
	if err != nil {
		return nil, err
	}
	tooLarge = map[TopicPartition]bool{}
	for tp, o := range r.Offsets {
		if len(o.Metadata) > m.cfg.MaxMetadata {
			tooLarge[tp] = true
			delete(r.Offsets, tp)
		}
	}
	if !e.group.InTxn(r.Producer) {
		s.note(r.Producer.ID, e) // before it is verified: a marker that comes after that has to wait for this commit
		err = verify()
	}
	if err != nil || len(r.Offsets) == 0 {
		s.settle(r.Producer.ID, e)
		e.finish(false)
		return tooLarge, err
	}
	t, ch := e.ticket()
	fx, err := e.group.TxnCommit(time.Now(), t, r)
	e.deliver(fx)
	if err != nil {
		delete(e.waiting, t)
		s.settle(r.Producer.ID, e)
		e.finish(false)
		return nil, err
	}
	e.finish(true)
	a, err := e.wait(ctx, t, ch)
	if err == nil {
		err = a.Err
	}
	return tooLarge, err
}

// TransactionTopic is the topic that stands for groups in transactions. With a store that has no topic it is a name only.
func (m *Manager) TransactionTopic() string {
	if topic := m.store.Topic(); topic != "" {
		return topic
	}
	return "__consumer_offsets"
}

// EndTransaction writes the marker that ends a producer's transaction into a shard. From then on the offsets that were
// committed in it count, or are forgotten. It may be called again after an error, and when nothing is there to end.
func (m *Manager) EndTransaction(ctx context.Context, shard int32, p offsets.Producer, commit bool, coordinatorEpoch int32) error {
	m.mu.RLock()
	s, stopped := m.shards[shard], m.stopped
	loading := s != nil && s.loading
	m.mu.RUnlock()
	switch {
	case stopped, s == nil:
		return ErrNotCoordinator
	case loading:
		return ErrLoading
	}
	entries := s.noted(p.ID)
	for _, e := range entries {
		e.mu.Lock()
		t, ch := e.ticket()
		if e.gone || e.group.AwaitTxn(t, p.ID) {
			delete(e.waiting, t)
			e.mu.Unlock()
			continue
		}
		e.mu.Unlock()
		if _, err := e.wait(ctx, t, ch); err != nil {
			return err
		}
	}
	ended := offsets.Aborted
	if commit {
		ended = offsets.Committed
	}
	err := m.store.Write(ctx, s.id, s.epoch, offsets.Batch{Timestamp: time.Now().UnixMilli(), Producer: &p, Ended: ended, CoordinatorEpoch: coordinatorEpoch})
	if err != nil {
		return fmt.Errorf("write a transaction marker for groups: %w", err)
	}
	for _, e := range entries {
		e.mu.Lock()
		if e.gone {
			s.forget(p.ID, e)
			e.mu.Unlock()
			continue
		}
		e.deliver(e.group.EndTxn(time.Now(), p.ID, commit))
		s.forget(p.ID, e)
		e.finish(false)
	}
	return nil
}

// note remembers that a group has offsets of a producer's transaction, or is about to. The caller holds the group's lock.
func (s *shard) note(producer int64, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.txns == nil {
		s.txns = map[int64]map[*entry]struct{}{}
	}
	if s.txns[producer] == nil {
		s.txns[producer] = map[*entry]struct{}{}
	}
	s.txns[producer][e] = struct{}{}
}

func (s *shard) noted(producer int64) []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.txns[producer]))
}

// forget is the reverse of note.
func (s *shard) forget(producer int64, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.txns[producer], e); len(s.txns[producer]) == 0 {
		delete(s.txns, producer)
	}
}

// settle forgets a group that has nothing of the transaction after all. The caller holds the group's lock.
func (s *shard) settle(producer int64, e *entry) {
	if !e.group.knowsTxn(producer) {
		s.forget(producer, e)
	}
}
