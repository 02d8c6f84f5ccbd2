package producers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/barnabas-mq/barnabas/core/record"
)

// What Check may refuse a batch for. They come wrapped with what was expected.
var (
	// ErrOutOfOrder says that a sequence number doesn't follow the producer's last one.
	ErrOutOfOrder = errors.New("sequence number out of order")
	// ErrEpoch says that a batch bears an older epoch than its producer was seen with.
	ErrEpoch = errors.New("producer epoch is no longer valid")
	// ErrTxnState says that a batch outside of a transaction came while its producer had one open.
	ErrTxnState = errors.New("transaction state doesn't allow this batch")
	// ErrCoordinatorFenced says that a transaction marker comes from a coordinator that was replaced.
	ErrCoordinatorFenced = errors.New("transaction coordinator is no longer valid")
)

// Window is how many batches of a producer are remembered to recognize one that is sent again.
const Window = 5

// Origin is where a batch comes from, which decides how much of it is checked.
type Origin int8

const (
	// Client batches are checked for epoch and sequence, and for having been appended before.
	Client Origin = iota
	// Coordinator batches, such as committed offsets, are checked for their epoch only.
	Coordinator
	// Replica batches were checked by their leader.
	Replica
)

// Batch is what is remembered of an appended batch.
type Batch struct {
	FirstSequence, LastSequence int32
	// OffsetDelta is the distance from the first to the last offset.
	OffsetDelta int32
	LastOffset  int64
	Timestamp   int64
}

// BaseOffset is the offset of the batch's first record.
func (b Batch) BaseOffset() int64 { return b.LastOffset - int64(b.OffsetDelta) }

// Producer is what is known of one producer id.
type Producer struct {
	ID    int64
	Epoch int16
	// CoordinatorEpoch is that of the coordinator which wrote the last marker, -1 without one.
	CoordinatorEpoch int32
	LastTimestamp    int64
	// TxnFirst is the first offset of the open transaction, -1 without one.
	TxnFirst int64

	batches [Window]Batch
	n       int8
}

// Batches are the remembered batches, oldest first. The slice points into p.
func (p *Producer) Batches() []Batch { return p.batches[:p.n] }

// LastSequence is the last sequence number, -1 without one.
func (p *Producer) LastSequence() int32 {
	if p.n == 0 {
		return record.NoSequence
	}
	return p.batches[p.n-1].LastSequence
}

