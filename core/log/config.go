package log

import (
	"math"

	"github.com/barnabas-mq/barnabas/core/record"
)

// MaxSegmentBytes is the most bytes a segment may have: positions in an index are 32 bits wide.
const MaxSegmentBytes = math.MaxInt32

// Config is the part of a topic's configuration that its logs act on, under Kafka's names and with Kafka's meanings
// (segment.bytes is SegmentBytes). It is a value: Configure replaces it whole. Times are in milliseconds, sizes in bytes.
type Config struct {
	// SegmentBytes, SegmentMs and SegmentJitterMs say when the active segment is rolled.
	SegmentBytes    int64
	SegmentMs       int64
	SegmentJitterMs int64
	// IndexIntervalBytes is about how many bytes lie between two index entries; IndexSizeMaxBytes rolls a segment whose
	// index has grown to it.
	IndexIntervalBytes int32
	IndexSizeMaxBytes  int32
	// RetentionMs and RetentionBytes say what is deleted when Delete is set; -1 means no limit.
	RetentionMs    int64
	RetentionBytes int64
	// Compact and Delete are the two halves of cleanup.policy.
	Compact bool
	Delete  bool
	// What the compaction of a log goes by.
	DeleteRetentionMs      int64
	MinCleanableDirtyRatio float64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	// FileDeleteDelayMs is how long a file that left the log is kept as `.deleted` for readers that still use it.
	FileDeleteDelayMs int64
	// FlushMessages asks for an fsync after so many records, FlushMs after so long; math.MaxInt64 means never.
	FlushMessages int64
	FlushMs       int64
	// MaxMessageBytes bounds one batch, as it is stored.
	MaxMessageBytes int
	// Compression is what batches are stored with.
	Compression Compression
	// LogAppendTime stamps records with the time of their append instead of keeping the producer's.
	LogAppendTime bool
	// How far a producer's timestamp may lie before and after the broker's clock; math.MaxInt64 means any.
	TimestampBeforeMaxMs int64
	TimestampAfterMaxMs  int64
	// Keys checks where clients put records; nil when the topic asks for no check. It has no part in what is on disk.
	Keys KeyChecks
	// Preallocate allocates a new segment's bytes on disk at once.
	Preallocate bool
}

// Compression is the topic's compression.type.
type Compression struct {
	// Producer keeps what the producer chose; Codec and Level have no meaning then.
	Producer bool
	Codec    record.Codec
	// Level is the codec's own level, from the topic's gzip, lz4 or zstd level key. It has no meaning for the other codecs.
	Level int
}

// KeyChecks checks, for one topic, whether records are where their keys belong.
type KeyChecks interface {
	// Check is for one append of a client to a partition.
	Check(partition int32, client Client) KeyCheck
}

// KeyCheck is the check of one append.
type KeyCheck interface {
	record.KeyCheck
	// Appended is called when the records were appended, and not for the second time.
	Appended()
}

// Client is the software of a client, as it names itself (KIP-511); empty when it does not.
type Client struct{ Name, Version string }

// DefaultConfig gives the defaults of Kafka 3.9.
func DefaultConfig() Config {
	return Config{
		SegmentBytes:           1 << 30,
		SegmentMs:              7 * 24 * 3600 * 1000,
		IndexIntervalBytes:     4096,
		IndexSizeMaxBytes:      10 << 20,
		RetentionMs:            7 * 24 * 3600 * 1000,
		RetentionBytes:         -1,
		Delete:                 true,
		DeleteRetentionMs:      24 * 3600 * 1000,
		MinCleanableDirtyRatio: 0.5,
		MaxCompactionLagMs:     math.MaxInt64,
		FileDeleteDelayMs:      60_000,
		FlushMessages:          math.MaxInt64,
		FlushMs:                math.MaxInt64,
		MaxMessageBytes:        1<<20 + record.LogOverhead,
		Compression:            Compression{Producer: true},
		TimestampBeforeMaxMs:   math.MaxInt64,
		TimestampAfterMaxMs:    math.MaxInt64,
	}
}

// segmentBytes is SegmentBytes within what the index format can address.
func (c *Config) segmentBytes() int64 { return min(max(c.SegmentBytes, 1), MaxSegmentBytes) }

// segmentMs is SegmentMs, or less where compaction must not wait that long: the active segment isn't cleaned.
func (c *Config) segmentMs() int64 {
	if c.Compact && c.MaxCompactionLagMs > 0 {
		return min(c.SegmentMs, c.MaxCompactionLagMs)
	}
	return c.SegmentMs
}

// offsetEntries and timeEntries are how many entries an index takes before its segment is rolled. A slot of the time index
// is kept for the entry that closes the segment.
func (c *Config) offsetEntries() int { return max(1, int(c.IndexSizeMaxBytes)/offsetWidth) }
func (c *Config) timeEntries() int   { return max(1, int(c.IndexSizeMaxBytes)/timeWidth-1) }
