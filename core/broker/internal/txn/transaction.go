package txn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/offsets"
)

// State is where a transaction stands, with Kafka's numbers.
type State int8

// The states of a transaction.
const (
	Empty          State = 0 // none was begun since the producer took its epoch
	Ongoing        State = 1 // open
	PrepareCommit  State = 2 // decided; its markers are being written
	PrepareAbort   State = 3
	CompleteCommit State = 4 // all markers are written
	CompleteAbort  State = 5
	Dead           State = 6 // expired
)

// String is Kafka's name of the state, which clients see.
func (s State) String() string {
	names := [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead"}
	if s < 0 || int(s) >= len(names) {
		return "State(" + strconv.Itoa(int(s)) + ")"
	}
	return names[s]
}

// Producer is who a request comes from.
type Producer = offsets.Producer

// none stands for a producer id or epoch that there isn't.
const none = -1

func noProducer() Producer { return Producer{ID: none, Epoch: none} }

// lastEpoch is the newest epoch that a client is given. One more is kept to fence the producer that has it.
const lastEpoch = math.MaxInt16 - 1

// Transaction is what a coordinator knows of one transactional id. One goroutine at a time may use it.
//
// Events are methods that take the time. An event that changes something returns a [Change], which the caller stores and then
// gives back with Stored; until then it is not in force, and nearly everything else is answered with ErrConcurrent. An event
// that returns no change changes nothing.
type Transaction struct {
	id     string
	stored Record
	last   Producer // before the last InitProducerId that named its producer (KIP-360), else none
	// pending is the change that is being stored.
	pending *Change
	// fencing is set when storing the fencing of a producer failed: its epoch stays raised, and isn't raised again.
	fencing bool
}

// Change is a change of a transaction, to be stored.
type Change struct {
	// Record is what is stored. Dead is stored as a tombstone.
	Record
	last  Producer
	fence bool
}

// NewTransaction makes a transactional id that has never been stored: it has a producer id, and no epoch yet.
func NewTransaction(id string, producerID int64) *Transaction {
	return &Transaction{id: id, last: noProducer(),
		stored: Record{ProducerID: producerID, Epoch: none, Started: none, Updated: none}}
}

// Restore makes a transaction from what was stored.
func Restore(id string, r Record) *Transaction {
	return &Transaction{id: id, stored: r, last: noProducer()}
}

// ID is the transactional id.
func (t *Transaction) ID() string { return t.id }

// Record is what is in force. Its slice must not be changed.
func (t *Transaction) Record() Record { return t.stored }

// Producer is the current producer.
func (t *Transaction) Producer() Producer {
	return Producer{ID: t.stored.ProducerID, Epoch: t.stored.Epoch}
}

// Unborn reports whether nothing was ever stored, so that the id does not exist for anybody but its creator.
func (t *Transaction) Unborn() bool { return t.stored.Epoch == none }

// Init is a producer's wish to be given an epoch.
type Init struct {
	// Timeout is how long its transactions may stay open.
	Timeout time.Duration
	// Expected is who the producer was until now (KIP-360), nil when it begins.
	Expected *Producer
	// FreshID is a producer id that nobody had, for when [Transaction.NeedsID] says so; else -1.
	FreshID int64
}

// NeedsID reports whether Init would use up a fresh producer id: the epochs of the current one are exhausted.
func (t *Transaction) NeedsID() bool {
	return t.pending == nil && t.ended() && t.stored.Epoch >= lastEpoch
}

// ended reports whether no transaction is open or being ended.
func (t *Transaction) ended() bool {
	return t.stored.State == Empty || t.stored.State == CompleteCommit || t.stored.State == CompleteAbort
}

// Init gives the producer an epoch that nobody had. An open transaction is aborted first, with the epoch raised so that
// whoever had it open can't go on; the change comes with ErrConcurrent then, and the producer has to ask again.
func (t *Transaction) Init(now time.Time, r Init) (*Change, error) {
	switch {
	case t.pending != nil:
		return nil, ErrConcurrent
	case !t.mayInit(r.Expected):
		return nil, ErrFenced
	}
	switch t.stored.State {
	case Ongoing:
		return t.abort(now, true), ErrConcurrent
	case PrepareCommit, PrepareAbort:
		return nil, ErrConcurrent
	case Dead:
		return nil, ErrNotCoordinator
	}
	c := &Change{Record: Record{ProducerID: t.stored.ProducerID, Epoch: t.stored.Epoch + 1, Timeout: r.Timeout, State: Empty,
		Updated: now.UnixMilli(), Started: none}, last: noProducer()}
	expected := int16(none)
	if r.Expected != nil {
		expected = r.Expected.Epoch
	}
	switch {
	case t.stored.Epoch >= lastEpoch && (r.Expected == nil || expected == t.stored.Epoch):
		if r.FreshID < 0 {
			return nil, ErrUnavailable
		}
		c.ProducerID, c.Epoch = r.FreshID, 0
		if r.Expected != nil {
			c.last = t.Producer()
		}
	case r.Expected == nil:
	case t.Unborn(), expected == t.stored.Epoch:
		c.last = t.Producer()
	case *r.Expected == t.last:
		// Asked before, and the answer was lost. Nobody else can be fenced by that: another producer would have had last
		// forgotten.
		c.Epoch, c.last = t.stored.Epoch, t.last
	default:
		return nil, ErrFenced
	}
	return t.begin(c), nil
}

// mayInit says whether the producer that was is the current one or, with exhausted epochs, the one before.
func (t *Transaction) mayInit(p *Producer) bool {
	return p == nil || t.Unborn() || p.ID == t.stored.ProducerID || p.ID == t.last.ID && p.Epoch >= lastEpoch
}

// check says whether a request comes from the current producer.
func (t *Transaction) check(p Producer) error {
	switch {
	case p.ID != t.stored.ProducerID || t.Unborn():
		return ErrProducerMapping
	case p.Epoch != t.stored.Epoch:
		return fmt.Errorf("%w: epoch %d, the current one is %d", ErrFenced, p.Epoch, t.stored.Epoch)
	case t.pending != nil:
		return ErrConcurrent
	}
	return nil
}

// Add adds partitions to the transaction, and begins it if it is the first time. No change when all are in it already.
func (t *Transaction) Add(now time.Time, p Producer, partitions []partition.ID) (*Change, error) {
	if err := t.check(p); err != nil {
		return nil, err
	}
	c := &Change{Record: t.stored, last: t.last}
	switch t.stored.State {
	case PrepareCommit, PrepareAbort:
		return nil, ErrConcurrent
	case Dead:
		return nil, ErrProducerMapping
	case Ongoing:
		if t.has(partitions) {
			return nil, nil
		}
	default:
		c.Started = now.UnixMilli()
		c.Partitions = nil
	}
	c.State, c.Updated = Ongoing, now.UnixMilli()
	c.Partitions = sorted(append(slices.Clone(c.Partitions), partitions...))
	return t.begin(c), nil
}

func (t *Transaction) has(partitions []partition.ID) bool {
	for _, p := range partitions {
		if _, found := slices.BinarySearchFunc(t.stored.Partitions, p, compare); !found {
			return false
		}
	}
	return true
}

// Verify says with nil that a producer may write to a partition as part of its open transaction (KIP-890).
func (t *Transaction) Verify(p Producer, id partition.ID) error {
	switch {
	case p.ID != t.stored.ProducerID || t.Unborn():
		return ErrProducerMapping
	case p.Epoch != t.stored.Epoch:
		return ErrFenced
	case t.stored.State == PrepareCommit, t.stored.State == PrepareAbort, t.pending != nil && t.pending.State != Ongoing:
		// What is being decided must not grow: whoever writes the markers may have passed that partition already.
		return ErrConcurrent
	case t.stored.State != Ongoing || !t.has([]partition.ID{id}):
		return ErrNotAdded
	}
	return nil
}

// End decides how the transaction ends. No change and no error when it had ended so before: the answer was lost.
func (t *Transaction) End(now time.Time, p Producer, commit bool) (*Change, error) {
	if err := t.check(p); err != nil {
		return nil, err
	}
	complete, prepare := CompleteAbort, PrepareAbort
	if commit {
		complete, prepare = CompleteCommit, PrepareCommit
	}
	switch t.stored.State {
	case Ongoing:
		if !commit {
			return t.abort(now, false), nil
		}
		c := &Change{Record: t.stored, last: t.last}
		c.State, c.Updated = PrepareCommit, now.UnixMilli()
		return t.begin(c), nil
	case complete:
		return nil, nil
	case prepare:
		return nil, ErrConcurrent
	}
	return nil, fmt.Errorf("%w: %s", ErrState, t.stored.State)
}

// abort decides to abort the open transaction. With fence, its producer is fenced, for it wasn't the one who asked.
func (t *Transaction) abort(now time.Time, fence bool) *Change {
	c := &Change{Record: t.stored, last: t.last, fence: fence}
	c.State, c.Updated = PrepareAbort, now.UnixMilli()
	if fence {
		c.last = noProducer()
		if !t.fencing {
			c.Epoch++ // never given to a client
		}
	}
	return t.begin(c)
}

// Due is when an open transaction times out, zero when none is open.
func (t *Transaction) Due() time.Time {
	if t.stored.State != Ongoing || t.pending != nil && t.pending.State != Ongoing {
		return time.Time{}
	}
	return time.UnixMilli(t.stored.Started).Add(t.stored.Timeout)
}

// TimeOut aborts the transaction if it has been open for longer than it may, and fences its producer.
func (t *Transaction) TimeOut(now time.Time) *Change {
	if due := t.Due(); t.pending != nil || due.IsZero() || due.After(now) {
		return nil
	}
	return t.abort(now, true)
}

// Expire removes the transactional id if nothing happened to it for that long and no transaction is open.
func (t *Transaction) Expire(now time.Time, age time.Duration) *Change {
	if t.pending != nil || !t.ended() || t.Unborn() || now.Sub(time.UnixMilli(t.stored.Updated)) < age {
		return nil
	}
	c := &Change{Record: t.stored, last: t.last}
	c.State, c.Partitions = Dead, nil
	return t.begin(c)
}

// Ending gives what markers are to be written, while they are. They bear the producer of Record.
func (t *Transaction) Ending() (r Record, commit, ok bool) {
	s := t.stored.State
	return t.stored, s == PrepareCommit, s == PrepareCommit || s == PrepareAbort
}

// Complete says that all markers are written. No change when none were to be.
func (t *Transaction) Complete(now time.Time) *Change {
	if t.pending != nil {
		return nil
	}
	c := &Change{Record: t.stored, last: t.last}
	switch t.stored.State {
	case PrepareCommit:
		c.State = CompleteCommit
	case PrepareAbort:
		c.State = CompleteAbort
	default:
		return nil
	}
	c.Partitions, c.Updated = nil, now.UnixMilli()
	return t.begin(c)
}

func (t *Transaction) begin(c *Change) *Change {
	t.pending = c
	return c
}

// Stored tells the outcome of storing the change. After an error the change isn't in force, even though it may be found in
// the log at the next load: no marker was written for it, and whatever is stored next replaces it.
func (t *Transaction) Stored(err error) {
	c := t.pending
	t.pending = nil
	switch {
	case c == nil:
	case err != nil && c.fence:
		// It may have been stored. The old producer must not go on, and the epoch must not be given to anybody.
		t.stored.Epoch, t.last, t.fencing = c.Epoch, c.last, true
	case err == nil:
		t.stored, t.last, t.fencing = c.Record, c.last, false
	}
}
