package probe

import (
	"context"
	"errors"
	"slices"
	"time"
)

// fake is a client and its broker in one: topics are slices. A fault named in breaks makes it lie in that one way.
type fake struct {
	topics    map[string][]Record
	sizes     map[string]int
	committed map[string]int
	breaks    string
}

func newFake(breaks string) *fake {
	return &fake{topics: map[string][]Record{}, sizes: map[string]int{}, committed: map[string]int{}, breaks: breaks}
}

func (f *fake) is(fault string) bool { return f.breaks == fault }

func (*fake) Version() string { return "1" }

func (f *fake) CreateTopic(_ context.Context, topic string, partitions int) error {
	if f.is("nothing can be created") {
		return errors.New("not authorized")
	}
	if _, there := f.sizes[topic]; there && !f.is("topics can be created twice") {
		return errors.New("topic exists")
	}
	f.sizes[topic] = partitions
	return nil
}

func (f *fake) Partitions(_ context.Context, topic string) (int, error) {
	if f.is("one partition too few") {
		return f.sizes[topic] - 1, nil
	}
	return f.sizes[topic], nil
}

func (f *fake) DeleteTopic(_ context.Context, topic string) error {
	if _, there := f.sizes[topic]; !there && !f.is("topics can be deleted twice") {
		return errors.New("unknown topic")
	}
	delete(f.sizes, topic)
	return nil
}

func (f *fake) Produce(_ context.Context, topic, codec string, records []Record) (int64, error) {
	if f.is("gzip is refused") && codec == "gzip" {
		return 0, errors.New("unsupported compression type")
	}
	first := len(f.topics[topic])
	for i, r := range records {
		r.Offset = int64(first + i)
		f.topics[topic] = append(f.topics[topic], r)
	}
	if f.is("offsets are answered wrong") {
		first++
	}
	return int64(first), nil
}

func (f *fake) Consume(ctx context.Context, topic string, from int64, n int) ([]Record, error) {
	switch from {
	case FromStart:
		from = 0
	case FromEnd:
		from = int64(len(f.topics[topic]))
		if f.is("the end is one too early") {
			from--
		}
		f.topics[topic] = append(f.topics[topic], Record{Offset: int64(len(f.topics[topic])), Value: []byte("marker")})
	}
	records := slices.Clone(f.topics[topic][from:])
	if len(records) < n {
		return nil, errors.New("too few records")
	}
	records = records[:n]
	last := &records[n-1]
	switch f.breaks {
	case "a byte is flipped":
		last.Value = slices.Clone(last.Value)
		last.Value[len(last.Value)-1] ^= 1
	case "a value is cut":
		last.Value = last.Value[:len(last.Value)-1]
	case "keys are lost":
		last.Key = nil
	case "headers are wrong":
		last.Sum = "0000"
	case "timestamps are lost":
		last.Time = time.UnixMilli(0)
	case "an offset is skipped":
		last.Offset++
	}
	return records, ctx.Err()
}

func (f *fake) OffsetAt(_ context.Context, topic string, at time.Time) (int64, error) {
	for i, r := range f.topics[topic] {
		if !r.Time.Before(at) && (!f.is("timestamps find the record after") || r.Time.After(at)) {
			return int64(i), nil
		}
	}
	if f.is("late timestamps find the end") {
		return int64(len(f.topics[topic])), nil
	}
	return NoOffset, nil
}

func (f *fake) GroupRead(_ context.Context, group, topic string, n int) ([]Record, error) {
	from := f.committed[group]
	if f.is("commits are forgotten") {
		from = 0
	}
	f.committed[group] = from + n
	if f.is("commits are one too far") {
		f.committed[group]++
	}
	return f.topics[topic][from:min(from+n, len(f.topics[topic]))], nil
}

func (f *fake) Member(ctx context.Context, _, _ string, tell func(Event)) error {
	tell(Event{Event: EventAssigned, Partitions: []int32{0}})
	<-ctx.Done()
	return nil
}
