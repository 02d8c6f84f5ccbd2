package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Kind is a way to say where a group is to go on reading.
type Kind int

// The kinds of targets.
const (
	ToStart  Kind = iota // the log's start
	ToEnd                // the high watermark
	ToOffset             // an offset
	ToTime               // the first record that isn't older than a time; the end when all are
	ShiftBy              // so many records on from the committed offset, or back
)

// Target says where a group is to go on reading, in each of its partitions.
type Target struct {
	Kind  Kind
	Count int64     // of ToOffset and ShiftBy
	Time  time.Time // of ToTime, to the millisecond
}

// Bound is what a reset of a partition goes by.
type Bound struct {
	Topic      string
	Partition  int32
	Committed  int64 // Unknown when nobody committed
	Start, End int64 // the log's start and high watermark
	AtTime     int64 // the target's time as an offset, of ToTime
}

// Move is where a group goes on reading in a partition.
type Move struct {
	Bound
	To       int64 // between Start and End
	Adjusted bool  // the target was outside
}

// Plan works out where to go on. As with Kafka's own tool, an offset outside of the log is moved to its nearer end, and
// partitions without a commit can't be shifted; one such partition and there is no plan at all.
func (t Target) Plan(bounds []Bound) ([]Move, error) {
	moves := make([]Move, len(bounds))
	var errs []error
	for i, b := range bounds {
		var to int64
		switch t.Kind {
		case ToStart:
			to = b.Start
		case ToEnd:
			to = b.End
		case ToOffset:
			to = t.Count
		case ToTime:
			to = b.AtTime
		case ShiftBy:
			if b.Committed < 0 {
				errs = append(errs, fmt.Errorf("%s-%d has no committed offset to shift: name another target, or other partitions", b.Topic, b.Partition))
				continue
			}
			to = shifted(b.Committed, t.Count)
		}
		moves[i] = Move{Bound: b, To: min(max(to, b.Start), b.End)}
		moves[i].Adjusted = moves[i].To != to
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return moves, nil
}

// shifted adds without overflow; offset isn't negative.
func shifted(offset, by int64) int64 {
	if sum := offset + by; by < 0 || sum >= offset {
		return sum
	}
	return 1<<63 - 1
}

// Select gives the partitions to reset, with what is committed there: those that were asked for (no numbers are all partitions
// of the topic) or, when none were, all with a commit; of the latter, those that don't exist any more are told apart. topics has
// all topics that come into question.
func Select(topics kadm.TopicDetails, committed []Offset, asked map[string][]int32) (of, gone []Offset, err error) {
	before := map[partition]int64{}
	for _, o := range committed {
		if o.Err != nil {
			return nil, nil, fmt.Errorf("what is committed in %s-%d isn't known: %w", o.Topic, o.Partition, o.Err)
		}
		before[partition{o.Topic, o.Partition}] = o.Committed
	}
	for _, topic := range topics.Sorted() {
		deleted := len(asked) == 0 && errors.Is(topic.Err, kerr.UnknownTopicOrPartition)
		if topic.Err != nil && !deleted {
			return nil, nil, fmt.Errorf("topic %s: %w", topic.Topic, topic.Err)
		}
	}
	if len(asked) == 0 {
		for _, o := range committed {
			if _, ok := topics[o.Topic].Partitions[o.Partition]; ok {
				of = append(of, o)
			} else {
				gone = append(gone, o)
			}
		}
		return of, gone, nil
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		topic, ok := topics[name]
		if !ok {
			return nil, nil, fmt.Errorf("topic %s: %w", name, kerr.UnknownTopicOrPartition)
		}
		there, numbers := topic.Partitions, asked[name]
		if len(numbers) == 0 {
			numbers = there.Numbers()
		}
		for _, n := range numbers {
			if _, ok := there[n]; !ok {
				return nil, nil, fmt.Errorf("topic %s has no partition %d, only %d partitions", name, n, len(there))
			}
			o := Offset{Topic: name, Partition: n, Committed: Unknown, End: Unknown}
			if at, ok := before[partition{name, n}]; ok {
				o.Committed = at
			}
			of = append(of, o)
		}
	}
	return of, nil, nil
}

// Bounds asks for what Plan needs to know of partitions of which Topic, Partition and Committed are set. It fails when one of
// them can't be asked.
func (t Target) Bounds(ctx context.Context, admin *kadm.Client, of []Offset) ([]Bound, error) {
	seen := map[string]bool{}
	var topics []string
	for _, o := range of {
		if !seen[o.Topic] {
			seen[o.Topic] = true
			topics = append(topics, o.Topic)
		}
	}
	if len(topics) == 0 { // kadm would list all
		return nil, nil
	}
	var starts, ends, times listing
	var err error
	if t.Kind == ToTime { // first, so that it isn't behind the end
		after := func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, t.Time.UnixMilli(), topics...)
		}
		if times, err = listed(ctx, after, topics); err != nil {
			return nil, fmt.Errorf("list offsets by time: %w", err)
		}
	}
	if ends, err = listed(ctx, admin.ListEndOffsets, topics); err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	if starts, err = listed(ctx, admin.ListStartOffsets, topics); err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	bounds := make([]Bound, len(of))
	for i, o := range of {
		b := Bound{Topic: o.Topic, Partition: o.Partition, Committed: o.Committed, AtTime: Unknown}
		var faults [3]error
		b.Start, faults[0] = starts.of(o.Topic, o.Partition)
		b.End, faults[1] = ends.of(o.Topic, o.Partition)
		if t.Kind == ToTime {
			b.AtTime, faults[2] = times.of(o.Topic, o.Partition)
		}
		for _, fault := range faults {
			if fault != nil {
				return nil, fmt.Errorf("list the offsets of %s-%d: %w", o.Topic, o.Partition, fault)
			}
		}
		b.Start = min(b.Start, b.End) // it may have moved since the end was asked for
		bounds[i] = b
	}
	return bounds, nil
}
