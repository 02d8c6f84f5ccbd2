// Package target gives a test the broker that it is to be made against: Barnabas built from this tree, Apache Kafka, or
// one that already runs somewhere.
package target

import (
	"context"
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// What --target may say beside HOST:PORT.
const (
	Barnabas = "barnabas"
	Kafka    = "kafka"
)

// Target is a broker to test.
type Target struct {
	Name string // for reports: "barnabas mmap", "kafka 4.4.0", "127.0.0.1:9092"
	Addr string
	Data string // its log.dirs folder, "" when it is not known

	peer    *peers.Peer
	cleanup func()
}

// Opener starts targets.
type Opener struct {
	Env   *task.Env
	Tools *tools.Tools
}

// properties are set on every broker that is started here: what tests on one node need and cannot wait for.
func properties() map[string]string {
	return map[string]string{
		"group.initial.rebalance.delay.ms": "0",
		"offsets.topic.num.partitions":     "5",
	}
}

// Open starts what, which is Barnabas, Kafka or HOST:PORT. storage is for Barnabas; "" is its default.
func (o Opener) Open(ctx context.Context, what, storage string) (*Target, error) {
	switch {
	case what == Kafka:
		return o.kafka(ctx)
	case what == Barnabas || what == "":
		return o.barnabas(ctx, storage)
	case strings.Contains(what, ":"):
		return &Target{Name: what, Addr: what}, nil
	default:
		return nil, fmt.Errorf("target %q: not %s, %s or HOST:PORT", what, Barnabas, Kafka)
	}
}

func (o Opener) kafka(ctx context.Context) (*Target, error) {
	java, err := peers.KafkaJars(ctx, o.Tools)
	if err != nil {
		return nil, err
	}
	dir, cleanup, err := o.Env.TempDir("kafka-")
	if err != nil {
		return nil, err
	}
	p, err := peers.StartKafka(ctx, o.Env, java, peers.KafkaOptions{Dir: dir, Heap: "512M", Properties: properties()})
	if err != nil {
		cleanup()
		return nil, err
	}
	return &Target{Name: "kafka " + peers.KafkaVersion, Addr: p.Addr, Data: p.Data, peer: p, cleanup: cleanup}, nil
}

func (o Opener) barnabas(ctx context.Context, storage string) (*Target, error) {
	bin, err := o.Tools.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return nil, err
	}
	dir, cleanup, err := o.Env.TempDir("barnabas-")
	if err != nil {
		return nil, err
	}
	p, err := StartBarnabas(ctx, bin, Options{Dir: dir, Storage: storage})
	if err != nil {
		cleanup()
		return nil, err
	}
	return &Target{Name: strings.TrimSpace("barnabas " + storage), Addr: p.Addr, Data: p.Data, peer: p, cleanup: cleanup}, nil
}

// Owned says whether the broker was started here and so may be stopped.
func (t *Target) Owned() bool { return t.peer != nil }

// Output is the end of what the broker printed, "" when it was not started here.
func (t *Target) Output() string {
	if t.peer == nil {
		return ""
	}
	return t.peer.Output()
}

// Stop stops the broker cleanly when it was started here; its files stay until Close.
func (t *Target) Stop() error {
	if t.peer == nil {
		return nil
	}
	p := t.peer
	t.peer = nil
	return p.Stop()
}

// Close kills the broker if it still runs, and removes its files.
func (t *Target) Close() {
	if t.peer != nil {
		t.peer.Kill()
		t.peer = nil
	}
	if t.cleanup != nil {
		t.cleanup()
		t.cleanup = nil
	}
}
