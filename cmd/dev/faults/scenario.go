package faults

import (
	"context"
	"errors"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// Scenario is one way of breaking a cluster.
type Scenario struct {
	Name  string
	About string
	Short bool // whether it is one of those that every change has to pass, on ZooKeeper
	Lean  bool // and whether it is one of those on memberlist: fewer, as brokers do there what they do elsewhere
	// Voters says that the brokers vote themselves: it is about memberlist alone.
	Voters bool
	// Minority says that what is left is less than a majority of the brokers, and has to go on all the same: on memberlist it doesn't.
	Minority bool
	Brokers  int // how many there are; 0 is three
	Votes    int // how many of them vote at first, on memberlist; 0 is three
	// Stale says that leaders are deposed here without knowing it: until they do they answer readers in good faith, as in Apache
	// Kafka, and what they tell as a partition's end may lie behind the times.
	Stale bool
	// Finds is what has to be found: a scenario that breaks a promise on purpose, to see that it would be noticed.
	Finds history.Kind
	Load  func(*verify.Options) // changes the load; may be nil
	Break func(ctx context.Context, f *Field) error
}

// Runs says whether the scenario is run on memberlist, or on ZooKeeper, when all are, or those that every change has to pass.
func (s Scenario) Runs(memberlist, all bool) bool {
	switch {
	case s.Voters && !memberlist, s.Minority && memberlist:
		return false
	case all:
		return true
	case memberlist:
		return s.Lean
	}
	return s.Short
}

// Scenarios are all of them, in the order in which they are run.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "leader", About: "leaders are killed (kill -9)", Short: true, Lean: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 5), func() error { return killed(ctx, f, f.leader) })
		}},
		{Name: "controller", About: "controllers are killed (kill -9)", Short: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 5), func() error { return killed(ctx, f, f.Controller) })
		}},
		{Name: "both", About: "a leader and the controller are killed at the same time", Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 5), func() error { return killedBoth(ctx, f) })
		}},
		{Name: "transactions", About: "leaders and controllers are killed while records are written in transactions", Short: true,
			Load: func(o *verify.Options) { o.Transactions = true },
			Break: func(ctx context.Context, f *Field) error {
				return again(ctx, f, f.times(1, 4), func() error { return errors.Join(killed(ctx, f, f.leader), killed(ctx, f, f.Controller)) })
			}},
		{Name: "quick", About: "a broker is killed and is back before its session has ended", Short: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 6), func() error {
				b := f.anyOf(f.Brokers)
				f.Say("%s is killed, and back at once", b.name())
				b.Kill()
				return b.Start(ctx)
			})
		}},
		{Name: "zombie", About: "a leader is paused until it is none any more, and goes on (SIGSTOP)", Short: true, Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 5), func() error { return paused(ctx, f, f.leader) })
		}},
		{Name: "paused-controller", About: "a controller is paused until it is none any more, and goes on", Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 3), func() error { return paused(ctx, f, f.Controller) })
		}},
		{Name: "follower", About: "a follower is killed, and one is paused", Break: func(ctx context.Context, f *Field) error {
			follower := func(ctx context.Context) (*Broker, error) {
				b, err := f.leader(ctx)
				return f.anyOf(f.others(b)), err
			}
			return again(ctx, f, f.times(1, 3), func() error { return errors.Join(killed(ctx, f, follower), paused(ctx, f, follower)) })
		}, Stale: true},
		{Name: "cut", About: "a leader is cut from the other brokers, and not from the coordination and clients", Short: true, Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 4), func() error { return cutFromBrokers(ctx, f) })
		}},
		{Name: "one-way", About: "what a broker sends to another one doesn't arrive, the other way it does", Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 4), func() error { return cutOneWay(ctx, f) })
		}, Stale: true},
		{Name: "no-coordination", About: "a leader is cut from the coordination until its session has ended, and not from the others", Short: true, Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 3), func() error { return cutFromCoordination(ctx, f, f.leader, false) })
		}},
		{Name: "alone", About: "a leader is cut from the coordination and all brokers, and clients still reach it", Short: true, Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 3), func() error { return cutFromCoordination(ctx, f, f.leader, true) })
		}},
		{Name: "raft-alone", About: "the leader of raft is cut from the coordination and all brokers, and clients still reach it", Voters: true, Lean: true, Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 4), func() error { return cutFromCoordination(ctx, f, f.raftLeader, true) })
		}},
		{Name: "raft-one-way", About: "nothing comes from the leader of raft to one of its peers, then nothing from a peer to it", Voters: true, Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 3), func() error { return raftOneWay(ctx, f) })
		}},
		{Name: "replaced", About: "a voter dies for good, and a new broker takes its vote and its replicas", Voters: true, Lean: true, Break: replaced},
		{Name: "recovered", About: "all brokers are killed, two of three voters lose their stores, and the cluster is recovered from the third", Voters: true, Break: recovered},
		{Name: "five", About: "of five brokers, three of which vote, are killed: one that follows, one that votes, the leader of raft, the controller", Voters: true, Lean: true, Brokers: 5,
			Load: func(o *verify.Options) { o.Replication = 3 }, Break: five},
		{Name: "votes", About: "one of five brokers votes, then three do, then all, then three and one again, and what would lose the majority is refused", Voters: true, Lean: true, Brokers: 5, Votes: 1, Break: votes},
		{Name: "slow", About: "everything between the brokers takes its time", Break: slow},
		{Name: "coordination-leader", About: "the leader of the coordination is killed: ZooKeeper's, or raft's", Break: coordinationLeader},
		{Name: "coordination-down", About: "nothing is decided any more, and records flow on", Short: true, Lean: true, Break: coordinationDown},
		{Name: "everybody", About: "all brokers are killed at the same time, and started again", Lean: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 4), func() error { return everybody(ctx, f) })
		}},
		{Name: "rolling", About: "one broker after the other is stopped and started", Short: true, Break: func(ctx context.Context, f *Field) error {
			for range f.times(1, 2) {
				for _, b := range f.Brokers {
					f.Say("%s is stopped and started", b.name())
					if err := errors.Join(b.Stop(), f.goesOn(ctx, patience), b.Start(ctx), f.whole(ctx)); err != nil {
						return err
					}
				}
			}
			return nil
		}},
		{Name: "reassign", About: "replicas are moved about under load", Break: reassigned},
		{Name: "torn", About: "a broker is killed, and the ends of its files are gone when it comes back", Short: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 5), func() error { return torn(ctx, f) })
		}},
		{Name: "full", About: "a broker's disk is full: its logs fail, and others lead on", Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(1, 3), func() error { return full(ctx, f) })
		}},
		{Name: "group", About: "the coordinators of a consumer group are killed while it reads and commits", Short: true, Break: coordinatorKilled},
		{Name: "diverged", About: "a leader that took what its follower hasn't got dies, and comes back as the follower of that one", Short: true, Break: diverged},
		{Name: "twin", About: "a second broker with the id of a living one is refused", Short: true, Break: twin},
		{Name: "unsafe", About: "leaders are elected that haven't got everything, which the topic allows: must be noticed", Short: true, Minority: true, Stale: true, Finds: history.Lost,
			Load: func(o *verify.Options) {
				o.MinInSync, o.Configs = 1, map[string]string{"unclean.leader.election.enable": "true"}
			}, Break: unsafe},
		{Name: "random", About: "anything of this, as chance will have it", Stale: true, Break: func(ctx context.Context, f *Field) error {
			return again(ctx, f, f.times(4, 25), func() error { return anything(ctx, f) })
		}},
	}
}

// tolerate are the kinds of faults that are none here.
func (s Scenario) tolerate() []history.Kind {
	if s.Stale {
		return []history.Kind{history.Stale}
	}
	return nil
}

// again does something so many times, and sees that all is well in between.
func again(ctx context.Context, f *Field, times int, do func() error) error {
	for range times {
		if err := do(); err != nil {
			return err
		}
		if err := f.whole(ctx); err != nil {
			return err
		}
		if !pause(ctx, time.Duration(f.Random.Int64N(int64(time.Second)))) {
			return ctx.Err()
		}
	}
	return nil
}
