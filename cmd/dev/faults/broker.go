package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults/network"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// Broker is one broker of a cluster: a process that can be ended, paused and started again, with the same data and addresses.
type Broker struct {
	ID int

	bin, dir          string
	kafka             *peers.Java // nil for Barnabas
	clients, internal string      // where it listens
	gates             struct{ clients, internal *network.Gate }
	zookeeper         string        // its own way there
	ends              ends          // of its coordination, without ZooKeeper
	election          func() string // that section of its configuration
	storage           string
	properties        map[string]string

	peer   *peers.Peer // nil when it doesn't run
	paused bool
	client *kgo.Client // asks it alone; nil until it is asked
}

// name is what the network calls the broker.
func (b *Broker) name() string { return brokerName(b.ID) }

func brokerName(id int) string { return "broker " + strconv.Itoa(id) }

// Addr is where clients find it.
func (b *Broker) Addr() string { return b.gates.clients.Addr() }

// Data is its log directory.
func (b *Broker) Data() string { return filepath.Join(b.dir, "data") }

// Running says whether there is a process, paused or not.
func (b *Broker) Running() bool { return b.peer != nil }

// config is its configuration as Kafka's properties.
func (b *Broker) config() map[string]string {
	p := map[string]string{
		"broker.id":                            strconv.Itoa(b.ID),
		"listeners":                            "CLIENT://" + b.clients + ",INTERNAL://" + b.internal,
		"advertised.listeners":                 "CLIENT://" + b.gates.clients.Addr() + ",INTERNAL://" + b.gates.internal.Addr(),
		"listener.security.protocol.map":       "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
		"inter.broker.listener.name":           "INTERNAL",
		"log.dirs":                             b.Data(),
		"broker.rack":                          "rack" + strconv.Itoa(b.ID),
		"replica.lag.time.max.ms":              "6000",
		"replica.socket.timeout.ms":            "7000",
		"controller.socket.timeout.ms":         "8000",
		"offsets.topic.num.partitions":         "3",
		"transaction.state.log.num.partitions": "3",
		// Without it, who leads when everything is mended depends on chance.
		"leader.imbalance.check.interval.seconds": "10",
		"group.initial.rebalance.delay.ms":        "0",
		// The last ones to stop find nobody to hand their leaderships to.
		"controlled.shutdown.retry.backoff.ms": "500",
	}
	maps.Copy(p, b.properties)
	return p
}

// yaml is its configuration as a Barnabas broker reads it.
func (b *Broker) yaml() string {
	p := b.config()
	var y strings.Builder
	y.WriteString("broker:\n")
	for _, key := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&y, "  %s: %q\n", key, p[key])
	}
	if b.storage != "" {
		fmt.Fprintf(&y, "storage: %s\n", b.storage)
	}
	fmt.Fprintf(&y, "election:\n  %s", b.election())
	return y.String()
}

// Start starts the broker, and returns when it answers. One that runs is left alone.
func (b *Broker) Start(ctx context.Context) error {
	if b.peer != nil {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if b.kafka != nil {
		return b.startKafka(ctx)
	}
	conf := b.conf()
	if err := os.WriteFile(conf, []byte(b.yaml()), 0o644); err != nil {
		return err
	}
	// All that it prints is kept, over all its lives: the last lines alone seldom say what went wrong.
	cmd := exec.Command("sh", "-c", `echo $$ >"$3"; exec "$0" serve -c "$1" >>"$2" 2>&1`, b.bin, conf, b.log(), b.pidFile())
	cmd.Dir = b.dir
	p, err := peers.Start(ctx, cmd, b.clients, b.Data())
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", b.name(), err, b.Output())
	}
	b.peer = p
	return nil
}

// startKafka starts Apache Kafka instead: what it does under the same faults proves the scenarios, and the judge.
func (b *Broker) startKafka(ctx context.Context) error {
	p := b.config()
	p["zookeeper.session.timeout.ms"] = strconv.FormatInt(zookeeperSession.Milliseconds(), 10)
	_, port, err := net.SplitHostPort(b.clients)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	if b.peer, err = peers.StartKafka39(ctx, *b.kafka, peers.Kafka39Options{Dir: b.dir, ID: b.ID, Port: number, ZooKeeper: b.zookeeper, Heap: "256M", Properties: p}); err != nil {
		return fmt.Errorf("%s: %w", b.name(), err)
	}
	return os.WriteFile(b.pidFile(), strconv.AppendInt(nil, int64(b.peer.Pid()), 10), 0o644)
}

// pidFile has the process's id from its first moment on: it connects to others long before it answers.
func (b *Broker) pidFile() string { return filepath.Join(b.dir, "pid") }

// pid is the id of the process that was started last, 0 when there was none. Any goroutine may ask.
func (b *Broker) pid() int {
	text, err := os.ReadFile(b.pidFile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// conf is the file with its configuration.
func (b *Broker) conf() string { return filepath.Join(b.dir, "barnabas.yaml") }

func (b *Broker) log() string { return filepath.Join(b.dir, "log") }

// Output is the end of what it printed.
func (b *Broker) Output() string {
	if b.kafka != nil {
		if b.peer == nil {
			return ""
		}
		return b.peer.Output()
	}
	text, err := os.ReadFile(b.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4096):])
}

// Stop ends the broker as an operator does.
func (b *Broker) Stop() error {
	if b.peer == nil {
		return nil
	}
	err := b.Resume()
	p := b.peer
	b.peer = nil
	if err = errors.Join(err, p.Stop()); err != nil {
		return fmt.Errorf("%s: %w\n%s", b.name(), err, b.Output())
	}
	return nil
}

// Kill ends the broker with SIGKILL.
func (b *Broker) Kill() {
	if b.peer != nil {
		b.peer.Kill()
		b.peer, b.paused = nil, false
	}
}

// Pause stops the process where it stands (SIGSTOP): its connections stay, and nothing is answered.
func (b *Broker) Pause() error {
	if b.peer == nil {
		return fmt.Errorf("%s doesn't run", b.name())
	}
	b.paused = true
	return syscall.Kill(b.peer.Pid(), syscall.SIGSTOP)
}

// Resume lets a paused broker go on.
func (b *Broker) Resume() error {
	if b.peer == nil || !b.paused {
		return nil
	}
	b.paused = false
	return syscall.Kill(b.peer.Pid(), syscall.SIGCONT)
}
