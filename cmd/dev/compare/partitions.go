package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// The rows of many partitions, and what more is sampled for them.
const (
	createMany  = "create-1000"
	usableMany  = "create-1000, usable"
	restartMany = "restart-4000"
	restartCPU  = "restart-4000, CPU"
)

// manyTopics is how many topics of many partitions a broker starts with.
const manyTopics = 4

func partitionStates() []state {
	return []state{
		// No target for the answer: Kafka's says that the partitions are decided, ours that they are made (DECISIONS 73).
		{name: createMany, unit: "ms to the answer to one request for 1,000 partitions"},
		{name: createMany, sample: usableMany, unit: "ms until all of them can be used", target: atMost(0.3)},
		{name: restartMany, unit: "s until 4,000 partitions answer, after a clean stop", target: atMost(0.1)},
		{name: restartMany, sample: restartCPU, unit: "CPU-s until then", target: atMost(0.1)},
	}
}

// measurePartitions measures how many partitions are made, and how long a start takes that has them.
func (c *Comparison) measurePartitions(ctx context.Context) ([]Figure, error) {
	if !c.wants(createMany, restartMany) {
		return nil, nil
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	of := make([]noted, len(c.kinds()))
	running := make([]*peers.Peer, len(of))
	defer func() {
		for _, p := range running {
			if p != nil {
				p.Kill()
			}
		}
	}()
	for i, k := range c.kinds() {
		of[i] = noted{}
		p, err := c.start(ctx, k, "partitions-"+k.storage, 0)
		if err != nil {
			return nil, err
		}
		running[i] = p
	}
	if c.wants(createMany) {
		if err := c.createTopics(ctx, running, of); err != nil {
			return nil, err
		}
	}
	if c.wants(restartMany) {
		if err := c.restarts(ctx, running, of); err != nil {
			return nil, err
		}
	}
	return c.figuresOf(partitionStates(), of), nil
}

// createTopics creates topics of many partitions, one at a time.
func (c *Comparison) createTopics(ctx context.Context, running []*peers.Peer, of []noted) error {
	for round := range c.Rounds + 1 { // the first one warms up
		for i, k := range c.kinds() {
			answered, usable, err := createTimed(ctx, running[i].Addr, fmt.Sprintf("create-%d", round))
			if err != nil {
				return fmt.Errorf("%s, %s: %w", k, createMany, err)
			}
			if round > 0 {
				of[i].note(createMany, answered.Seconds()*1e3)
				of[i].note(usableMany, usable.Seconds()*1e3)
			}
			c.Env.Say("%s answers after %.1f ms that it has made %d partitions, which can be used after %.1f ms", k, answered.Seconds()*1e3, many, usable.Seconds()*1e3)
			if err := awaitGone(ctx, running[i].Data, "create-"); err != nil {
				return fmt.Errorf("%s, %s: %w", k, createMany, err)
			}
			if err := pause(ctx, settle); err != nil {
				return err
			}
		}
	}
	return nil
}

// createTimed creates a topic of many partitions, and says when that was answered and when each partition told its end. The
// topic is deleted again.
func createTimed(ctx context.Context, addr, topic string) (answered, usable time.Duration, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil { // it is connected then
		return 0, 0, err
	}
	admin := kadm.NewClient(client)
	begin := time.Now()
	if _, err := admin.CreateTopic(ctx, many, 1, nil, topic); err != nil {
		return 0, 0, err
	}
	answered = time.Since(begin)
	if err := awaitEnds(ctx, admin, many, topic); err != nil {
		return 0, 0, err
	}
	usable = time.Since(begin)
	_, err = admin.DeleteTopic(ctx, topic)
	return answered, usable, err
}

// awaitGone waits until the folders of deleted partitions are gone, so that removing them isn't what the next broker pays for.
func awaitGone(ctx context.Context, data, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		left, err := filepath.Glob(filepath.Join(data, prefix+"*"))
		if err != nil || len(left) == 0 {
			return err
		}
		if err := pause(ctx, settle/10); err != nil {
			return fmt.Errorf("%d folders of deleted partitions are left: %w", len(left), err)
		}
	}
}

// awaitEnds waits until so many partitions of topics have all told their ends.
func awaitEnds(ctx context.Context, admin *kadm.Client, partitions int, topics ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		ends, err := admin.ListEndOffsets(ctx, topics...)
		if err == nil {
			err = ends.Error()
		}
		n := 0
		ends.Each(func(kadm.ListedOffset) { n++ })
		if err == nil && n == partitions {
			return nil
		}
		if ended := pause(ctx, 2*time.Millisecond); ended != nil {
			return fmt.Errorf("%d of %d partitions answer: %w", n, partitions, errors.Join(ended, err))
		}
	}
}

// restarts fills partitions, and starts each broker again after a clean stop, alone.
func (c *Comparison) restarts(ctx context.Context, running []*peers.Peer, of []noted) error {
	var topics []string
	for t := range manyTopics {
		topics = append(topics, fmt.Sprintf("restart-%d", t))
	}
	for i, k := range c.kinds() {
		for _, topic := range topics {
			if err := fillMany(ctx, running[i].Addr, topic); err != nil {
				return fmt.Errorf("%s, %s: %w", k, restartMany, err)
			}
		}
		if err := running[i].Stop(); err != nil {
			return fmt.Errorf("%s, %s: %w", k, restartMany, err)
		}
		running[i] = nil
	}
	for range c.Rounds {
		for i, k := range c.kinds() {
			if err := c.restart(ctx, k, topics, of[i]); err != nil {
				return fmt.Errorf("%s, %s: %w", k, restartMany, err)
			}
		}
	}
	for _, k := range c.kinds() {
		if err := os.RemoveAll(filepath.Join(c.Dir, "partitions-"+k.storage)); err != nil {
			return err
		}
	}
	return nil
}

// fillMany makes a topic of many partitions with a batch in each.
func fillMany(ctx context.Context, addr, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, many, 1, nil, topic); err != nil {
		return err
	}
	if err := awaitEnds(ctx, admin, many, topic); err != nil {
		return err
	}
	return bench.Fill(ctx, addr, topic, many*64<<10)
}

func (c *Comparison) restart(ctx context.Context, k kind, topics []string, of noted) error {
	begin := time.Now()
	p, err := c.start(ctx, k, "partitions-"+k.storage, 0)
	if err != nil {
		return err
	}
	defer p.Kill() // of no effect after it has stopped
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := awaitEnds(ctx, kadm.NewClient(client), many*len(topics), topics...); err != nil {
		return err
	}
	took := time.Since(begin)
	used, err := bench.Measure(p.Pid())
	if err != nil {
		return err
	}
	of.note(restartMany, took.Seconds())
	of.note(restartCPU, used.CPU.Seconds())
	c.Env.Say("%s with %d partitions has started after %.2f s and %.2f CPU-s", k, many*len(topics), took.Seconds(), used.CPU.Seconds())
	return p.Stop()
}
