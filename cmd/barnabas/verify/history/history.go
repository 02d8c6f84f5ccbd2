// Package history is what clients were told by a cluster, and the judgement over it.
//
// A History says which records were sent and what the cluster answered, what readers saw and when, and which ends of
// partitions it told. Check holds it against what Apache Kafka promises to producers with acks=all and idempotence, to
// transactions, and to readers. It is a pure function: no I/O, no clock, the same answer every time.
//
// How a history comes about is not its business: package verify makes one from a running cluster, tests make theirs up.
package history

import "time"

// History is a whole run against one topic. All times are since the start of the run, by one clock.
type History struct {
	Partitions   []Partition
	Transactions []Transaction
	// Shared says that others may write to the topic, too: their records are no fault then.
	Shared bool
}

// Partition is what happened to one partition.
type Partition struct {
	Number int32
	// Start is the partition's end when the run began; what lies below is not looked at.
	Start int64
	// Writes are the records that were sent: by producer, each producer's in the order in which it sent them. So a record's name
	// is its producer and its sequence, counted from 0 in each partition. Every session of a producer that had to begin anew
	// is a producer of its own.
	Writes [][]Write
	Views  []View
	Ends   []End
	Losses []Loss
}

// Write is a record that was sent.
type Write struct {
	Sent         time.Duration
	Told         time.Duration // when the answer came; only if Acknowledged
	Acknowledged bool          // otherwise nothing is known: it may be in the log or not
	Offset       int64         // as the answer says; only if Acknowledged
	Transaction  int32         // index into History.Transactions, -1 when it is in none
}

// Outcome is how a transaction ended.
type Outcome uint8

// The outcomes.
const (
	Unknown      Outcome = iota // nobody asked for its end, or the answer never came
	WasCommitted                // the cluster acknowledged the commit
	WasAborted                  // the cluster acknowledged the abort
)

func (o Outcome) String() string {
	return [...]string{"of unknown outcome", "committed", "aborted"}[o]
}

// Transaction is one transaction.
type Transaction struct {
	Producer int32
	// Ending is when its end was asked for, zero when it never was. Before, nobody may see its records as committed.
	Ending time.Duration
	// Abort says that the end that was asked for was an abort.
	Abort   bool
	Outcome Outcome
}

// View is what one reader saw of a partition.
type View struct {
	Name string // for people: "live reader", "replica 3"
	// Committed says that it read what is committed alone (read_committed): records of open and aborted transactions, and
	// markers, aren't shown then. Otherwise everything is, markers too, and no offset may be missing.
	Committed bool
	// Final says that it began when nobody wrote any more, and went on until what must be there was there or patience ended.
	Final bool
	// Begin is when it began. A final reader goes on until it has come to what was known then to be the partition's end.
	Begin time.Duration
	// From and To bound what the cluster says it has shown: offsets in [From, To). To a final reader To is the partition's end.
	From, To int64
	Seen     []Seen // in the order in which they were shown
}

// What is what stands at an offset.
type What uint8

// The contents of an offset.
const (
	Record  What = iota // a record of this run
	Marker              // a control record
	Others              // a record that doesn't claim to be of this run
	Garbled             // claims to be of this run, but isn't what any producer sends
)

// Seen is one thing that a reader was shown.
type Seen struct {
	Offset   int64
	At       time.Duration
	Sum      uint32 // of the bytes, to tell contents from one another; only for what is no Record
	Producer int32  // only for a Record
	Sequence int32  // only for a Record
	What     What
	// Early says that it was shown together with a high watermark (or last stable offset, for who reads what is committed) at
	// or below its offset.
	Early bool
}

// content is what Seen says about the offset, without where and when it was seen.
type content struct {
	what               What
	producer, sequence int32
	sum                uint32
}

func (s *Seen) content() content {
	if s.What == Record {
		return content{what: Record, producer: s.Producer, sequence: s.Sequence}
	}
	return content{what: s.What, sum: s.Sum}
}

// End is an answer to the question where a partition ends for readers.
type End struct {
	Asked, Told time.Duration
	Offset      int64
}

// Loss is that a client was told, by leader epochs, that what it had read is gone.
type Loss struct {
	Name     string // of the view
	At       time.Duration
	ReadTo   int64 // it had read up to here
	ResetTo  int64 // and goes on from here
	LastSeen int32 // leader epoch of what it had read
}
