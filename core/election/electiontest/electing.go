package electiontest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Clauses 1 and 2: who is controller, who is alive.

func checkEpochs(t TB, s *Subject) {
	c := s.member()
	last := int32(0)
	for range 3 {
		for range 3 {
			term := s.elect(c)
			require.Greater(t, term.Epoch(), last)
			last = term.Epoch()
			require.NoError(t, term.Resign(s.ctx))
		}
		s.elect(c) // ended by Stop
		last++
		c = s.again(c)
	}
}

func checkOneController(t TB, s *Subject) {
	c := s.member()
	first := s.elect(c)
	brief, cancel := s.briefly()
	defer cancel()
	_, err := c.Election().Campaign(brief, 2)
	require.ErrorIs(t, err, context.DeadlineExceeded, "a second term while one lasts")
	require.NoError(t, first.Resign(s.ctx))
	s.race(t, c)
}

func checkOneControllerAmongMembers(t TB, s *Subject) {
	s.race(t, s.member(), s.member(), s.member())
}

// race lets brokers take turns at being controller through these members, and sees that they never overlap.
func (s *Subject) race(t TB, members ...election.Coordination) {
	var seated, epoch atomic.Int32
	var faults sync.Map
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 5 {
				term, err := members[i%len(members)].Election().Campaign(s.ctx, int32(i))
				if err != nil {
					faults.Store(err.Error(), true)
					return
				}
				if seated.Add(1) != 1 {
					faults.Store("two controllers at a time", true)
				}
				if old := epoch.Swap(term.Epoch()); old >= term.Epoch() {
					faults.Store("an epoch that does not rise", true)
				}
				time.Sleep(time.Millisecond)
				seated.Add(-1)
				if err := term.Resign(s.ctx); err != nil {
					faults.Store(err.Error(), true)
				}
			}
		}()
	}
	wg.Wait()
	faults.Range(func(fault, _ any) bool {
		require.Fail(t, fault.(string))
		return true
	})
}

func checkController(t TB, s *Subject) {
	c := s.member()
	at, epoch, err := c.Election().Controller(s.ctx)
	require.NoError(t, err)
	require.Equal(t, election.NoBroker, at)
	require.Zero(t, epoch)
	term, err := c.Election().Campaign(s.ctx, 7)
	require.NoError(t, err)
	at, epoch, err = c.Election().Controller(s.ctx)
	require.NoError(t, err)
	require.Equal(t, int32(7), at)
	require.Equal(t, term.Epoch(), epoch)
	require.NoError(t, term.Resign(s.ctx))
	at, epoch, err = c.Election().Controller(s.ctx)
	require.NoError(t, err)
	require.Equal(t, election.NoBroker, at)
	require.Equal(t, term.Epoch(), epoch)
}

func checkTermLost(t TB, s *Subject) {
	c := s.member()
	term := s.elect(c)
	require.True(t, open(term.Lost()))
	require.NoError(t, term.Resign(s.ctx))
	require.False(t, open(term.Lost()), "1.6 Resign closes it")
	require.NoError(t, term.Resign(s.ctx), "1.9 resigned again")
	term = s.elect(c)
	require.True(t, open(term.Lost()))
	require.NoError(t, c.Stop(s.ctx))
	require.False(t, open(term.Lost()), "1.6 Stop closes it")
}

