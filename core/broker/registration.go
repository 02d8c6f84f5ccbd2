package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/election"
)

// This file keeps the broker a member of its cluster, and takes leave of it.

// keepRegistered registers the broker anew, under a new epoch, whenever its registration is lost, until Stop. What was said to
// an earlier registration is refused from then on, and the controller tells everything again.
func (b *Broker) keepRegistered(self election.Broker, r election.Registration) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-r.Lost():
			case <-ctx.Done():
				return
			}
			b.log.Warn("this broker's registration is lost; it registers anew", "broker", b.id, "epoch", r.Epoch())
			b.unregistered(r.Epoch())
			b.cache.Lost(r.Epoch()) // before the controller can speak to the next one
			again, err := b.registerAgain(ctx, self)
			if err != nil {
				if ctx.Err() == nil {
					b.fail(err)
				}
				return
			}
			r = again
			b.registered(r.Epoch(), true)
			b.log.Info("registered anew", "broker", b.id, "epoch", r.Epoch())
		}
	}()
	b.onStop("leave the cluster", func(ctx context.Context) error {
		cancel()
		<-done
		return r.Leave(ctx)
	})
}

// registerPause is how long a broker waits before it tries again to register.
const registerPause = 500 * time.Millisecond

// registerAgain registers until that succeeds, ctx ends, or somebody else is this broker.
func (b *Broker) registerAgain(ctx context.Context, self election.Broker) (election.Registration, error) {
	for {
		r, err := b.coordination.Membership().Register(ctx, self)
		switch {
		case err == nil:
			return r, nil
		case errors.Is(err, election.ErrBrokerExists), errors.Is(err, election.ErrInvalid), errors.Is(err, election.ErrClosed):
			return nil, fmt.Errorf("register broker %d again: %w", b.id, err)
		}
		b.log.Warn("could not register again, will try", "in", registerPause, "err", err)
		t := time.NewTimer(registerPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// fail says that the broker can't go on. Who runs it stops it.
func (b *Broker) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil {
		b.log.Error("this broker can't go on and has to be stopped", "err", err)
		b.failure = err
		b.journal.Record(journal.CannotGoOn{Broker: b.id, Err: err.Error()})
		close(b.failed)
	}
}

// Failed is closed when the broker can't go on: Err then says why, and whoever runs the broker stops it.
func (b *Broker) Failed() <-chan struct{} { return b.failed }

// Err says why the broker can't go on, nil while it can.
func (b *Broker) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failure
}

// undecidedPatience is how long a broker that stops, and isn't registered any more, waits for a controller to take its leaderships.
const undecidedPatience = 2 * time.Second

// decidable bounds a context: it ends soon after the registration is lost, as it is when nothing can be decided any more. Nobody takes
// leaderships from a broker that isn't registered, and to wait for the coordination could be to wait for ever.
func (b *Broker) decidable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	lost := b.lost
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-lost:
		case <-ctx.Done():
			return
		}
		t := time.NewTimer(undecidedPatience)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// handOver asks the controller to give this broker's leaderships to others (controlled shutdown), and tries again where some
// remain. A broker that is alone has nobody to hand them to.
func (b *Broker) handOver(whole context.Context) error {
	c := &b.o.Config
	if !c.ControlledShutdownEnable || b.epoch.Load() < 0 || b.alone() || b.Err() != nil {
		return nil
	}
	ctx, end := b.decidable(whole)
	defer end()
	begin := time.Now()
	channel := b.newChannel()
	defer channel.Close()
	left := 0
	for try := int32(0); try <= c.ControlledShutdownMaxRetries; try++ {
		if try > 0 {
			t := time.NewTimer(c.ControlledShutdownRetryBackoff)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
			}
		}
		var err error
		if ctx.Err() == nil {
			left, err = b.askToTakeOver(ctx, channel)
		}
		switch {
		case whole.Err() != nil:
			return nil
		case ctx.Err() != nil:
			b.log.Warn("stopping without handing leaderships over: this broker isn't registered any more, as when nothing can be decided; others lead as soon as they can",
				"waited", time.Since(begin).Round(time.Millisecond))
			return nil
		case err != nil:
			b.log.Warn("the controller could not be asked to take the leaderships of this broker", "err", err)
		case left == 0:
			b.log.Info("handed the leaderships over", "took", time.Since(begin).Round(time.Millisecond))
			return nil
		}
	}
	b.log.Warn("stopping all the same: some partitions have no other leader", "partitions", left)
	return nil
}

// askToTakeOver asks once, and says how many leaderships are left.
func (b *Broker) askToTakeOver(ctx context.Context, channel *peers.Channel) (left int, err error) {
	req := kmsg.NewPtrControlledShutdownRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = 3, b.id, b.epoch.Load()
	ctx, cancel := context.WithTimeout(ctx, max(b.o.Config.ControllerSocketTimeout, time.Second))
	defer cancel()
	resp, err := channel.Do(ctx, req)
	if err != nil {
		return 0, err
	}
	answer := resp.(*kmsg.ControlledShutdownResponse)
	return len(answer.PartitionsRemaining), kerr.ErrorForCode(answer.ErrorCode)
}

// alone reports whether no other broker is known to live.
func (b *Broker) alone() bool {
	for _, other := range b.cache.Snapshot().Brokers() {
		if other.ID != b.id {
			return false
		}
	}
	return true
}
