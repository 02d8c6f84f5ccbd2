package broker

import (
	"context"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/broker/internal/placement"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// This file has what the broker does with partitioners: it checks where clients put records, for topics that ask for it.

// startPartitioners makes and starts what topics may declare, and the checks by them.
func (b *Broker) startPartitioners(ctx context.Context) (err error) {
	var named []partitioner.Named
	for _, maker := range b.o.Partitioners {
		p, err := maker.New(partitioner.Settings{Settings: b.settings("partitioner", maker.Name())})
		if err != nil {
			return err
		}
		named = append(named, partitioner.Named{Name: maker.Name(), Partitioner: p})
	}
	if b.partitioners, err = partitioner.NewSet(named...); err != nil {
		return err
	}
	if err := b.run(ctx, "partitioners", b.partitioners); err != nil {
		return err
	}
	b.o.Layers.Partitioners = []kafka.Partitioner{}
	for _, p := range named {
		b.o.Layers.Partitioners = append(b.o.Layers.Partitioners, kafka.Partitioner{Name: p.Name, Keyed: p.Keyed()})
	}
	b.placement = placement.New(placement.Options{Partitioners: b.partitioners, Partitions: b.countPartitions, Logger: b.log})
	b.onStop("tell of records elsewhere", b.placement.Stop)
	return nil
}

// countPartitions is how many partitions a topic has, 0 when this broker doesn't know it yet.
func (b *Broker) countPartitions(topic string) int32 {
	if t, ok := b.cache.Snapshot().Topic(topic); ok {
		return int32(len(t.Partitions))
	}
	return 0
}

// logConfig is the part of a topic's configuration that its logs act on.
func (b *Broker) logConfig(topic string, c kafka.TopicConfig) log.Config {
	config := logConfig(c)
	config.Keys = b.placement.Topic(topic, c.Partitioner, c.PartitionerCheck)
	return config
}

// Partitioner chooses partitions as each topic declares (barnabas.partitioner), and for other topics by the first of
// Options.Partitioners. It is for whoever produces beside this broker and leaves the choice to it, and works while the broker runs;
// starting and stopping it does nothing.
func (b *Broker) Partitioner() partitioner.Partitioner { return declared{b} }

// declared is the partitioners of all topics.
type declared struct{ b *Broker }

func (declared) Start(context.Context) error { return nil }
func (declared) Stop(context.Context) error  { return nil }

// Keyed is false: whether keys decide depends on the topic.
func (declared) Keyed() bool { return false }

func (d declared) Partition(ctx context.Context, dst []int32, batch *partitioner.Batch) ([]int32, error) {
	if !d.b.serving.Load() {
		return dst, fmt.Errorf("%w: the broker doesn't serve yet", partitioner.ErrUnavailable)
	}
	name := d.b.configs.TopicConfig(batch.Topic).Partitioner
	if name == "" {
		all := d.b.partitioners.All()
		if len(all) == 0 {
			return dst, fmt.Errorf("%w: this broker has no partitioner", partitioner.ErrUnavailable)
		}
		return all[0].Partition(ctx, dst, batch)
	}
	p, err := d.b.partitioners.Get(name)
	if err != nil {
		// It was there when the topic declared it. Another one would put keys elsewhere.
		return dst, fmt.Errorf("%w: topic %s: %w", partitioner.ErrUnavailable, batch.Topic, err)
	}
	return p.Partition(ctx, dst, batch)
}

// Misplaced lists how many records clients put elsewhere than the partitioner that their topic declares would have, by topic and
// client software, since Start. It is empty before.
func (b *Broker) Misplaced() []Misplaced {
	if !b.serving.Load() {
		return nil
	}
	counts := b.placement.Counts()
	list := make([]Misplaced, len(counts))
	for i, c := range counts {
		list[i] = Misplaced{Topic: c.Topic, Software: c.Software, Version: c.Version, Appended: c.Appended, Refused: c.Refused, Unchecked: c.Unchecked}
	}
	return list
}

// Misplaced is how many records clients of one software put elsewhere in one topic.
type Misplaced struct {
	Topic             string
	Software, Version string // as the client names itself (KIP-511); "unknown" when it doesn't
	Appended          int64  // by barnabas.partitioner.check=count
	Refused           int64  // by barnabas.partitioner.check=reject
	Unchecked         int64  // kept without a check, because the partitioner didn't answer
}
