package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind names what was promised and doesn't hold.
type Kind string

// The kinds of faults. About says what each is.
const (
	Lost        Kind = "lost"
	Duplicate   Kind = "duplicate"
	Reordered   Kind = "reordered"
	Hole        Kind = "hole"
	Misplaced   Kind = "misplaced"
	Changed     Kind = "changed"
	Vanished    Kind = "vanished"
	Uncommitted Kind = "uncommitted"
	Aborted     Kind = "aborted"
	Dirty       Kind = "dirty"
	Torn        Kind = "torn"
	Gap         Kind = "gap"
	Backwards   Kind = "backwards"
	Stale       Kind = "stale"
	Corrupt     Kind = "corrupt"
	Foreign     Kind = "foreign"
)

// Kinds are all kinds, in the order in which reports show them.
func Kinds() []Kind {
	return []Kind{Lost, Duplicate, Reordered, Hole, Misplaced, Changed, Vanished, Uncommitted, Aborted, Dirty, Torn, Gap, Backwards, Stale, Corrupt, Foreign}
}

// About says in half a sentence what is wrong.
func (k Kind) About() string {
	switch k {
	case Lost:
		return "an acknowledged record, or one of a committed transaction, isn't there"
	case Duplicate:
		return "a record is there twice"
	case Reordered:
		return "a producer's later record stands before an earlier one"
	case Hole:
		return "a producer's later record is there, and an earlier one isn't"
	case Misplaced:
		return "a record stands at another offset than was acknowledged"
	case Changed:
		return "an offset had two values"
	case Vanished:
		return "a record that was read is gone: it was shown before it was committed"
	case Uncommitted:
		return "a record was shown that lies above an end told later"
	case Aborted:
		return "a record of an aborted transaction was shown as committed"
	case Dirty:
		return "a record was shown as committed before the commit was asked for"
	case Torn:
		return "a transaction is there in part"
	case Gap:
		return "an offset was passed over that has something for the reader"
	case Backwards:
		return "a reader was shown an offset again, or one before"
	case Stale:
		return "an end was told below what was acknowledged, or told, before"
	case Corrupt:
		return "there are bytes that nobody sent"
	case Foreign:
		return "there is a record of others in a topic that nobody else writes to"
	default:
		return "unknown"
	}
}

// Fault is one promise broken at one place. Several readers that saw the same one are in Views.
type Fault struct {
	Kind      Kind     `json:"kind"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`   // -1 when it isn't about an offset
	Producer  int32    `json:"producer"` // -1 when it isn't about a record
	Sequence  int32    `json:"sequence"` // -1 when it isn't about a record
	Detail    string   `json:"detail"`
	Views     []string `json:"views,omitempty"`
}

func (f Fault) String() string {
	s := fmt.Sprintf("%s: partition %d: %s", f.Kind, f.Partition, f.Detail)
	if len(f.Views) > 0 {
		s += " (" + strings.Join(f.Views, ", ") + ")"
	}
	return s
}

// Result is the judgement.
type Result struct {
	// Counts has how often each kind was found, without kinds that weren't.
	Counts map[Kind]int
	// Faults has at most PerKind of each kind, the first ones by partition and offset.
	Faults []Fault
}

// PerKind is how many faults of a kind a Result describes; all are counted.
const PerKind = 50

// OK says that nothing was found, but for kinds that are tolerated.
func (r *Result) OK(tolerated ...Kind) bool {
	for kind := range r.Counts {
		if !slices.Contains(tolerated, kind) {
			return false
		}
	}
	return true
}

// key is what makes two findings the same fault.
type key struct {
	kind               Kind
	partition          int32
	offset             int64
	producer, sequence int32
}

// findings collects faults.
type findings struct {
	at  map[key]int
	all []Fault
}

// add takes a fault; one that is known already only gets another view. "" is no view. The detail is made only when it is
// needed: a cluster that has lost its memory may have millions.
func (f *findings) add(k key, view string, detail func() string) {
	i, known := f.at[k]
	if !known {
		i = len(f.all)
		if f.at == nil {
			f.at = map[key]int{}
		}
		f.at[k] = i
		f.all = append(f.all, Fault{Kind: k.kind, Partition: k.partition, Offset: k.offset, Producer: k.producer, Sequence: k.sequence, Detail: detail()})
	}
	if fault := &f.all[i]; view != "" && !slices.Contains(fault.Views, view) {
		fault.Views = append(fault.Views, view)
	}
}

func (f *findings) result() *Result {
	r := &Result{Counts: map[Kind]int{}}
	order := Kinds()
	slices.SortStableFunc(f.all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Producer, b.Producer), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, fault := range f.all {
		if r.Counts[fault.Kind]++; r.Counts[fault.Kind] <= PerKind {
			r.Faults = append(r.Faults, fault)
		}
	}
	return r
}
