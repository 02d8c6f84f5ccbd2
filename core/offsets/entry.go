package offsets

// None stands for an absent leader epoch, timestamp or producer id.
const None = -1

// Kind tells what an entry is about.
type Kind int8

// The kinds of entries, in Kafka's terms: records with keys of versions 0 and 1, and of version 2.
const (
	KindOffset Kind = 1
	KindGroup  Kind = 2
)

// Key says what an entry belongs to. Topic and Partition are empty for KindGroup.
type Key struct {
	Kind      Kind
	Group     string
	Topic     string
	Partition int32
}

// OffsetKey is the key of a group's committed offset for a partition.
func OffsetKey(group, topic string, partition int32) Key {
	return Key{Kind: KindOffset, Group: group, Topic: topic, Partition: partition}
}

// GroupKey is the key of a group's own record.
func GroupKey(group string) Key { return Key{Kind: KindGroup, Group: group} }

// Entry is one record of a group. The value that its kind does not have is nil; when both are, it is a tombstone: there
// is nothing under that key any more.
type Entry struct {
	Key
	Offset *Offset
	Meta   *Group
}

// Tombstone reports whether the entry removes what was stored under its key.
func (e Entry) Tombstone() bool { return e.Offset == nil && e.Meta == nil }

// Offset is a committed offset. Timestamps are milliseconds since 1970, UTC.
type Offset struct {
	Offset          int64
	LeaderEpoch     int32 // of the last record consumed (KIP-320), or None
	Metadata        string
	CommitTimestamp int64
	ExpireTimestamp int64 // asked for by the client (OffsetCommit v2-4), or None
}

// Group is a group's own record: the outcome of its last completed rebalance.
type Group struct {
	ProtocolType   string // "consumer", "connect", …; "" for none
	Generation     int32
	Protocol       *string // the chosen protocol; nil for none
	Leader         *string // the leading member's id; nil for none
	StateTimestamp int64   // since when the group is in its state, or None
	Members        []Member
}

// Member is one member of a group. Timeouts are milliseconds.
type Member struct {
	ID               string
	InstanceID       *string // of a static member (KIP-345), else nil
	ClientID         string
	ClientHost       string // as Kafka writes it: "/10.1.2.3"
	RebalanceTimeout int32  // equals SessionTimeout in records that don't have it
	SessionTimeout   int32
	Subscription     []byte // the member's metadata for the chosen protocol
	Assignment       []byte
}

// Producer names a transaction that commits offsets.
type Producer struct {
	ID    int64
	Epoch int16
}

// End says how a transaction ended.
type End int8

// The ends of a transaction.
const (
	NotEnded End = iota
	Committed
	Aborted
)

// Batch is what is written together.
type Batch struct {
	// Timestamp is when, in milliseconds.
	Timestamp int64
	// Entries are stored in order. Empty when Ended is set.
	Entries []Entry
	// Producer marks entries that count only when that producer's transaction commits; nil for ordinary ones.
	Producer *Producer
	// Ended ends the transaction of Producer, whose pending entries then count, or are forgotten.
	Ended End
	// CoordinatorEpoch is the epoch of the transaction's coordinator, when Ended is set.
	CoordinatorEpoch int32
}

// Event is one thing that Load found: an entry, or the end of a transaction.
type Event struct {
	Entry Entry
	// Producer is None, or the id of the producer whose transaction the entry is part of, or whose transaction ended.
	Producer int64
	// Ended is set for the end of a transaction; Entry is empty then.
	Ended End
}