func checkStale(t TB, s *Subject) {
	c := s.member()
	old := s.elect(c)
	s.create(c, old.Epoch(), newTopic("a", 1, 1))
	entity := election.Entity{Kind: election.TopicEntity, Name: "a"}
	before, conf := s.topics(c), s.configs(c, entity)
	try := func(epoch int32, when string) {
		md := c.Metadata()
		writes := map[string]func() error{
			"CreateTopics": func() error {
				return oneError(md.CreateTopics(s.ctx, epoch, []election.NewTopic{newTopic("b", 2, 1)}))
			},
			"SetAssignments": func() error {
				return oneError(md.SetAssignments(s.ctx, epoch, []election.TopicAssignment{{Topic: "a", ID: id(1), Partitions: assignments(2, 3)}}))
			},
			"UpdatePartitions": func() error {
				res, err := md.UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: "a", State: election.PartitionState{PartitionEpoch: -1}}})
				if err == nil {
					err = res[0].Err
				}
				return err
			},
			"MarkDeleted":  func() error { return oneError(md.MarkDeleted(s.ctx, epoch, []string{"a"})) },
			"RemoveTopics": func() error { return oneError(md.RemoveTopics(s.ctx, epoch, []string{"a"})) },
			"SetConfigs": func() error {
				return oneError(md.SetConfigs(s.ctx, epoch, []election.Config{{Entity: entity, Values: map[string]string{"k": "v"}}}))
			},
		}
		for name, write := range writes {
			require.ErrorIs(t, write(), election.ErrStaleController, "%s %s", name, when)
		}
		require.Equal(t, before, s.topics(c), when)
		require.Equal(t, conf, s.configs(c, entity), when)
	}
	require.NoError(t, old.Resign(s.ctx))
	try(old.Epoch(), "after resigning, without a successor")
	now := s.elect(c)
	try(old.Epoch(), "after a successor came")
	try(now.Epoch()+1, "with an epoch that nobody has")
	c = s.again(c)
	try(now.Epoch(), "after a restart")
}

func checkStaleElsewhere(t TB, s *Subject) {
	a, b := s.member(), s.member()
	old := s.elect(a)
	won := make(chan election.Term, 1)
	go func() {
		if term, err := b.Election().Campaign(s.ctx, 2); err == nil {
			won <- term
		}
	}()
	require.NoError(t, old.Resign(s.ctx))
	var now election.Term
	select {
	case now = <-won:
	case <-time.After(s.Patience):
		require.Fail(t, "nobody was elected")
	}
	require.ErrorIs(t, oneError(a.Metadata().CreateTopics(s.ctx, old.Epoch(), []election.NewTopic{newTopic("a", 1, 1)})), election.ErrStaleController)
	s.create(b, now.Epoch(), newTopic("a", 1, 1))
	require.False(t, open(old.Lost()))
}

// checkDeputy: a broker that is asked to change a configuration does so under the epoch of whoever is controller.
func checkDeputy(t TB, s *Subject) {
	a, b := s.member(), s.member()
	term := s.elect(a)
	entity := election.Entity{Kind: election.BrokerEntity, Name: "1"}
	set := func(epoch int32, value string) error {
		version := s.configs(b, entity)[0].Version
		return oneError(b.Metadata().SetConfigs(s.ctx, epoch, []election.Config{{Entity: entity, Values: map[string]string{"k": value}, Version: version}}))
	}
	require.NoError(t, set(term.Epoch(), "1"))
	require.Equal(t, "1", s.configs(a, entity)[0].Values["k"])
	require.ErrorIs(t, set(term.Epoch()+1, "2"), election.ErrStaleController)
	require.NoError(t, term.Resign(s.ctx))
	require.ErrorIs(t, set(term.Epoch(), "2"), election.ErrStaleController)
	next := s.elect(a)
	require.ErrorIs(t, set(term.Epoch(), "2"), election.ErrStaleController)
	require.NoError(t, set(next.Epoch(), "2"))
	require.Equal(t, "2", s.configs(a, entity)[0].Values["k"])
}

func checkClusterID(t TB, s *Subject) {
	c := s.member()
	first, err := c.Membership().ClusterID(s.ctx, "abcdefghijklmnopqrstuv")
	require.NoError(t, err)
	require.Equal(t, "abcdefghijklmnopqrstuv", first)
	for _, proposed := range []string{"", "bbcdefghijklmnopqrstuv"} {
		got, err := c.Membership().ClusterID(s.ctx, proposed)
		require.NoError(t, err)
		require.Equal(t, first, got)
	}
	c = s.again(c)
	got, err := c.Membership().ClusterID(s.ctx, "")
	require.NoError(t, err)
	require.Equal(t, first, got, "after a restart")
}

