// Package brokertest runs real brokers inside Go tests: real files in a directory of the test's, a real port, Kafka's protocol.
//
//	func TestMine(t *testing.T) {
//		b := testbroker.Start(t, brokertest.Offsets(mystore.NewFactory()))
//		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
//		…
//	}
//
// A start and a stop take 12 ms together, a test that creates a topic, produces and consumes 45 ms (its benchmarks, on two cores
// with nothing else to do), and any number of brokers may run side by side. A broker ends with its test, or earlier, cleanly: no
// goroutine is left and the logs are closed as in production.
//
// What a broker is made of, this package doesn't know: core names no implementations. plugins/sdk/testbroker does, and has a
// Start that begins with those in the box, so that a test names only the plug-in it is about.
package brokertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// Broker is a broker that runs in a test. Its methods are called from the test's goroutine, all but Addr and Dir.
type Broker struct {
	t      testing.TB
	setup  setup
	broker *broker.Broker // nil when it is stopped
	addr   string
}

// patience is how long a broker may take to start or to stop.
const patience = time.Minute

// Start starts a broker, and ends the test when that fails. The broker is stopped when the test ends, after whatever the test
// registered with Cleanup since: clients that are closed there find it up.
//
// Later options win over earlier ones. A storage, an election and an offsets store have to be among them.
func Start(t testing.TB, options ...Option) *Broker {
	t.Helper()
	b := &Broker{t: t, setup: defaults()}
	for _, option := range options {
		option(&b.setup)
	}
	if b.setup.dir == "" {
		b.setup.dir = t.TempDir() // before Cleanup, so that it is removed after the broker has stopped
	}
	t.Cleanup(b.Stop)
	b.start()
	return b
}

// Addr is where clients find the broker: HOST:PORT of its first listener. It stays when the broker starts again.
func (b *Broker) Addr() string { return b.addr }

// Dir is the broker's log directory.
func (b *Broker) Dir() string { return b.setup.dir }

// Admin is the address of the admin server, as the beginning of a URL. It takes the option [Admin], the broker has to run, and it is
// another one after a restart.
func (b *Broker) Admin() string {
	b.t.Helper()
	if b.broker == nil || b.broker.AdminAddr() == nil {
		b.t.Fatalf("brokertest: the broker is stopped, or has no admin server")
	}
	return "http://" + b.broker.AdminAddr().String()
}

// Misplaced is what topics that check where their records are have counted; the broker has to run.
func (b *Broker) Misplaced() []broker.Misplaced {
	b.t.Helper()
	if b.broker == nil {
		b.t.Fatalf("brokertest: the broker is stopped")
	}
	return b.broker.Misplaced()
}

// Failed is closed when the broker can't go on, because its log directory failed, say; it has to run when this is called.
func (b *Broker) Failed() <-chan struct{} {
	b.t.Helper()
	if b.broker == nil {
		b.t.Fatalf("brokertest: the broker is stopped")
	}
	return b.broker.Failed()
}

// Stop drains the broker and closes its files. The test fails when it can't, save for a broker that has Failed. It does nothing when
// the broker is stopped already.
func (b *Broker) Stop() {
	b.t.Helper()
	if b.broker == nil {
		return
	}
	stopped := b.broker
	b.broker = nil
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := stopped.Stop(ctx); err != nil && stopped.Err() == nil {
		b.t.Errorf("brokertest: stop: %v", err)
	}
}

// Restart stops the broker, if it runs, and starts it again over the same files and at the same address. The options come on top
// of those that it was started with: another storage, say, or another property.
func (b *Broker) Restart(options ...Option) {
	b.t.Helper()
	b.Stop()
	for _, option := range options {
		option(&b.setup)
	}
	b.start()
}

func (b *Broker) start() {
	b.t.Helper()
	again := b.addr != ""
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := b.tryStart()
		if err == nil {
			return
		}
		// Meanwhile the system may have given the port to somebody's outgoing connection.
		if !again || !errors.Is(err, syscall.EADDRINUSE) || time.Since(begin) > patience {
			b.t.Fatalf("brokertest: start: %v", err)
		}
	}
}

func (b *Broker) tryStart() error {
	o, err := b.setup.compose(b.t, b.addr)
	if err != nil {
		return err
	}
	made, err := broker.New(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if err := made.Start(ctx); err != nil {
		return err
	}
	b.broker = made
	// No producer is to spend its test's time on waiting to ask again.
	if err := made.LoadProducerIDs(ctx); err != nil {
		return err
	}
	l := made.Advertised()[0]
	if b.addr == "" { // it stays, and others may be reading it
		b.addr = net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
	}
	return nil
}

// compose makes the broker's options. addr is where it served before, "" at first.
func (s *setup) compose(t testing.TB, addr string) (broker.Options, error) {
	if err := errors.Join(s.errs...); err != nil {
		return broker.Options{}, err
	}
	if s.options.Storage == nil || s.options.Election == nil || s.options.Offsets == nil {
		return broker.Options{}, errors.New("a storage, an election and an offsets store are needed: name them, or begin with those of plugins/sdk/testbroker")
	}
	root, err := config.Parse("brokertest", []byte("broker: {}"))
	if err != nil {
		return broker.Options{}, err
	}
	properties := append([][2]string{{"log.dirs", s.dir}}, s.properties...)
	if addr != "" {
		properties = append(properties, [2]string{"listeners", "PLAINTEXT://" + addr})
	}
	for _, p := range properties {
		if root, err = root.Override("brokertest", []string{"broker", p[0]}, strconv.Quote(p[1])); err != nil {
			return broker.Options{}, err
		}
	}
	section, _ := root.Sub("broker")
	o := s.options
	var warnings []string
	if o.Layers.Static, warnings, err = kafka.ReadStatic(section); err != nil {
		return broker.Options{}, err
	}
	for _, w := range warnings {
		t.Log(w)
	}
	o.Layers.Codecs = []string{}
	for _, c := range o.Compression {
		o.Layers.Codecs = append(o.Layers.Codecs, c.Name())
	}
	if o.Config, err = o.Layers.BrokerConfig(); err != nil {
		return broker.Options{}, err
	}
	if s.log {
		o.Logger = slog.New(slog.NewTextHandler(lines{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return o, nil
}

// lines writes to the test's log.
type lines struct{ t testing.TB }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// String says where the broker is, for messages of tests.
func (b *Broker) String() string {
	return fmt.Sprintf("broker at %s, files in %s", b.addr, b.setup.dir)
}
