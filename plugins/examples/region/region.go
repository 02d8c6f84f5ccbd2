package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are what a YAML file may say about this partitioner.
type Options struct {
	Header  string             `yaml:"header" doc:"name of the header that holds a record's region"`
	Regions map[string][]int32 `yaml:"regions" doc:"the partitions of each region"`
	Default []int32            `yaml:"default" doc:"the partitions of records of no region, or of one that isn't listed; none means all"`
}

// Validate checks what the types can't.
func (o Options) Validate() error {
	var errs []error
	if o.Header == "" {
		errs = append(errs, config.At("header", errors.New("must not be empty")))
	}
	if err := checkList(o.Default); err != nil {
		errs = append(errs, config.At("default", err))
	}
	for name, list := range o.Regions {
		err := checkList(list)
		if err == nil && len(list) == 0 {
			err = errors.New("must list at least one partition")
		}
		if err != nil {
			errs = append(errs, config.At("regions."+name, err))
		}
	}
	return errors.Join(errs...)
}

func checkList(list []int32) error {
	for _, p := range list {
		if p < 0 {
			return fmt.Errorf("there is no partition %d", p)
		}
	}
	return nil
}

// NewFactory says how the partitioner is called, what its options are, and how it is made.
func NewFactory() partitioner.Factory {
	return plugin.NewFactory("region", "by the region that a header names; within a region by key",
		func() Options { return Options{Header: "region"} },
		func(o Options, _ partitioner.Settings) (partitioner.Partitioner, error) { return New(o), nil })
}

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct {
	options Options
	next    atomic.Uint32 // counts records without a key, so that they are spread
}

// New makes the partitioner of checked options.
func New(o Options) *Partitioner { return &Partitioner{options: o} }

// Start does nothing: there is nothing to start.
func (*Partitioner) Start(context.Context) error { return nil }

// Stop does nothing.
func (*Partitioner) Stop(context.Context) error { return nil }

// Keyed is false: where a record goes depends on its region too, so equal keys of two regions don't meet.
func (*Partitioner) Keyed() bool { return false }

// Bound is true: a record belongs to its region, whether anything there has a leader or not.
func (*Partitioner) Bound() bool { return true }

// Partition puts each record into a partition of its region: one that depends on its key, or else the next one, of those that
// have a leader when any has.
func (p *Partitioner) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, fmt.Errorf("region: %w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic)
	}
	rooms := map[string]room{} // a batch has few regions and many records
	for i := range b.Records {
		r := &b.Records[i]
		name := p.regionOf(r)
		in, known := rooms[string(name)]
		if !known {
			in = p.room(string(name), b)
			rooms[string(name)] = in
		}
		if r.Key != nil {
			dst = append(dst, in.all[hash(r.Key)%uint32(len(in.all))])
			continue
		}
		dst = append(dst, in.led[p.next.Add(1)%uint32(len(in.led))])
	}
	return dst, nil
}

// regionOf is the value of the record's last header of that name, as Kafka's lastHeader has it.
func (p *Partitioner) regionOf(r *partitioner.Record) []byte {
	for i := range slices.Backward(r.Headers) {
		if r.Headers[i].Key == p.options.Header {
			return r.Headers[i].Value
		}
	}
	return nil
}

// room is where records of one region may go, in one topic.
type room struct {
	all []int32 // never empty
	led []int32 // those of them that have a leader; all when none has
}

// room finds the partitions of a region in the batch's topic. A topic may have fewer partitions than the options count on:
// a region of which it has none has the default's, and all of them when it has none of those.
func (p *Partitioner) room(region string, b *partitioner.Batch) room {
	var in room
	for _, list := range [][]int32{p.options.Regions[region], p.options.Default} {
		for _, at := range list {
			if at < b.Partitions {
				in.all = append(in.all, at)
			}
		}
		if len(in.all) > 0 {
			break
		}
	}
	if len(in.all) == 0 {
		for at := range b.Partitions {
			in.all = append(in.all, at)
		}
	}
	for _, at := range in.all {
		if _, ok := slices.BinarySearch(b.Available, at); ok || len(b.Available) == 0 {
			in.led = append(in.led, at)
		}
	}
	if len(in.led) == 0 {
		in.led = in.all
	}
	return in
}

func hash(key []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(key)
	return h.Sum32()
}
