package placement

import (
	"context"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// topic checks one topic.
type topic struct {
	checks      *Checks
	name        string
	partitioner partitioner.Partitioner
	missing     error // there is no such partitioner
	reject      bool
}

var _ log.KeyChecks = (*topic)(nil)

// Check implements log.KeyChecks.
func (t *topic) Check(partition int32, client log.Client) log.KeyCheck {
	return &check{topic: t, partition: partition, client: client}
}

// check is the check of one append.
type check struct {
	*topic
	partition int32
	client    log.Client
	elsewhere int // records to be counted when they are appended
	unchecked int
}

// Refuse asks the partitioner, once for all records that have a key.
func (c *check) Refuse(keys [][]byte) ([]int32, error) {
	s, ok := c.checks.scratch.Get().(*scratch)
	if !ok {
		s = &scratch{}
	}
	defer c.checks.release(s)
	for i, key := range keys {
		if c.missing == nil && partitioner.HasKey(c.partitioner, key) || c.missing != nil && key != nil {
			s.indexes = append(s.indexes, int32(i))
			s.batch.Records = append(s.batch.Records, partitioner.Record{Key: key})
		}
	}
	if len(s.indexes) == 0 {
		return nil, nil
	}
	if err := c.place(s); err != nil {
		if c.reject {
			return nil, err
		}
		c.unchecked = len(s.indexes)
		return nil, nil //nolint:nilerr // whoever only counts loses no records for it
	}
	wrong := s.indexes[:0]
	for i, place := range s.places {
		if place != c.partition {
			wrong = append(wrong, s.indexes[i])
		}
	}
	if !c.reject {
		c.elsewhere = len(wrong)
		return nil, nil
	}
	if len(wrong) > 0 {
		c.checks.count(c.source(), 0, len(wrong), 0)
	}
	return slices.Clone(wrong), nil
}

// scratch is the memory of one call of Refuse.
type scratch struct {
	indexes []int32 // of the records with a key
	places  []int32 // where each of these belongs
	batch   partitioner.Batch
}

// maxPooled is how many records a scratch that is kept may have room for.
const maxPooled = 1 << 16

// release keeps the memory for the next call, unless it has grown.
func (c *Checks) release(s *scratch) {
	if cap(s.batch.Records) > maxPooled {
		return
	}
	clear(s.batch.Records) // they point into what is the caller's again
	s.indexes, s.places, s.batch = s.indexes[:0], s.places[:0], partitioner.Batch{Records: s.batch.Records[:0]}
	c.scratch.Put(s)
}

// place asks for the partition of each record: one for each, and in range.
func (c *check) place(s *scratch) (err error) {
	if c.missing != nil {
		return c.missing
	}
	n := c.checks.o.Partitions(c.name)
	if n < 1 {
		return fmt.Errorf("%w: the number of partitions of topic %s isn't known yet", partitioner.ErrUnavailable, c.name)
	}
	s.batch.Topic, s.batch.Partitions = c.name, n
	ctx, cancel := context.WithTimeout(context.Background(), c.checks.o.AnswerWithin)
	defer cancel()
	if s.places, err = c.partitioner.Partition(ctx, s.places[:0], &s.batch); err != nil {
		return err
	}
	if len(s.places) != len(s.indexes) {
		return fmt.Errorf("%w: %d answers for %d records of topic %s", partitioner.ErrInvalid, len(s.places), len(s.indexes), c.name)
	}
	for _, place := range s.places {
		if place < 0 || place >= n {
			return fmt.Errorf("%w: partition %d of %d of topic %s", partitioner.ErrInvalid, place, n, c.name)
		}
	}
	return nil
}

// Appended counts what was let through.
func (c *check) Appended() {
	if c.elsewhere+c.unchecked > 0 {
		c.checks.count(c.source(), c.elsewhere, 0, c.unchecked)
	}
}

func (c *check) source() Source {
	s := Source{Topic: c.name, Software: c.client.Name, Version: c.client.Version}
	if s.Software == "" {
		s.Software = "unknown"
	}
	return s
}
