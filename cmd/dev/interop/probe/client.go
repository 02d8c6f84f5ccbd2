package probe

import (
	"context"
	"time"
)

// Where Consume begins, beside real offsets.
const (
	FromStart int64 = -2
	FromEnd   int64 = -1
)

// NoOffset is OffsetAt's answer when no record is that late.
const NoOffset int64 = -1

// Client is one Kafka library, made to do what the checks need. Every call opens what it needs and closes it again.
// Topics are read and written at partition 0 unless a method says otherwise.
type Client interface {
	// Version is the library's own version.
	Version() string
	// CreateTopic creates the topic; that it is there already is an error.
	CreateTopic(ctx context.Context, topic string, partitions int) error
	// Partitions is how many partitions metadata shows.
	Partitions(ctx context.Context, topic string) (int, error)
	// DeleteTopic deletes the topic.
	DeleteTopic(ctx context.Context, topic string) error
	// Produce writes the records in order, compressed with the codec ("none", "gzip", …), and returns the offset
	// that the broker gave to the first.
	Produce(ctx context.Context, topic, codec string, records []Record) (int64, error)
	// Consume reads n records from an offset, FromStart or FromEnd.
	Consume(ctx context.Context, topic string, from int64, n int) ([]Record, error)
	// OffsetAt is the offset of the first record with that timestamp or a later one, or NoOffset.
	OffsetAt(ctx context.Context, topic string, at time.Time) (int64, error)
	// GroupRead joins the group, reads n records, commits them and leaves. A group without a commit starts at 0.
	GroupRead(ctx context.Context, group, topic string, n int) ([]Record, error)
	// Member is RoleMember: it joins, tells events and commits after each batch until ctx ends; then it leaves.
	Member(ctx context.Context, group, topic string, tell func(Event)) error
}

// Quirks is what a client cannot do, by its nature; the checks that need it are not made.
type Quirks struct {
	// NoAdmin: topics cannot be created or deleted, other than by the broker's auto-creation on first use.
	NoAdmin bool
	// NoTimestamps: the library stamps records itself.
	NoTimestamps bool
}
