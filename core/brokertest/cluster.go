package brokertest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Cluster is several brokers in one process that share a coordination in memory. Its brokers stop with the test, each as Stop
// does: the last one first.
type Cluster struct {
	// Memory is the coordination. What it keeps outlives the brokers.
	Memory *electiontest.Memory
	// Brokers are the brokers, with ids from 1: broker N is Brokers[N-1].
	Brokers []*Broker

	mu      sync.Mutex
	members map[int32]election.Coordination // the last one of each broker
}

// StartCluster starts n brokers, one after the other, and ends the test when that fails. The options are for all of them; a
// storage and an offsets store have to be among them, and what they say of the election doesn't count. Internal topics have
// as many replicas as there are brokers, at most three. Each broker has a rack of its own: broker N is in rack-N.
func StartCluster(t testing.TB, n int, options ...Option) *Cluster {
	t.Helper()
	c := &Cluster{Memory: electiontest.NewMemory(), members: map[int32]election.Coordination{}}
	replicas := strconv.Itoa(min(n, 3))
	for id := 1; id <= n; id++ {
		all := append([]Option{
			Property("offsets.topic.replication.factor", replicas),
			Property("transaction.state.log.replication.factor", replicas),
			Property("transaction.state.log.num.partitions", "3"),
			Property("broker.rack", "rack-"+strconv.Itoa(id)),
		}, options...)
		all = append(all, Property("broker.id", strconv.Itoa(id)), Election(c.factory(int32(id))))
		c.Brokers = append(c.Brokers, Start(t, all...))
	}
	return c
}

// Broker is the broker of that id.
func (c *Cluster) Broker(id int32) *Broker { return c.Brokers[id-1] }

// Addrs lists the addresses of all brokers, those that are stopped too, separated by commas.
func (c *Cluster) Addrs() string {
	addrs := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		addrs[i] = b.Addr()
	}
	return strings.Join(addrs, ",")
}

// Expire ends what a broker holds in the coordination, as the expiry of its session does. The broker is not asked.
func (c *Cluster) Expire(id int32) {
	c.mu.Lock()
	member := c.members[id]
	c.mu.Unlock()
	c.Memory.Expire(member)
}

// Controller is the id of the broker that is controller now, -1 when none is.
func (c *Cluster) Controller(ctx context.Context) (int32, error) {
	reader := c.Memory.Member()
	if err := reader.Start(ctx); err != nil {
		return -1, err
	}
	id, _, err := reader.Election().Controller(ctx)
	if stopErr := reader.Stop(ctx); err == nil {
		err = stopErr
	}
	return id, err
}

// factory makes the members of one broker: a new one each time it starts.
func (c *Cluster) factory(id int32) election.Factory {
	return plugin.NewFactory(fmt.Sprintf("memory-%d", id), "a coordination in memory, for tests", func() struct{} { return struct{}{} },
		func(struct{}, election.Settings) (election.Coordination, error) {
			member := c.Memory.Member()
			c.mu.Lock()
			c.members[id] = member
			c.mu.Unlock()
			return member, nil
		})
}
