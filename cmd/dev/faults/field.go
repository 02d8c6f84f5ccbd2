package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify"
)

// Field is where a scenario does its work: a cluster under load.
type Field struct {
	*Cluster
	Random *rand.Rand
	Long   bool // whether there is time
	Say    func(format string, args ...any)

	run       *verify.Run
	decisions int // how many were asked for to see that any is taken
}

// topic is the topic under load.
func (f *Field) topic() string { return f.run.Topic() }

// times is how often something is done: few times, or many when there is time.
func (f *Field) times(few, many int) int {
	if f.Long {
		return many
	}
	return few
}

// goesOn waits until some hundred records more are acknowledged.
func (f *Field) goesOn(ctx context.Context, within time.Duration) error {
	const enough = 300
	begin, before := time.Now(), f.run.Acknowledged()
	for f.run.Acknowledged() < before+enough {
		if !pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
		if time.Since(begin) > within {
			return fmt.Errorf("only %d records were acknowledged within %s", f.run.Acknowledged()-before, within)
		}
	}
	return nil
}

// during lets time pass in which records are acknowledged all the time: never none for longer than pauses may last.
func (f *Field) during(ctx context.Context, d, most time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := f.goesOn(ctx, most); err != nil {
			return err
		}
	}
	return nil
}

// whole waits until the cluster is as if nothing had happened.
func (f *Field) whole(ctx context.Context) error {
	begin := time.Now()
	if err := f.InSync(ctx, f.topic(), 2*time.Minute); err != nil {
		return err
	}
	f.Say("all replicas are in sync again, after %s", time.Since(begin).Round(10*time.Millisecond))
	return f.goesOn(ctx, patience)
}

// patience is how long the cluster may take to go on after a fault: a session that ends, elections, and clients that find
// out, on a machine that has other things to do.
const patience = time.Minute

// leader is the leader of a partition drawn by lot.
func (f *Field) leader(ctx context.Context) (*Broker, error) {
	return f.Leader(ctx, f.topic(), f.Random.Int32N(partitions))
}

// others are all brokers but some.
func (f *Field) others(but ...*Broker) (others []*Broker) {
next:
	for _, b := range f.Brokers {
		for _, not := range but {
			if b == not {
				continue next
			}
		}
		others = append(others, b)
	}
	return others
}

// anyOf draws one.
func (f *Field) anyOf(all []*Broker) *Broker { return all[f.Random.IntN(len(all))] }

// cutFromBrokers cuts a broker from all others.
func (f *Field) cutFromBrokers(b *Broker) {
	for _, other := range f.others(b) {
		f.Network.Cut(b.name(), other.name())
	}
}
