package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/inplace"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

func (d *dev) inplaceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inplace",
		Short: "Have Apache Kafka " + peers.Kafka39Version + " and Barnabas take turns on one log directory",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return d.inplace(c.Context()) },
	}
}

// inplace plays the script on a directory and a ZooKeeper of its own.
func (d *dev) inplace(ctx context.Context) error {
	dir, cleanup, err := d.env.TempDir("inplace-")
	if err != nil {
		return err
	}
	defer cleanup()
	java, err := peers.Kafka39Jars(ctx, d.tools)
	if err != nil {
		return err
	}
	bin, err := d.tools.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return err
	}
	keeper, err := zktest.Start(ctx, zktest.Options{Dir: filepath.Join(dir, "zookeeper")})
	if err != nil {
		return err
	}
	defer func() { _ = keeper.Stop() }() // its files go, too
	port, err := peers.FreePort()
	if err != nil {
		return err
	}
	t := &inplaceSides{
		dev: d, dir: dir, java: java, bin: bin, keeper: keeper, port: port,
		properties: map[string]string{
			"broker.id": "1", "log.dirs": filepath.Join(dir, "kafka", "logs"),
			"group.initial.rebalance.delay.ms": "0",
			"offsets.topic.num.partitions":     "2", "offsets.topic.replication.factor": "1",
			"transaction.state.log.num.partitions": "2", "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
			"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": "4194304", "log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "100",
		},
	}
	return inplace.Play(ctx, inplace.Script{
		Addr:     t.addr(),
		Data:     t.properties["log.dirs"],
		Kafka:    inplace.Side{Name: "Kafka " + peers.Kafka39Version, Start: t.kafka},
		Barnabas: inplace.Side{Name: "Barnabas on ZooKeeper", Start: t.onZooKeeper},
		Alone:    inplace.Side{Name: "Barnabas alone", Start: t.alone},
		Move:     t.move,
		Verify:   t.verify,
		Say:      d.env.Say,
	})
}

// inplaceSides starts the brokers that take turns.
type inplaceSides struct {
	dev        *dev
	dir        string
	java       peers.Java
	bin        string
	keeper     *zktest.Ensemble
	port       int
	properties map[string]string // of all of them
}

func (t *inplaceSides) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.port)) }

func (t *inplaceSides) connect() string { return t.keeper.Connect() + "/inplace" }

func (t *inplaceSides) kafka(ctx context.Context) (*peers.Peer, error) {
	if err := t.unregistered(ctx); err != nil {
		return nil, err
	}
	p := maps.Clone(t.properties)
	p["zookeeper.session.timeout.ms"] = "6000"
	return peers.StartKafka39(ctx, t.java, peers.Kafka39Options{Dir: filepath.Join(t.dir, "kafka"), ID: 1, Port: t.port, ZooKeeper: t.connect(), Heap: "256M", Properties: p})
}

func (t *inplaceSides) onZooKeeper(ctx context.Context) (*peers.Peer, error) {
	if err := t.unregistered(ctx); err != nil {
		return nil, err
	}
	return t.barnabas(ctx, "on-zookeeper", fmt.Sprintf("election:\n  zookeeper:\n    connect: %q\n    session_timeout: 6s\n", t.connect()))
}

func (t *inplaceSides) alone(ctx context.Context) (*peers.Peer, error) {
	return t.barnabas(ctx, "alone", "election: standalone\n")
}

func (t *inplaceSides) barnabas(ctx context.Context, name, sections string) (*peers.Peer, error) {
	return target.StartBarnabas(ctx, t.bin, t.options(name, sections))
}

func (t *inplaceSides) options(name, sections string) target.Options {
	return target.Options{Dir: filepath.Join(t.dir, name), Addr: t.addr(), Properties: t.properties, Sections: sections}
}

// move takes what ZooKeeper has of the cluster to the broker that is going to be alone.
func (t *inplaceSides) move(ctx context.Context) error {
	if err := t.unregistered(ctx); err != nil {
		return err
	}
	// Made for its configuration alone.
	if _, err := target.BarnabasCommand(t.bin, t.options("alone", "election: standalone\n")); err != nil {
		return err
	}
	conf := func(name string) string { return filepath.Join(t.dir, name, "barnabas.yaml") }
	out, err := t.dev.env.Output(ctx, task.Command{Args: []string{t.bin, "coordination", "copy", "--from", conf("on-zookeeper"), "--to", conf("alone")}})
	if err != nil {
		return fmt.Errorf("coordination copy: %w\n%s", err, out)
	}
	return nil
}

// verify reads the directory with the command that people read theirs with.
func (t *inplaceSides) verify(ctx context.Context) error {
	out, err := t.dev.env.Output(ctx, task.Command{Args: []string{t.bin, "log", "verify", "--deep", t.properties["log.dirs"]}})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// unregistered waits until the broker before isn't in ZooKeeper any more: of one that was killed, the session has to end.
func (t *inplaceSides) unregistered(ctx context.Context) error {
	servers, _, _ := strings.Cut(t.keeper.Connect(), "/")
	conn, _, err := zk.Connect(strings.Split(servers, ","), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		there, _, err := conn.Exists("/inplace/brokers/ids/1")
		if err == nil && !there {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the broker before is still registered in ZooKeeper (%v): %w", err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
