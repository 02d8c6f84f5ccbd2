package compact

import (
	"cmp"
	"slices"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Aborted is an aborted transaction, as the index of aborted transactions has it.
type Aborted struct {
	ProducerID int64
	First      int64 // offset of its first record
	Marker     int64 // offset of its marker
}

// transactions follows the transactions of a log while its batches are walked over in order. All of them must be decided: a
// log is cleaned up to its last stable offset only.
type transactions struct {
	aborted   []Aborted // that have not begun yet, by first offset
	aborting  map[int64]*aborting
	committed map[int64]bool // producers of whose running transaction, which will be committed, a batch was seen
}

// aborting is an aborted transaction whose marker was not seen yet.
type aborting struct {
	txn  Aborted
	seen bool // there was a batch of it
}

func newTransactions(aborted []Aborted) transactions {
	sorted := slices.Clone(aborted)
	slices.SortFunc(sorted, func(a, b Aborted) int { return cmp.Compare(a.First, b.First) })
	return transactions{aborted: sorted, aborting: map[int64]*aborting{}, committed: map[int64]bool{}}
}

func (t *transactions) begin(upTo int64) {
	for len(t.aborted) > 0 && t.aborted[0].First <= upTo {
		a := t.aborted[0]
		t.aborted = t.aborted[1:]
		if old := t.aborting[a.ProducerID]; old == nil || old.txn.Marker < a.First { // the old one's marker is gone
			t.aborting[a.ProducerID] = &aborting{txn: a}
		}
	}
}

// data takes a batch of records and says whether it belongs to an aborted transaction.
func (t *transactions) data(h record.Header) bool {
	t.begin(h.LastOffset())
	if !h.Attributes.Transactional() {
		return false
	}
	if a := t.aborting[h.ProducerID]; a != nil && h.LastOffset() < a.txn.Marker {
		a.seen = true
		return true
	}
	t.committed[h.ProducerID] = true
	return false
}

// marker takes the marker that ends a producer's transaction. It says whether nothing is left of that transaction, so that
// the marker can go; and of an aborted one of which something is left, which it was.
func (t *transactions) marker(h record.Header, commit bool) (empty bool, left *Aborted) {
	t.begin(h.LastOffset())
	id := h.ProducerID
	if commit {
		empty = !t.committed[id]
		delete(t.committed, id)
		return empty, nil
	}
	a := t.aborting[id]
	if a == nil {
		// Of the transaction, which the index doesn't know, there may be batches nevertheless: a reader needs the marker then.
		empty = !t.committed[id]
		delete(t.committed, id)
		return empty, nil
	}
	delete(t.aborting, id)
	if !a.seen {
		return true, nil
	}
	return false, &a.txn
}
