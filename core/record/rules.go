package record

import (
	"fmt"
	"math"
)

// Origin is who hands a leader something to append.
type Origin int8

const (
	// FromClient is a producer: nothing it says is believed.
	FromClient Origin = iota
	// FromCoordinator is the broker's own group or transaction coordinator,
	// which writes markers and uses no sequence numbers.
	FromCoordinator
)

// Target is what the topic property compression.type asks for.
type Target struct {
	Producer bool  // keep what the producer chose
	Codec    Codec // else this
	Level    int   // as in Codecs.Compress
}

// Rules are what a topic demands of what is appended to it. All times are in
// milliseconds.
type Rules struct {
	Origin        Origin
	Now           int64
	LeaderEpoch   int32
	MaxBatchBytes int // max.message.bytes
	SegmentBytes  int // segment.bytes
	Compacted     bool
	LogAppendTime bool  // message.timestamp.type
	BeforeMaxMs   int64 // message.timestamp.before.max.ms; math.MaxInt64 for no bound
	AfterMaxMs    int64 // message.timestamp.after.max.ms; likewise
	Target        Target

	// Keys, unless nil, is asked whether the keys belong into the partition.
	Keys KeyCheck

	// PayloadLimit bounds what one batch may decompress to, in bytes;
	// DefaultPayloadLimit when 0.
	PayloadLimit int
}

// KeyCheck says which of a producer's records are in the wrong partition.
type KeyCheck interface {
	// Refuse gets the keys of the records of one set, in order, nil for a record
	// without one; they are valid during the call. It is called once, when
	// nothing else is wrong with the records, and returns the indexes of those
	// to refuse, in order, or an error when it cannot tell.
	Refuse(keys [][]byte) ([]int32, error)
}

// DefaultRules are those of a topic without properties of its own in Kafka
// 3.9, for a producer's batch at time now.
func DefaultRules(now int64) Rules {
	return Rules{Now: now, MaxBatchBytes: 1048588, SegmentBytes: 1 << 30,
		BeforeMaxMs: math.MaxInt64, AfterMaxMs: math.MaxInt64, Target: Target{Producer: true}}
}

// codecFor is the codec that records which came with source are stored with.
func (r *Rules) codecFor(source Codec) Codec {
	if r.Target.Producer {
		return source
	}
	return r.Target.Codec
}

func (r *Rules) payloadLimit() int {
	if r.PayloadLimit > 0 {
		return r.PayloadLimit
	}
	return DefaultPayloadLimit
}

// What is told about a single refused record. Constant texts, so that a batch
// of a hundred thousand bad records does not become a hundred thousand
// strings.
const (
	reasonNoKey      = "a record of a compacted topic needs a key"
	reasonTimestamp  = "the timestamp is outside of message.timestamp.before.max.ms and message.timestamp.after.max.ms"
	reasonAppendTime = "a producer cannot set the timestamp type to LogAppendTime"
	reasonInnerMagic = "the message format is not that of the message around it"
	reasonElsewhere  = "the key belongs into another partition by the topic's barnabas.partitioner"
	reasonNested     = "a compressed message inside of a compressed message"
)

// checkRecord adds to errs what the rules have against one record. claimed
// says that the producer set the timestamp type to LogAppendTime.
func (r *Rules) checkRecord(errs *RecordErrors, index int32, hasKey bool, timestamp int64, claimed bool) *RecordErrors {
	switch {
	case r.Compacted && !hasKey:
		return errs.add(index, ErrInvalid, reasonNoKey)
	case !r.LogAppendTime && timestamp != NoTimestamp:
		// Differences wrap around like Kafka's.
		if age := r.Now - timestamp; age > r.BeforeMaxMs || -age > r.AfterMaxMs {
			return errs.add(index, ErrTimestamp, reasonTimestamp)
		}
	case claimed:
		return errs.add(index, ErrTimestamp, reasonAppendTime)
	}
	return errs
}

// checkHeader checks what the header of a single format 2 batch promises.
func (r *Rules) checkHeader(h Header) error {
	if r.Origin != FromClient {
		return nil
	}
	switch {
	case h.LastOffsetDelta < 0 || h.LastOffsetDelta == math.MaxInt32:
		return invalid("last offset delta %d", h.LastOffsetDelta)
	case h.Count <= 0:
		return invalid("record count %d", h.Count)
	case h.LastOffsetDelta+1 != h.Count:
		return invalid("last offset delta %d, but %d records", h.LastOffsetDelta, h.Count)
	case h.Attributes.Control():
		return invalid("a producer cannot write control records")
	case h.ProducerID > NoProducerID && h.BaseSequence < 0:
		return invalid("sequence number %d of producer %d", h.BaseSequence, h.ProducerID)
	}
	return nil
}

func (r *Rules) checkSize(n int) error {
	if n > r.MaxBatchBytes {
		return fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLarge, n, r.MaxBatchBytes)
	}
	return nil
}

// CheckVersion checks what the version of a Produce request allows its record
// sets to be; b is the set for one partition. From version 3 on that is exactly
// one batch of format 2 (ErrInvalid), before version 7 without zstd
// (ErrUnsupportedCodec; KIP-110). Older versions take anything here. A set whose
// first bytes no format has is an ErrCorrupt.
func CheckVersion(version int16, b []byte) error {
	if version < 3 {
		return nil
	}
	first, rest, err := nextAny(b)
	switch {
	case err != nil:
		return err
	case first == nil:
		return invalid("a Produce request of version %d needs a record batch for each partition", version)
	case first[atMagic] != Magic:
		return invalid("a Produce request of version %d takes message format 2, not %d", version, first[atMagic])
	case version < 7 && first.codec() == Zstd:
		return fmt.Errorf("%w: zstd in a Produce request of version %d", ErrUnsupportedCodec, version)
	case version < 7 && !first.codec().Valid():
		return fmt.Errorf("%w: no such codec: %d", ErrUnreadable, first.codec())
	}
	second, _, err := nextAny(rest)
	switch {
	case err != nil:
		return err
	case second != nil:
		return invalid("a Produce request of version %d takes one record batch for each partition", version)
	}
	return nil
}

// Count returns the number of whole batches or messages, of any format, that b
// starts with. ErrCorrupt when it meets bytes that start none.
func Count(b []byte) (int, error) {
	for n := 0; ; n++ {
		first, rest, err := nextAny(b)
		if err != nil || first == nil {
			return n, err
		}
		b = rest
	}
}
