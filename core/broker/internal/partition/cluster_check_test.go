package partition

import (
	"context"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// leads notes who leads under an epoch: nobody else ever does.
func (c *cluster) leads(id ID, epoch, leader int32) {
	c.t.Helper()
	key := fmt.Sprint(id, epoch)
	if was, ok := c.leaders[key]; ok && was != leader {
		c.t.Errorf("%v, epoch %d: led by %d and by %d", id, epoch, was, leader)
		c.t.FailNow()
	}
	c.leaders[key] = leader
}

// committedUpTo notes what a leader takes for committed: it never changes, for anybody.
func (c *cluster) committedUpTo(n *node, r *replica) {
	c.t.Helper()
	key := fmt.Sprint(r.id, r.state.LeaderEpoch, n.id)
	require.GreaterOrEqual(c.t, r.state.hw, c.highest[key], "%v: the high watermark of leader %d went back", r.id, n.id)
	c.highest[key] = r.state.hw
	require.LessOrEqual(c.t, r.state.hw, r.log.end(), "%v: committed beyond the end of the log of %d", r.id, n.id)
	c.agrees(n, r.id, r.log, r.state.hw)
	if known := int64(len(c.committed[r.id])); r.state.hw > known && !c.lost[r.id] {
		c.committed[r.id] = append(c.committed[r.id], r.log.entries[known:r.state.hw]...)
	}
}

// agrees sees that a log has what is committed, up to an offset.
func (c *cluster) agrees(n *node, id ID, l *trail, upTo int64) {
	c.t.Helper()
	if c.lost[id] {
		return
	}
	upTo = min(upTo, int64(len(c.committed[id])))
	if l.end() < upTo || !slices.Equal(l.entries[:upTo], c.committed[id][:upTo]) {
		c.t.Errorf("%v: broker %d doesn't have what was committed up to %d:\n%v", id, n.id, upTo, c)
		c.t.FailNow()
	}
}

// acknowledged notes what a client was told: its record is committed at that offset.
func (c *cluster) acknowledged(id ID, w produced) {
	c.acked[id] = append(c.acked[id], w)
}

// check sees that what must always hold does.
func (c *cluster) check() {
	c.t.Helper()
	for id, p := range c.states() {
		if p.State == nil {
			continue
		}
		st := p.State
		require.NotEmpty(c.t, st.ISR, "%v", id)
		for _, b := range st.ISR {
			require.Contains(c.t, p.Replicas, b, "%v: in sync, and no replica", id)
		}
		if st.Leader != election.NoBroker {
			require.Contains(c.t, st.ISR, st.Leader, "%v: its leader isn't in sync", id)
			c.leads(id, st.LeaderEpoch, st.Leader)
		}
		// Whoever may become leader has everything that is committed.
		for _, b := range st.ISR {
			if l := c.nodes[b].disk[id]; l != nil {
				c.agrees(c.nodes[b], id, l, int64(len(c.committed[id])))
			} else if len(c.committed[id]) > 0 && !c.lost[id] {
				c.t.Errorf("%v: broker %d is in sync, and has no log\n%v", id, b, c)
				c.t.FailNow()
			}
		}
	}
	for _, n := range c.order {
		for _, id := range c.ids {
			if l := c.nodes[n].disk[id]; l != nil {
				require.LessOrEqual(c.t, l.hw, l.end(), "%v: broker %d", id, n)
				c.agrees(c.nodes[n], id, l, l.hw)
			}
		}
	}
	for id, all := range c.acked {
		for _, w := range all {
			if c.lost[id] {
				continue
			}
			if w.offset >= int64(len(c.committed[id])) || c.committed[id][w.offset].value != w.value {
				c.t.Errorf("%v: record %d was acknowledged at %d, and isn't committed there:\n%v", id, w.value, w.offset, c)
				c.t.FailNow()
			}
		}
	}
}

// heal makes everything work again, and sees that the cluster comes to rest with all replicas in sync and alike, and takes records.
func (c *cluster) heal() {
	c.t.Helper()
	c.dieAt = 0
	clear(c.cut)
	for _, id := range c.order {
		if c.nodes[id].stopping {
			c.kill(id)
		}
		c.nodes[id].held = false
		c.start(id)
	}
	for round := range 80 {
		c.now = c.now.Add(maxLag / 4)
		for _, id := range c.order {
			c.notice(id)
		}
		if c.office == nil {
			if who, _, err := c.nodes[c.order[0]].member.Election().Controller(context.Background()); err == nil && who != election.NoBroker {
				c.expire(who)
				c.notice(who)
			}
			c.elect(c.order[round%len(c.order)])
		}
		c.look(false)
		for _, id := range c.order {
			for range 10 {
				if c.office != nil {
					c.office.deliver(id, true)
				}
			}
			for _, p := range c.ids {
				n := c.nodes[id]
				n.receive(p)
				n.fetch(p)
				n.receive(p)
				n.fetch(p)
				n.receive(p)
				n.alter(p)
				n.altered(p)
			}
			c.nodes[id].tick()
		}
		c.check()
	}
	states := c.states()
	for _, id := range c.ids {
		p := states[id]
		require.NotNil(c.t, p.State, "%v", id)
		require.Empty(c.t, p.Adding, "%v moves on for ever\n%v", id, c)
		require.Empty(c.t, p.Removing, "%v moves on for ever\n%v", id, c)
		require.ElementsMatch(c.t, p.Replicas, p.State.ISR, "%v: not all in sync\n%v", id, c)
		require.NotEqual(c.t, election.NoBroker, p.State.Leader, "%v", id)
		leader := c.nodes[p.State.Leader]
		require.True(c.t, leader.produce(id, true), "%v: its leader takes nothing\n%v", id, c)
		for range 3 {
			for _, b := range p.Replicas {
				c.nodes[b].fetch(id)
				c.nodes[b].receive(id)
			}
		}
		require.NotEmpty(c.t, c.acked[id])
		require.Equal(c.t, c.values, c.acked[id][len(c.acked[id])-1].value, "%v: not acknowledged\n%v", id, c)
		want := leader.disk[id]
		for _, b := range p.Replicas {
			require.Equal(c.t, want.entries, c.nodes[b].disk[id].entries, "%v: %d and %d differ", id, b, leader.id)
		}
		for _, n := range c.order {
			// What a broker wasn't told to delete, because the controller or its session ended on the way, it keeps, as in Kafka.
			if r := c.nodes[n].replicas[id]; r != nil && c.steady {
				require.Contains(c.t, p.Replicas, n, "%v: a replica on %d is left over", id, n)
			}
		}
	}
	c.check()
}
