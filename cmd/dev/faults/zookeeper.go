package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults/network"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// zookeeperSession is how long the brokers' sessions with ZooKeeper last without a word.
const zookeeperSession = 3 * time.Second

// zookeeper is a cluster's coordination through servers of its own.
type zookeeper struct {
	network *network.Network
	servers *zktest.Ensemble
	root    string // the path below which the cluster keeps its nodes
}

func zooName(s *zktest.Server) string { return fmt.Sprintf("zookeeper %d", s.ID) }

func (z *zookeeper) wire(b *Broker) error {
	var servers []string
	for _, s := range z.servers.Servers() {
		g, err := z.network.Gate(b.name(), zooName(s), s.Addr)
		if err != nil {
			return err
		}
		servers = append(servers, g.Addr())
	}
	b.zookeeper = strings.Join(servers, ",") + z.root
	b.election = func() string {
		return fmt.Sprintf("zookeeper:\n    connect: %q\n    session_timeout: %s\n    connection_timeout: 30s\n", b.zookeeper, zookeeperSession)
	}
	return nil
}

func (z *zookeeper) session() time.Duration { return zookeeperSession }

func (z *zookeeper) cut(b *Broker) {
	for _, s := range z.servers.Servers() {
		z.network.Cut(b.name(), zooName(s))
	}
}

// delay leaves ZooKeeper as quick as it is: "slow" is about brokers.
func (z *zookeeper) delay(func() time.Duration) {}

func (z *zookeeper) killLeader(ctx context.Context, f *Field) (again func(context.Context) error, err error) {
	s, err := z.servers.Leader(ctx)
	if err != nil {
		return nil, err
	}
	f.Say("ZooKeeper's leader, server %d, is killed", s.ID)
	return s.Start, s.Kill()
}

func (z *zookeeper) stall(f *Field) (resume func() error, err error) {
	f.Say("ZooKeeper is paused")
	resume = func() (err error) {
		for _, s := range z.servers.Servers() {
			err = errors.Join(err, s.Resume())
		}
		return err
	}
	for _, s := range z.servers.Servers() {
		if err := s.Pause(); err != nil {
			return resume, err
		}
	}
	return resume, nil
}

func (z *zookeeper) mend(ctx context.Context) error {
	var errs []error
	for _, s := range z.servers.Servers() {
		errs = append(errs, s.Resume())
		if !s.Running() {
			errs = append(errs, s.Start(ctx))
		}
	}
	return errors.Join(errs...)
}
