package gossip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Faults of servers and networks. What happens in which order is never a matter of speed here: tests wait for what must come, and check that
// what mustn't be never is.

// quick are timings for tests in which sessions and leaders are lost on purpose.
func (g *group) quick() *group {
	g.timings.Session = 2 * time.Second
	g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	return g
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, why string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, patience, 10*time.Millisecond, why)
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// leader waits until somebody leads, and gives its coordination.
func leader(t testing.TB, all []*coordination, but ...*coordination) *coordination {
	t.Helper()
	var found *coordination
	eventually(t, "nobody leads", func() bool {
		for _, c := range all {
			c.mu.Lock()
			node := c.node
			c.mu.Unlock()
			if node != nil && node.Leads() && (len(but) == 0 || c != but[0]) {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

// other is one of the coordinations that isn't c.
func other(all []*coordination, c *coordination) *coordination {
	for _, o := range all {
		if o != c {
			return o
		}
	}
	return nil
}

func (c *coordination) broker(n int32) election.Broker {
	return election.Broker{ID: n, Endpoints: []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9000 + n}}}
}

// register registers until it succeeds, as a broker does.
func register(t testing.TB, c *coordination, n int32) election.Registration {
	t.Helper()
	for ctx := within(t); ; {
		r, err := c.Membership().Register(ctx, c.broker(n))
		if err == nil {
			return r
		}
		require.ErrorIs(t, err, election.ErrUnavailable)
	}
}

func newTopic(name string, n byte) election.NewTopic {
	return election.NewTopic{Name: name, ID: election.TopicID{n}, Partitions: []election.Assignment{{Replicas: []int32{1}}}}
}

// TestCutOffController cuts a controller off from everybody: as a server that follows, and as raft's leader. It knows that its term is over before
// anybody else's begins, can't write, and comes back as itself.
func TestCutOffController(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leads raft %v", leads), func(t *testing.T) {
			t.Parallel()
			g := newGroup(t).quick()
			g.proxied = true
			all := g.voters(3)
			first := leader(t, all)
			if !leads {
				first = other(all, first)
			}
			next := other(all, first)
			term, err := first.Campaign(within(t), 1)
			require.NoError(t, err)
			registration := register(t, first, 1)
			register(t, next, 2)

			won := make(chan election.Term, 1)
			ctx := within(t)
			go func() {
				if successor, err := next.Campaign(ctx, 2); err == nil {
					if !isClosed(term.Lost()) {
						t.Error("two controllers at a time")
					}
					won <- successor
				}
			}()
			server := first.server.id()
			g.cut(server, true, true)
			var successor election.Term
			select {
			case successor = <-won:
			case <-ctx.Done():
				require.Fail(t, "nobody followed the controller that was cut off")
			}
			require.Greater(t, successor.Epoch(), term.Epoch())
			require.True(t, isClosed(registration.Lost()))
			_, err = first.Metadata().CreateTopics(ctx, term.Epoch(), []election.NewTopic{newTopic("lost", 1)})
			require.ErrorIs(t, err, election.ErrUnavailable, "without a majority nothing is written")
			brokers, err := next.Membership().Brokers(ctx)
			require.NoError(t, err)
			for _, b := range brokers {
				require.NotEqual(t, int32(1), b.ID, "who is cut off counts as dead")
			}

			g.cut(server, false, false)
			again := register(t, first, 1)
			require.Greater(t, again.Epoch(), registration.Epoch())
			eventually(t, "the old epoch never gets stale", func() bool {
				_, err := first.Metadata().CreateTopics(ctx, term.Epoch(), []election.NewTopic{newTopic("lost", 1)})
				return errors.Is(err, election.ErrStaleController)
			})
			topics, err := first.Metadata().Topics(ctx)
			require.NoError(t, err)
			require.Empty(t, topics)
		})
	}
}