func checkBrokerIDs(t TB, s *Subject) {
	c := s.member()
	last := int32(1000)
	for range 3 {
		for range 3 {
			got, err := c.Membership().NewBrokerID(s.ctx)
			require.NoError(t, err)
			require.Greater(t, got, last)
			last = got
		}
		c = s.again(c)
	}
}

func (s *Subject) register(c election.Coordination, b election.Broker) election.Registration {
	s.t.Helper()
	r, err := c.Membership().Register(s.ctx, b)
	require.NoError(s.t, err)
	return r
}

func checkBrokerEpochs(t TB, s *Subject) {
	c := s.member()
	last := int64(-1)
	for range 3 {
		for _, b := range []election.Broker{broker(1, 9092), broker(2, 9093), broker(1, 9092)} {
			r := s.register(c, b)
			require.Greater(t, r.Epoch(), last)
			last = r.Epoch()
			require.NoError(t, r.Leave(s.ctx))
		}
		c = s.again(c)
	}
}

func checkBrokerExists(t TB, s *Subject) {
	c := s.member()
	r := s.register(c, broker(1, 9092))
	_, err := c.Membership().Register(s.ctx, broker(1, 9093))
	require.ErrorIs(t, err, election.ErrBrokerExists, "the same id")
	_, err = c.Membership().Register(s.ctx, broker(2, 9092))
	require.ErrorIs(t, err, election.ErrBrokerExists, "the same address")
	require.True(t, open(r.Lost()), "the one that was first is left alone")
	all, err := c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	want := broker(1, 9092)
	want.Epoch = r.Epoch()
	require.Equal(t, []election.Broker{want}, all)
}

func checkInvalidBrokers(t TB, s *Subject) {
	c := s.member()
	change := func(f func(*election.Broker)) election.Broker {
		b := broker(1, 9092)
		f(&b)
		return b
	}
	for what, b := range map[string]election.Broker{
		"negative id":        change(func(b *election.Broker) { b.ID = -1 }),
		"no endpoint":        change(func(b *election.Broker) { b.Endpoints = nil }),
		"no host":            change(func(b *election.Broker) { b.Endpoints[0].Host = "" }),
		"port 0":             change(func(b *election.Broker) { b.Endpoints[0].Port = 0 }),
		"port 65536":         change(func(b *election.Broker) { b.Endpoints[0].Port = 65536 }),
		"one listener twice": change(func(b *election.Broker) { b.Endpoints = append(b.Endpoints, b.Endpoints[0]) }),
	} {
		_, err := c.Membership().Register(s.ctx, b)
		require.ErrorIs(t, err, election.ErrInvalid, what)
	}
	all, err := c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	require.Empty(t, all)
}

func checkRegistrationLost(t TB, s *Subject) {
	c := s.member()
	r := s.register(c, broker(1, 9092))
	require.True(t, open(r.Lost()))
	require.NoError(t, r.Leave(s.ctx))
	require.False(t, open(r.Lost()))
	require.NoError(t, r.Leave(s.ctx), "2.7 left again")
	r = s.register(c, broker(1, 9092))
	require.NoError(t, c.Stop(s.ctx))
	require.False(t, open(r.Lost()))
}

func checkBrokers(t TB, s *Subject) {
	c := s.member()
	var rs []election.Registration
	var want []election.Broker
	for i := int32(1); i <= 3; i++ {
		b := broker(i, 9090+i)
		b.Endpoints = append(b.Endpoints, election.Endpoint{Listener: "INTERNAL", Protocol: "SSL", Host: "::1", Port: 1000 + i})
		if i == 2 {
			b.Rack = ""
		}
		r := s.register(c, b)
		b.Epoch = r.Epoch()
		rs, want = append(rs, r), append(want, b)
	}
	all, err := c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	require.Equal(t, want, all)
	require.NoError(t, rs[1].Leave(s.ctx))
	all, err = c.Membership().Brokers(s.ctx)
	require.NoError(t, err)
	require.Equal(t, []election.Broker{want[0], want[2]}, all)
}

