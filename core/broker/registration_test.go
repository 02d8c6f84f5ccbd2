package broker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/election"
)

// registrar is a membership that answers as it is told, one answer after the other.
type registrar struct {
	election.Coordination
	answers chan error
	epoch   int64
	last    *registration
}

func (r *registrar) Membership() election.Membership { return roster{r: r} }

type roster struct {
	election.Membership
	r *registrar
}

func (m roster) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	return m.r.register(ctx, b)
}

func (r *registrar) register(ctx context.Context, _ election.Broker) (election.Registration, error) {
	select {
	case err := <-r.answers:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.epoch++
	r.last = &registration{epoch: r.epoch, lost: make(chan struct{}), left: make(chan struct{})}
	return r.last, nil
}

type registration struct {
	epoch      int64
	lost, left chan struct{}
}

func (r *registration) Epoch() int64          { return r.epoch }
func (r *registration) Lost() <-chan struct{} { return r.lost }
func (r *registration) Leave(context.Context) error {
	close(r.left)
	return nil
}

// registered makes a broker that is nothing but registered.
func registered(t *testing.T) (*Broker, *registrar) {
	r := &registrar{answers: make(chan error, 10)}
	b := &Broker{log: slog.New(slog.DiscardHandler), id: 1, coordination: r, failed: make(chan struct{})}
	b.cache = metadata.NewCache(b.epoch.Load)
	r.answers <- nil
	first, err := r.register(t.Context(), election.Broker{})
	require.NoError(t, err)
	b.registered(first.Epoch(), false)
	b.keepRegistered(election.Broker{ID: 1}, first)
	return b, r
}

// TestRegistersUntilItSucceeds tries again what the coordination couldn't do.
func TestRegistersUntilItSucceeds(t *testing.T) {
	b, r := registered(t)
	r.answers <- election.ErrUnavailable
	r.answers <- nil
	close(r.last.lost)
	require.Eventually(t, func() bool { return b.epoch.Load() == 2 }, time.Minute, time.Millisecond)
	require.NoError(t, b.Err())
	require.NoError(t, b.Stop(t.Context()))
	<-r.last.left
}

// TestIDIsTaken has somebody else register as this broker while its own registration is lost: it says that it can't go on.
func TestIDIsTaken(t *testing.T) {
	b, r := registered(t)
	r.answers <- election.ErrBrokerExists
	close(r.last.lost)
	select {
	case <-b.Failed():
	case <-time.After(time.Minute):
		require.Fail(t, "goes on")
	}
	require.ErrorIs(t, b.Err(), election.ErrBrokerExists)
	require.NoError(t, b.Stop(t.Context()))
}

// TestStopsWhileItRegisters stops a broker whose coordination can't be reached.
func TestStopsWhileItRegisters(t *testing.T) {
	b, r := registered(t)
	r.answers <- errors.New("no line")
	close(r.last.lost)
	require.Eventually(t, func() bool { return len(r.answers) == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, b.Err())
}

// TestNothingIsDecidedWithoutARegistration waits for decisions while the broker is registered, and soon no longer when it isn't.
func TestNothingIsDecidedWithoutARegistration(t *testing.T) {
	b, r := registered(t)
	ctx, end := b.decidable(t.Context())
	defer end()
	require.NoError(t, ctx.Err())
	close(r.last.lost)
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for ever")
	}
	r.answers <- nil
	require.Eventually(t, func() bool { return b.epoch.Load() == 2 }, time.Minute, time.Millisecond)
	again, endAgain := b.decidable(t.Context())
	require.NoError(t, again.Err(), "it is registered again")
	endAgain()
	require.Error(t, again.Err())
	require.NoError(t, b.Stop(t.Context()))
}