// TestLeaderIsMissed cuts raft's leader off from the other four of five brokers, of which three vote: nobody else loses a registration, as another one
// leads before the sessions are in doubt. All timings are those of the profile lan three times over, so that a busy machine has time.
func TestLeaderIsMissed(t *testing.T) {
	t.Parallel()
	for range 3 { // it is a matter of chance when raft would notice
		t.Run("", func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			lan, ok := profile("lan")
			require.True(t, ok)
			g.timings.Session, g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 3*lan.Session, 3*lan.Heartbeat, 3*lan.Election, 3*lan.Lease
			g.proxied = true
			voters := g.voters(3)
			all := append(slices.Clone(voters), g.run(4), g.run(5))
			registrations := map[*coordination]election.Registration{}
			for i, c := range all {
				registrations[c] = register(t, c, int32(i+1))
				time.Sleep(g.timings.Session / 4 / time.Duration(len(all))) // so that each was heard of last at another time
			}
			dead := leader(t, voters)
			g.cut(dead.server.id(), true, true)
			next := leader(t, voters, dead)
			time.Sleep(g.timings.Session) // as long as no session lasts that hasn't been kept since
			require.True(t, isClosed(registrations[dead].Lost()))
			require.Same(t, next, leader(t, voters, dead))
			for i, c := range all {
				require.Equal(t, c == dead, isClosed(registrations[c].Lost()), "the registration of broker %d is lost, or isn't", i+1)
			}
		})
	}
}

// TestOnlyVotersProveWhoLeads cuts raft's leader off from the two others that vote, and not from two that follow: these answer it, and it may not read for
// all that, as others could lead by then. Raft would let it.
func TestOnlyVotersProveWhoLeads(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 2*time.Second, 2*time.Second, 2*time.Second
	g.proxied = true
	voters := g.voters(3)
	register(t, g.run(4), 4)
	register(t, g.run(5), 5)
	first := leader(t, voters)
	require.NoError(t, first.node.Sync(within(t)))
	g.mu.Lock()
	for _, c := range voters {
		if c != first {
			g.link(c.server.id(), first.server.id()).set(true)
			g.link(first.server.id(), c.server.id()).set(true)
		}
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(within(t), g.timings.Lease/2)
	defer cancel()
	require.ErrorIs(t, first.node.Sync(ctx), context.DeadlineExceeded)
}

// TestWronglyDead cuts the way from a broker to the others only, so that they reach it and don't hear of it: it is taken for dead, and registers
// again as soon as it is heard.
func TestWronglyDead(t *testing.T) {
	t.Parallel()
	g := newGroup(t).quick()
	g.proxied = true
	all := g.voters(3)
	silent := other(all, leader(t, all))
	r := register(t, silent, 1)
	g.cut(silent.server.id(), false, true)
	select {
	case <-r.Lost():
	case <-within(t).Done():
		require.Fail(t, "a registration that nobody keeps isn't lost")
	}
	eventually(t, "it isn't taken for dead", func() bool {
		brokers, err := leader(t, all).Membership().Brokers(within(t))
		return err == nil && len(brokers) == 0
	})
	g.cut(silent.server.id(), false, false)
	require.Greater(t, register(t, silent, 1).Epoch(), r.Epoch())
}

// TestLeadingIsTold waits for a server to lead as those do who have to do something then: they look again whenever they are told to.
func TestLeadingIsTold(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.timings.Heartbeat, g.timings.Election, g.timings.Lease = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	node := g.voters(1)[0].node
	ctx := within(t)
	for {
		changed := node.Changed()
		if node.Leads() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			require.Fail(t, "it leads, and nobody was told", "leads: %v", node.Leads())
		}
	}
}

