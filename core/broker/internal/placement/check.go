package placement

import (
	"context"
	"fmt"

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
	var indexes []int32
	var records []partitioner.Record
	for i, key := range keys {
		if c.missing == nil && partitioner.HasKey(c.partitioner, key) || c.missing != nil && key != nil {
			indexes = append(indexes, int32(i))
			records = append(records, partitioner.Record{Key: key})
		}
	}
	if len(records) == 0 {
		return nil, nil
	}
	places, err := c.places(records)
	if err != nil {
		if c.reject {
			return nil, err
		}
		c.unchecked = len(records)
		return nil, nil //nolint:nilerr // whoever only counts loses no records for it
	}
	wrong := indexes[:0]
	for i, place := range places {
		if place != c.partition {
			wrong = append(wrong, indexes[i])
		}
	}
	if !c.reject {
		c.elsewhere = len(wrong)
		return nil, nil
	}
	if len(wrong) > 0 {
		c.checks.count(c.source(), 0, len(wrong), 0)
	}
	return wrong, nil
}

// places gives the partition of each record, one for each, and in range.
func (c *check) places(records []partitioner.Record) ([]int32, error) {
	if c.missing != nil {
		return nil, c.missing
	}
	n := c.checks.o.Partitions(c.name)
	if n < 1 {
		return nil, fmt.Errorf("%w: the number of partitions of topic %s isn't known yet", partitioner.ErrUnavailable, c.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.checks.o.AnswerWithin)
	defer cancel()
	places, err := c.partitioner.Partition(ctx, make([]int32, 0, len(records)), &partitioner.Batch{Topic: c.name, Partitions: n, Records: records})
	if err != nil {
		return nil, err
	}
	if len(places) != len(records) {
		return nil, fmt.Errorf("%w: %d answers for %d records of topic %s", partitioner.ErrInvalid, len(places), len(records), c.name)
	}
	for _, place := range places {
		if place < 0 || place >= n {
			return nil, fmt.Errorf("%w: partition %d of %d of topic %s", partitioner.ErrInvalid, place, n, c.name)
		}
	}
	return places, nil
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