func checkWatch(t TB, s *Subject) {
	c := s.member()
	s.watchFrom(t, c, c)
}

func checkWatchElsewhere(t TB, s *Subject) { s.watchFrom(t, s.member(), s.member()) }

// watchFrom watches through one member what is done through another.
func (s *Subject) watchFrom(t TB, doing, watching election.Coordination) {
	term := s.elect(doing)
	members, err := watching.Membership().Watch(s.ctx)
	require.NoError(t, err)
	defer members.Close()
	data, err := watching.Metadata().Watch(s.ctx)
	require.NoError(t, err)
	defer data.Close()
	configs, err := watching.Metadata().Watch(s.ctx, election.ConfigChanged)
	require.NoError(t, err)
	defer configs.Close()

	r := s.register(doing, broker(1, 9092))
	s.sees(members, election.Change{Kind: election.BrokersChanged})
	require.NoError(t, r.Leave(s.ctx))
	s.sees(members, election.Change{Kind: election.BrokersChanged})

	topic := election.Change{Kind: election.TopicChanged, Topic: "a"}
	conf := election.Change{Kind: election.ConfigChanged, Entity: election.Entity{Kind: election.TopicEntity, Name: "a"}}
	md, epoch := doing.Metadata(), term.Epoch()
	s.create(doing, epoch, newTopic("a", 1, 1))
	s.sees(data, topic)
	_, err = md.SetAssignments(s.ctx, epoch, []election.TopicAssignment{{Topic: "a", ID: id(1), Partitions: assignments(2, 1)}})
	require.NoError(t, err)
	s.sees(data, topic)
	require.NoError(t, oneError(md.SetConfigs(s.ctx, epoch, []election.Config{{Entity: conf.Entity, Values: map[string]string{"k": "v"}}})))
	s.sees(data, conf)
	s.sees(configs, conf)
	_, err = md.MarkDeleted(s.ctx, epoch, []string{"a"})
	require.NoError(t, err)
	s.sees(data, topic)
	_, err = md.RemoveTopics(s.ctx, epoch, []string{"a"})
	require.NoError(t, err)
	s.sees(data, topic)
}

// sees waits until a watch reports a change.
func (s *Subject) sees(w election.Watch, want election.Change) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.Patience)
	defer cancel()
	for {
		changes, err := w.Next(ctx)
		require.NoError(s.t, err, "waiting for %+v", want)
		for _, ch := range changes {
			if ch == want || ch.Kind == election.EverythingChanged {
				return
			}
		}
	}
}

func checkSlowWatch(t TB, s *Subject) {
	c := s.member()
	term := s.elect(c)
	w, err := c.Metadata().Watch(s.ctx)
	require.NoError(t, err)
	defer w.Close()
	entity := election.Entity{Kind: election.BrokerEntity}
	version := int64(0)
	for i := range 200 {
		values := map[string]string{"k": string(rune('a' + i%26))}
		require.NoError(t, oneError(c.Metadata().SetConfigs(s.ctx, term.Epoch(), []election.Config{{Entity: entity, Values: values, Version: version}})))
		version = s.configs(c, entity)[0].Version
	}
	got := 0
	for {
		brief, cancel := s.briefly()
		changes, err := w.Next(brief)
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			break
		}
		got += len(changes)
	}
	require.NotZero(t, got)
	require.LessOrEqual(t, got, 20, "200 changes of one thing")
}

func checkWatchClosed(t TB, s *Subject) {
	c := s.member()
	w, err := c.Membership().Watch(s.ctx)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { _, err := w.Next(s.ctx); done <- err }()
	time.Sleep(5 * time.Millisecond)
	w.Close()
	w.Close()
	select {
	case err := <-done:
		require.True(t, errors.Is(err, election.ErrClosed), "%v", err)
	case <-time.After(s.Patience):
		require.Fail(t, "Close left Next waiting")
	}
	_, err = w.Next(s.ctx)
	require.ErrorIs(t, err, election.ErrClosed)
}
