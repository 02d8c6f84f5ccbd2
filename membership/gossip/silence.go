package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// This file is how a server that is stopped finds out who of its cluster runs.

// silentAfter is how long somebody may take to answer who then counts as gone.
const silentAfter = 5 * time.Second

// hear asks all servers that this one's store and configuration name for what they know, and gives the answers, in the order of their addresses.
// Whom nobody answers for isn't among them. ErrNotNow when somebody is there and refuses to say.
func (o *offline) hear(ctx context.Context) ([]Status, error) {
	var addresses []string
	if o.stored != nil {
		for _, s := range o.stored.Servers {
			if s.ID != o.id {
				addresses = append(addresses, s.Address)
			}
		}
	}
	if p, ok := o.h.company.(*peers); ok {
		addresses = append(addresses, p.plan.Join...)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	d := port.Dialer{Name: o.h.cluster, Keys: o.h.keys, TLS: o.h.clientTLS}
	client := rpc.NewClient(func(ctx context.Context, server, address string) (net.Conn, error) {
		return d.Dial(ctx, port.Commands, member.ServerID(server), address)
	})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	answers, errs := make([]Status, len(addresses)), make([]error, len(addresses))
	var asking sync.WaitGroup
	for i, address := range addresses {
		asking.Go(func() { errs[i] = client.Call(ctx, "", address, methodStatus, nil, &answers[i]) })
	}
	asking.Wait()
	var heard []Status
	for i, err := range errs {
		switch {
		case err == nil:
			heard = append(heard, answers[i])
		case errors.Is(err, port.ErrRefused):
			return nil, fmt.Errorf("%w: somebody at %s doesn't say who it is: %w", ErrNotNow, addresses[i], err)
		}
	}
	return heard, nil
}

// othersAreGone sees that nobody answers who belongs to this server's cluster, or to one that took its place. It names those that have
// no store and wait for a cluster.
func (o *offline) othersAreGone(ctx context.Context) (waiting []string, err error) {
	heard, err := o.hear(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range heard {
		who := fmt.Sprintf("broker %s, server %s at %s,", s.Broker, s.Server, s.Address)
		switch cluster := member.ClusterID(s.RaftCluster); {
		case cluster == "":
			waiting = append(waiting, s.Server+" at "+s.Address)
		case s.Server == o.id:
			return nil, fmt.Errorf("%w: %s runs with a copy of this directory", ErrNotNow, who)
		case cluster != o.cluster:
			return nil, fmt.Errorf("%w: %s is of the raft cluster %s, this store of %s: if the cluster was recovered there, set this store aside (coordination reset), and the broker joins it",
				ErrNotNow, who, cluster, o.cluster)
		case s.Leader != "":
			return nil, fmt.Errorf("%w: %s has a leader, %s: a majority of the voters is there, start this broker", ErrNotNow, who, s.Leader)
		default:
			return nil, fmt.Errorf("%w: %s runs, and would go on with the former cluster: if a majority of the voters can be started, start them; otherwise stop it first", ErrNotNow, who)
		}
	}
	return waiting, nil
}