// TestContenders has all servers campaign, resign and campaign again, while raft's leader changes: no two of them ever hold a
// term at a time, nor an epoch twice.
func TestContenders(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	all := g.voters(3)
	leader(t, all)
	ctx := within(t)
	var mu sync.Mutex
	var holder election.Term
	epochs := map[int32]bool{}
	var contending sync.WaitGroup
	for i, c := range all {
		contending.Go(func() {
			for range 15 {
				term, err := c.Campaign(ctx, int32(i))
				if err != nil {
					t.Errorf("campaign: %v", err)
					return
				}
				mu.Lock()
				if holder != nil && !isClosed(holder.Lost()) {
					t.Error("two terms at a time")
				}
				if epochs[term.Epoch()] {
					t.Errorf("epoch %d is given twice", term.Epoch())
				}
				holder, epochs[term.Epoch()] = term, true
				mu.Unlock()
				_ = term.Resign(ctx) // what failed is done in the background
			}
		})
	}
	done := make(chan struct{})
	go func() { contending.Wait(); close(done) }()
	for changes := 0; ; {
		if leader(t, all).node.TransferLeadership(ctx) == nil {
			changes++
		}
		select {
		case <-done:
			require.Positive(t, changes)
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestLeaderChanges writes and reads through every server while raft's leader is another one all the time, and one server stops and starts. What
// was acknowledged is there, and what failed is there or isn't.
func TestLeaderChanges(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	all := g.voters(3)
	follower := g.run(4)
	ctx := within(t)
	var term election.Term
	write := func(c *coordination, do func(epoch int32) error) bool {
		for {
			if term == nil || isClosed(term.Lost()) {
				var err error
				term, err = all[0].Campaign(ctx, 1)
				require.NoError(t, err)
			}
			err := do(term.Epoch())
			switch {
			case err == nil:
				return true
			case errors.Is(err, election.ErrStaleController):
			case errors.Is(err, election.ErrUnavailable):
				return false
			default:
				require.NoError(t, err)
			}
		}
	}
	for !write(all[0], func(epoch int32) error {
		_, err := all[0].Metadata().CreateTopics(ctx, epoch, []election.NewTopic{newTopic("a", 1)})
		return err
	}) {
	}
	stop, changing := make(chan struct{}), sync.WaitGroup{}
	changing.Go(func() {
		for !isClosed(stop) {
			_ = leader(t, all).node.TransferLeadership(ctx)
			select {
			case <-stop:
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	at, acknowledged, changes := int32(-1), 0, 0
	for i := 0; i < 200; i++ {
		c := []*coordination{all[0], all[1], all[2], follower}[i%4]
		done := write(c, func(epoch int32) error {
			results, err := c.Metadata().UpdatePartitions(ctx, epoch, []election.PartitionUpdate{{Topic: "a", State: election.PartitionState{Leader: int32(i), PartitionEpoch: at}}})
			if err == nil {
				err = results[0].Err
			}
			return err
		})
		reader := all[(i+1)%3]
		var topics []election.Topic
		for {
			var err error
			if topics, err = reader.Metadata().Topics(ctx, "a"); err == nil {
				break
			}
			require.ErrorIs(t, err, election.ErrUnavailable)
		}
		require.Len(t, topics, 1)
		state := topics[0].Partitions[0].State
		now := int32(-1)
		if state != nil {
			now = state.PartitionEpoch
		}
		if done {
			acknowledged++
			require.Equal(t, at+1, now, "what was acknowledged isn't seen, or was done twice")
			require.Equal(t, int32(i), state.Leader)
		} else {
			require.Contains(t, []int32{at, at + 1}, now)
		}
		at = now
		if i%20 == 19 {
			changes++
		}
	}
	close(stop)
	changing.Wait()
	require.Positive(t, acknowledged)
}

// TestQuorumLost stops two of three servers: the third decides nothing and says so, until they are back, with all that was.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	g := newGroup(t).quick()
	all := g.voters(3)
	ctx := within(t)
	term, err := all[0].Campaign(ctx, 1)
	require.NoError(t, err)
	var written []election.Config
	for i := range 100 {
		written = append(written, election.Config{Entity: election.Entity{Kind: election.BrokerEntity, Name: fmt.Sprint(i)}, Values: map[string]string{"k": "v"}})
	}
	eventually(t, "nothing can be written", func() bool {
		if isClosed(term.Lost()) {
			term, err = all[0].Campaign(ctx, 1)
			require.NoError(t, err)
		}
		_, err := all[0].Metadata().SetConfigs(ctx, term.Epoch(), written)
		return err == nil
	})
	require.NoError(t, all[1].Stop(ctx))
	require.NoError(t, all[2].Stop(ctx))
	select {
	case <-term.Lost():
	case <-ctx.Done():
		require.Fail(t, "a term that nobody keeps isn't lost")
	}
	read := make(chan error, 1)
	go func() { _, err := all[0].Metadata().Topics(ctx); read <- err }()
	_, err = all[0].Membership().NewBrokerID(ctx)
	require.ErrorIs(t, err, election.ErrUnavailable)
	require.ErrorIs(t, <-read, election.ErrUnavailable)

	all[1] = g.run(2)
	all[2] = g.run(3)
	term, err = all[1].Campaign(ctx, 2)
	require.NoError(t, err)
	var configs []election.Config
	eventually(t, "the configurations can't be read", func() bool {
		configs, err = all[0].Metadata().Configs(ctx)
		return err == nil
	})
	require.Len(t, configs, 100)
	require.Greater(t, term.Epoch(), int32(1))
}

// abandon ends a coordination without a word, as a crash would.
func (c *coordination) abandon(t testing.TB) {
	c.mu.Lock()
	c.node, c.stopped = nil, true
	c.endSession(c.session)
	c.mu.Unlock()
	c.end()
	c.running.Wait()
	require.NoError(t, c.server.close(context.Background()))
}

// TestComesBackAtOnce starts a broker that has crashed again before anybody has missed it: its registration and its term were those of
// the process that is gone, so it needn't wait for their end.
func TestComesBackAtOnce(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.timings.Session = time.Hour
	g.voters(3)
	crashed := g.coordination(4)
	require.NoError(t, crashed.Start(within(t)))
	before := register(t, crashed, 4)
	term, err := crashed.Campaign(within(t), 4)
	require.NoError(t, err)
	crashed.abandon(t)
	again := g.run(4)
	require.Greater(t, register(t, again, 4).Epoch(), before.Epoch())
	next, err := again.Campaign(within(t), 4)
	require.NoError(t, err)
	require.Greater(t, next.Epoch(), term.Epoch())
}

// TestSnapshots writes more than the log may hold, so that a server which comes later, and one which was away, get a snapshot and not the
// entries; and starts everybody again, from their snapshots.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.timings.Snapshot = 20 * time.Millisecond
	all := g.voters(3)
	ctx := within(t)
	term, err := all[0].Campaign(ctx, 1)
	require.NoError(t, err)
	entity := func(i int) election.Entity { return election.Entity{Kind: election.BrokerEntity, Name: fmt.Sprint(i)} }
	written := 0
	write := func(until func() bool) {
		for again := false; !until(); {
			errs, err := all[0].Metadata().SetConfigs(ctx, term.Epoch(), []election.Config{{Entity: entity(written), Values: map[string]string{"k": "v"}}})
			if errors.Is(err, election.ErrUnavailable) { // another one leads, on a machine that is busy: it may have been written
				again = true
				continue
			}
			require.NoError(t, err)
			if !again || !errors.Is(errs[0], election.ErrConflict) {
				require.NoError(t, errs[0])
			}
			written, again = written+1, false
		}
	}
	away := g.coordination(4)
	require.NoError(t, away.Start(ctx))
	require.NoError(t, away.node.Sync(ctx))
	require.NoError(t, away.Stop(ctx))
	first := leader(t, all)
	write(func() bool { return written >= 200 && first.node.Status().Snapshot > 150 })
	for _, c := range []*coordination{g.run(4), g.run(5)} {
		configs, err := c.Metadata().Configs(ctx)
		require.NoError(t, err)
		require.Len(t, configs, written)
	}
	for _, c := range all {
		require.NoError(t, c.Stop(ctx))
	}
	for i := range all {
		all[i] = g.run(i + 1)
	}
	eventually(t, "what was written isn't back", func() bool {
		configs, err := all[1].Metadata().Configs(ctx)
		return err == nil && len(configs) == written
	})
}