func (p *Producer) remember(b Batch) {
	if p.n == Window {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = b
	p.n++
}

// Txn is a transaction of a partition that was ended by a marker.
type Txn struct {
	ProducerID  int64
	FirstOffset int64
	// LastOffset is the marker's.
	LastOffset int64
	Aborted    bool
}

// Table holds all producers of one partition.
type Table struct {
	producers map[int64]*Producer
	// open transactions by first offset, and ended ones whose marker isn't replicated everywhere yet, by marker.
	open  []span
	ended []span
}

type span struct {
	first, last int64
	id          int64
}

// New makes an empty table. It costs nothing until the first producer comes.
func New() *Table { return &Table{} }

// Len is the number of producers.
func (t *Table) Len() int { return len(t.producers) }

// Get gives a copy of what is known of a producer.
func (t *Table) Get(id int64) (Producer, bool) {
	if p := t.producers[id]; p != nil {
		return *p, true
	}
	return Producer{}, false
}

// All gives copies of all producers, by id.
func (t *Table) All() []Producer {
	out := make([]Producer, 0, len(t.producers))
	for _, p := range t.producers {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Producer) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Check says whether a batch may be appended. When it was appended before, it gives what is remembered of it, and the
// caller acknowledges that instead of appending. Nothing changes.
func (t *Table) Check(h record.Header, origin Origin) (before Batch, duplicate bool, err error) {
	if h.ProducerID < 0 || origin == Replica {
		return Batch{}, false, nil
	}
	p := t.producers[h.ProducerID]
	if p == nil {
		return Batch{}, false, nil
	}
	if origin == Client && p.Epoch == h.ProducerEpoch && !h.Attributes.Control() {
		last := h.LastSequence()
		for _, b := range p.Batches() {
			if b.FirstSequence == h.BaseSequence && b.LastSequence == last {
				return b, true, nil
			}
		}
	}
	if h.ProducerEpoch < p.Epoch {
		return Batch{}, false, fmt.Errorf("%w: producer %d has epoch %d, the batch %d", ErrEpoch, p.ID, p.Epoch, h.ProducerEpoch)
	}
	if h.Attributes.Control() {
		return Batch{}, false, nil
	}
	if origin == Client {
		if err := p.follows(h); err != nil {
			return Batch{}, false, err
		}
	}
	if p.TxnFirst >= 0 && !h.Attributes.Transactional() {
		return Batch{}, false, fmt.Errorf("%w: producer %d has a transaction open since offset %d", ErrTxnState, p.ID, p.TxnFirst)
	}
	return Batch{}, false, nil
}

// Opens reports whether a batch of records would open a transaction that isn't open here: one of a producer and epoch that
// has none.
func (t *Table) Opens(h record.Header) bool {
	if h.ProducerID < 0 || !h.Attributes.Transactional() || h.Attributes.Control() {
		return false
	}
	p := t.producers[h.ProducerID]
	return p == nil || p.TxnFirst < 0 || p.Epoch != h.ProducerEpoch
}

// follows checks the sequence of a batch whose epoch is at least the producer's.
func (p *Producer) follows(h record.Header) error {
	last := p.LastSequence()
	want := int32(0)
	switch {
	case h.ProducerEpoch != p.Epoch:
		// A new epoch starts at 0, unless none was known.
		if p.Epoch == record.NoProducerEpoch {
			return nil
		}
	default:
		// After a marker that brought a new epoch no sequence is known: 0 is next, as after -1.
		want = record.AddSequence(last, 1)
	}
	if h.BaseSequence != want {
		return fmt.Errorf("%w: producer %d sent sequence %d, %d was next", ErrOutOfOrder, p.ID, h.BaseSequence, want)
	}
	return nil
}

// CheckMarker says whether a transaction marker of a coordinator may be appended.
func (t *Table) CheckMarker(id int64, epoch int16, coordinatorEpoch int32) error {
	p := t.producers[id]
	if p == nil {
		return nil
	}
	if epoch < p.Epoch {
		return fmt.Errorf("%w: producer %d has epoch %d, the marker %d", ErrEpoch, id, p.Epoch, epoch)
	}
	if coordinatorEpoch < p.CoordinatorEpoch {
		return fmt.Errorf("%w: producer %d has seen coordinator epoch %d, the marker has %d", ErrCoordinatorFenced, id, p.CoordinatorEpoch, coordinatorEpoch)
	}
	return nil
}

// Apply takes in a batch of records that was appended with the offsets in h.
func (t *Table) Apply(h record.Header) {
	if h.ProducerID < 0 || h.Attributes.Control() {
		return
	}
	p := t.at(h.ProducerID, h.ProducerEpoch)
	if h.BaseSequence != record.NoSequence {
		p.remember(Batch{FirstSequence: h.BaseSequence, LastSequence: h.LastSequence(), OffsetDelta: h.LastOffsetDelta, LastOffset: h.LastOffset(), Timestamp: h.MaxTimestamp})
	}
	p.LastTimestamp = h.MaxTimestamp
	// What compaction leaves of a batch without records is the last word of a producer whose transaction is over: its marker may be gone.
	if h.Attributes.Transactional() && p.TxnFirst < 0 && h.Count > 0 {
		p.TxnFirst = h.BaseOffset
		i := sort.Search(len(t.open), func(i int) bool { return t.open[i].first > p.TxnFirst })
		t.open = slices.Insert(t.open, i, span{first: p.TxnFirst, id: p.ID})
	}
}

// ApplyMarker takes in a transaction marker that was appended at offset, and gives the transaction that it ended, if any.
// The caller calls Ended once that transaction is in the index of aborted ones.
func (t *Table) ApplyMarker(id int64, epoch int16, coordinatorEpoch int32, offset, timestamp int64, aborted bool) (Txn, bool) {
	p := t.at(id, epoch)
	p.CoordinatorEpoch, p.LastTimestamp = coordinatorEpoch, timestamp
	if p.TxnFirst < 0 {
		return Txn{}, false
	}
	txn := Txn{ProducerID: id, FirstOffset: p.TxnFirst, LastOffset: offset, Aborted: aborted}
	t.open = slices.DeleteFunc(t.open, func(s span) bool { return s.id == id })
	t.ended = append(t.ended, span{first: p.TxnFirst, last: offset, id: id})
	p.TxnFirst = -1
	return txn, true
}

// at finds or makes a producer and brings it to an epoch; a change of epoch empties its window.
func (t *Table) at(id int64, epoch int16) *Producer {
	p := t.producers[id]
	if p == nil {
		if t.producers == nil {
			t.producers = make(map[int64]*Producer)
		}
		p = &Producer{ID: id, Epoch: epoch, CoordinatorEpoch: -1, TxnFirst: -1, LastTimestamp: record.NoTimestamp}
		t.producers[id] = p
	}
	if p.Epoch != epoch {
		p.Epoch, p.n = epoch, 0
	}
	return p
}

// Replicated says that the high watermark is at hw: transactions whose marker lies below it are decided for all.
func (t *Table) Replicated(hw int64) {
	n := 0
	for n < len(t.ended) && t.ended[n].last < hw {
		n++
	}
	t.ended = slices.Delete(t.ended, 0, n)
}

// FirstUnstable is the first offset of the earliest transaction that is open, or ended but not replicated;
// math.MaxInt64 when there is none.
func (t *Table) FirstUnstable() int64 {
	first := int64(math.MaxInt64)
	if len(t.open) > 0 {
		first = t.open[0].first
	}
	for _, s := range t.ended {
		first = min(first, s.first)
	}
	return first
}

// FirstOpen is the first offset of the earliest open transaction; none when there is none.
func (t *Table) FirstOpen(none int64) int64 {
	if len(t.open) == 0 {
		return none
	}
	return t.open[0].first
}

// Expire forgets producers without an open transaction that were silent for at least age milliseconds, and says how many.
func (t *Table) Expire(now, age int64) int {
	before := len(t.producers)
	for id, p := range t.producers {
		if p.TxnFirst < 0 && now-p.LastTimestamp >= age {
			delete(t.producers, id)
		}
	}
	return before - len(t.producers)
}

// Clear forgets everything.
func (t *Table) Clear() { *t = Table{} }
