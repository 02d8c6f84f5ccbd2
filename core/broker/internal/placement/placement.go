// Package placement checks, for topics that ask for it, whether producers put records where the topic's partitioner does. Kafka's
// clients choose the partition themselves, and those of different languages disagree on hashing more often than their owners
// know: keys then don't meet, and nobody is told.
//
// A topic declares its partitioner with barnabas.partitioner, and with barnabas.partitioner.check what is to happen. Records
// without a key belong anywhere. How many partitions there are is what this broker knows: for a while after partitions were
// added, producers with older metadata put records elsewhere.
//
// The log asks, between validating records and appending them (log.KeyChecks). Choosing partitions isn't this package's business.
package placement

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// The values of barnabas.partitioner.check that have anything checked.
const (
	Count  = "count"
	Reject = "reject"
)

const (
	// maxCounts bounds what clients with names without end can have counted apart. Beyond it all others are one.
	maxCounts = 1000
	// others are the clients beyond that bound.
	others = "other"
)

// Options are what Checks are made of.
type Options struct {
	Partitioners *partitioner.Set
	// Partitions says how many partitions a topic has, 0 when it isn't known. It must be quick.
	Partitions func(topic string) int32
	// AnswerWithin is how long a partitioner may take for a batch, for the partition's leader can't resign meanwhile; two seconds
	// when 0.
	AnswerWithin time.Duration
	// Interval is how often, at most, the log is told of records elsewhere; a minute when 0.
	Interval time.Duration
	Logger   *slog.Logger
}

// Checks are the checks of all topics of a broker. Its methods may be called from any goroutine.
type Checks struct {
	o       Options
	scratch sync.Pool // of *scratch

	mu      sync.Mutex
	counts  map[Source]*tally
	timer   *time.Timer // set while there is something to tell
	stopped bool
}

// Source is who put records elsewhere, and where.
type Source struct {
	Topic string
	// Software and Version are the client's, as it names itself (KIP-511).
	Software, Version string
}

// Counted is how many records of a source were elsewhere since the broker began.
type Counted struct {
	Source
	Appended int64 // counted and kept
	Refused  int64
	// Unchecked counts records with a key of which the partitioner didn't say where they belong, and which were kept.
	Unchecked int64
}

type tally struct {
	Counted
	told Counted // what of it the log was told
}

// New makes checks. Nothing runs until there is something to tell.
func New(o Options) *Checks {
	if o.Interval <= 0 {
		o.Interval = time.Minute
	}
	if o.AnswerWithin <= 0 {
		o.AnswerWithin = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Checks{o: o, counts: map[Source]*tally{}}
}

// Topic gives the checks of a topic that declares a partitioner, nil when none are asked for.
func (c *Checks) Topic(name, partitionerName, check string) log.KeyChecks {
	if partitionerName == "" || check != Count && check != Reject {
		return nil
	}
	p, err := c.o.Partitioners.Get(partitionerName)
	if err != nil {
		// It was there when the topic was configured. Whoever asked for rejection wants no record that wasn't checked.
		err = fmt.Errorf("%w: topic %s: %w", partitioner.ErrUnavailable, name, err)
		c.o.Logger.Warn("a topic declares a partitioner that this broker doesn't have", "topic", name, "partitioner", partitionerName, "check", check)
	}
	return &topic{checks: c, name: name, partitioner: p, missing: err, reject: check == Reject}
}

// Counts lists what was counted, by topic and software.
func (c *Checks) Counts() []Counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Counted, 0, len(c.counts))
	for _, t := range c.counts {
		list = append(list, t.Counted)
	}
	slices.SortFunc(list, func(a, b Counted) int {
		return slices.Compare([]string{a.Topic, a.Software, a.Version}, []string{b.Topic, b.Software, b.Version})
	})
	return list
}

// Stop tells the log what it wasn't told yet.
func (c *Checks) Stop(context.Context) error {
	c.mu.Lock()
	c.stopped = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.tell()
	return nil
}

// count adds to what a source did.
func (c *Checks) count(s Source, appended, refused, unchecked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.counts[s]
	if t == nil {
		if len(c.counts) >= maxCounts {
			s = Source{Topic: others, Software: others}
		}
		if t = c.counts[s]; t == nil {
			t = &tally{Counted: Counted{Source: s}, told: Counted{Source: s}}
			c.counts[s] = t
		}
	}
	t.Appended += int64(appended)
	t.Refused += int64(refused)
	t.Unchecked += int64(unchecked)
	if c.timer == nil && !c.stopped {
		c.timer = time.AfterFunc(c.o.Interval, c.tell)
	}
}

// tell logs what was counted since the last time, one line for each source.
func (c *Checks) tell() {
	c.mu.Lock()
	c.timer = nil
	var lines []Counted
	for _, key := range slices.SortedFunc(maps.Keys(c.counts), func(a, b Source) int {
		return slices.Compare([]string{a.Topic, a.Software, a.Version}, []string{b.Topic, b.Software, b.Version})
	}) {
		t := c.counts[key]
		if t.told == t.Counted {
			continue
		}
		lines = append(lines, Counted{t.Source, t.Appended - t.told.Appended, t.Refused - t.told.Refused, t.Unchecked - t.told.Unchecked})
		t.told = t.Counted
	}
	c.mu.Unlock()
	for _, l := range lines {
		c.o.Logger.Warn("records were produced to other partitions than the topic's partitioner chooses", "topic", l.Topic,
			"client", l.Software, "version", l.Version, "appended", l.Appended, "refused", l.Refused, "unchecked", l.Unchecked)
	}
}
