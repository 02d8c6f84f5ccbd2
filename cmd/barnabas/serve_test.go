package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// fakeBroker is a server whose steps the test decides.
type fakeBroker struct {
	start, stop func(ctx context.Context) error
	announced   func() // is called when somebody is about to be told where it listens
	stopped     int
	failed      chan struct{}
}

func (b *fakeBroker) Start(ctx context.Context) error {
	if b.start == nil {
		return nil
	}
	return b.start(ctx)
}

func (b *fakeBroker) Stop(ctx context.Context) error {
	b.stopped++
	if b.stop == nil {
		return nil
	}
	return b.stop(ctx)
}

func (b *fakeBroker) Failed() <-chan struct{} { return b.failed }

func (b *fakeBroker) Err() error { return errTaken }

// errTaken is why a fake broker fails.
var errTaken = errors.New("somebody else is this broker")

func (b *fakeBroker) Advertised() []kafka.Listener {
	if b.announced != nil {
		b.announced()
	}
	return []kafka.Listener{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 41234, Protocol: "PLAINTEXT"}}
}

// serving runs serve over a fake broker.
func serving(t *testing.T, ctx context.Context, broker *fakeBroker, signals chan os.Signal) (output string, err error) {
	t.Helper()
	var out bytes.Buffer
	a := newApp(nil, &out, nil, nil)
	a.parts = testParts(t)
	a.assemble = func(*composition, *slog.Logger) (server, error) { return broker, nil }
	t.Chdir(t.TempDir())
	c, err := a.load(source{})
	require.NoError(t, err)
	err = a.serve(ctx, c, slog.New(slog.DiscardHandler), signals)
	return out.String(), err
}

func TestServeStopsOnASignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	broker := &fakeBroker{start: func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil }}
	_, err := serving(t, context.Background(), broker, signals)
	require.NoError(t, err)
	assert.Equal(t, 1, broker.stopped)
}

// TestServeEndsWithAFailedBroker stops a broker that can't go on, and says why.
func TestServeEndsWithAFailedBroker(t *testing.T) {
	broker := &fakeBroker{failed: make(chan struct{})}
	close(broker.failed)
	_, err := serving(t, context.Background(), broker, make(chan os.Signal, 2))
	require.ErrorIs(t, err, errTaken)
	assert.Equal(t, 1, broker.stopped)
}

func TestServeAnnounces(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	broker := &fakeBroker{announced: cancel}
	output, err := serving(t, ctx, broker, signals)
	require.NoError(t, err)
	assert.Equal(t, 1, broker.stopped, "the end of the context stops it too")
	assert.Contains(t, output, "storage        mmap")
	assert.Contains(t, output, "serving        PLAINTEXT://127.0.0.1:41234")
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Contains(t, output, "data           "+filepath.Join(here, "data")+"\n")
}

func TestSecondSignalForces(t *testing.T) {
	signals := make(chan os.Signal, 2)
	release := make(chan struct{})
	defer close(release)
	broker := &fakeBroker{stop: func(context.Context) error {
		signals <- os.Interrupt
		<-release
		return nil
	}}
	time.AfterFunc(20*time.Millisecond, func() { signals <- os.Interrupt })
	_, err := serving(t, context.Background(), broker, signals)
	assert.ErrorIs(t, err, errForced)
}

func TestSignalWhileStarting(t *testing.T) {
	signals := make(chan os.Signal, 2)
	broker := &fakeBroker{start: func(ctx context.Context) error {
		signals <- os.Interrupt
		<-ctx.Done()
		return ctx.Err()
	}}
	output, err := serving(t, context.Background(), broker, signals)
	require.NoError(t, err)
	assert.Equal(t, 1, broker.stopped, "a start that was cut short is stopped too")
	assert.Empty(t, output)
}

func TestServeFailures(t *testing.T) {
	boom := errors.New("boom")
	broker := &fakeBroker{start: func(context.Context) error { return boom }}
	_, err := serving(t, context.Background(), broker, make(chan os.Signal))
	assert.ErrorIs(t, err, boom)
	assert.Equal(t, 1, broker.stopped)

	done, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = serving(t, done, &fakeBroker{stop: func(context.Context) error { return boom }}, make(chan os.Signal))
	assert.ErrorIs(t, err, boom)
}
