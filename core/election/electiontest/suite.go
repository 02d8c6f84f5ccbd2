// Package electiontest is the suite that every coordination passes, in this repository or another:
//
//	func TestSuite(t *testing.T) {
//		electiontest.Run(t, electiontest.Options{}, func(t *testing.T) electiontest.Cluster { return newCluster(t) })
//	}
//
// Its sub-tests are named by the clauses of core/election. It has a coordination in memory too ([Memory]), which the suite's
// histories compare others with, and which tests of what stands on coordination use.
package electiontest

import (
	"context"
	"errors"
	"time"

	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// TB is what the suite needs of a *testing.T; the suite's own tests give it another to see it fail.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// Cluster makes the members of one cluster, which knows nothing at first. What is written outlives the members.
type Cluster interface {
	// Member makes another member, not started.
	Member() election.Coordination
}

// Options say what a coordination is like.
type Options struct {
	// Single says that a cluster has one member at a time: Member is called again after the one before was stopped.
	Single bool
	// Portable says that members implement election.Portable, whose clauses are checked then. With Single, too, a member that isn't
	// started may be made while another one runs.
	Portable bool
	// Patience is how long something that must happen may take; 10 s when 0.
	Patience time.Duration
}

// A Clause is one sub-test of the suite.
type Clause struct {
	Name string
	// Several says that it needs several members at a time.
	Several bool
	// Portable says that it is about election.Portable.
	Portable bool
	Check    func(t TB, s *Subject)
}

// Subject is what is being checked.
type Subject struct {
	Options
	cluster Cluster
	t       TB
	ctx     context.Context
}

// Run checks a new cluster made by make for each clause.
func Run(t *testing.T, o Options, make func(t *testing.T) Cluster) {
	for _, c := range Clauses() {
		if c.Several && o.Single || c.Portable && !o.Portable {
			continue
		}
		t.Run(c.Name, func(t *testing.T) { c.Check(t, NewSubject(t, o, make(t))) })
	}
}

// NewSubject prepares a cluster for one clause.
func NewSubject(t TB, o Options, c Cluster) *Subject {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*o.Patience)
	t.Cleanup(cancel)
	return &Subject{Options: o, cluster: c, t: t, ctx: ctx}
}

// Clauses lists the sub-tests.
func Clauses() []Clause {
	return []Clause{
		{Name: "life cycle", Check: checkLifeCycle},
		{Name: "0.2 nothing is shared", Check: checkNothingShared},
		{Name: "0.3 waits end with their context", Check: checkContexts},
		{Name: "0.3 waits end with Stop", Check: checkStopEndsWaits},
		{Name: "0.4 what was written outlives the member", Check: checkDurable},
		{Name: "0.4 writes are seen on other members", Several: true, Check: checkSeenElsewhere},
		{Name: "0.6 stale controllers change nothing", Check: checkStale},
		{Name: "0.6 a successor elsewhere makes writes stale", Several: true, Check: checkStaleElsewhere},
		{Name: "0.6 writes on behalf of a controller elsewhere", Several: true, Check: checkDeputy},
		{Name: "0.7 bytes that are no text are refused", Check: checkText},
		{Name: "1.1 epochs rise", Check: checkEpochs},
		{Name: "1.2 one controller at a time", Check: checkOneController},
		{Name: "1.2 one controller among members", Several: true, Check: checkOneControllerAmongMembers},
		{Name: "1.5 who is controller", Check: checkController},
		{Name: "1.6 a term that ends is lost at once", Check: checkTermLost},
		{Name: "2.1 one cluster id for ever", Check: checkClusterID},
		{Name: "2.2 broker ids are given once", Check: checkBrokerIDs},
		{Name: "2.3 broker epochs rise", Check: checkBrokerEpochs},
		{Name: "2.4 no two brokers alike", Check: checkBrokerExists},
		{Name: "2.5 brokers that make no sense", Check: checkInvalidBrokers},
		{Name: "2.6 a registration that ends is lost at once", Check: checkRegistrationLost},
		{Name: "2.7 who is alive", Check: checkBrokers},
		{Name: "3.1 no change is missed", Check: checkWatch},
		{Name: "3.1 no change elsewhere is missed", Several: true, Check: checkWatchElsewhere},
		{Name: "3.3 a slow watch costs no memory", Check: checkSlowWatch},
		{Name: "3.4 a watch that is closed", Check: checkWatchClosed},
		{Name: "4 reads", Check: checkReads},
		{Name: "5 creating topics", Check: checkCreateTopics},
		{Name: "6 setting assignments", Check: checkSetAssignments},
		{Name: "7 updating partitions", Check: checkUpdatePartitions},
		{Name: "7.1 one of many who race wins", Check: checkRace},
		{Name: "8 deleting topics", Check: checkDeletion},
		{Name: "9 configurations", Check: checkConfigs},
		{Name: "10.1 producer ids are given once", Check: checkProducerIDs},
		{Name: "11 requests", Check: checkRequests},
		{Name: "11.3 marks taken back", Check: checkUnmark},
		{Name: "12.1 exports", Portable: true, Check: checkExport},
		{Name: "12.4 imports", Portable: true, Check: checkImport},
		{Name: "12.4 imports one after the other", Portable: true, Check: checkImports},
		{Name: "12.5 imports that are stopped", Portable: true, Check: checkImportStopped},
		{Name: "12.6 imports that are refused", Portable: true, Check: checkImportRefused},
		{Name: "random histories", Check: checkHistories},
	}
}

// member starts a member, and stops it at the end.
func (s *Subject) member() election.Coordination {
	s.t.Helper()
	c := s.cluster.Member()
	require.NoError(s.t, c.Start(s.ctx))
	s.t.Cleanup(func() { _ = c.Stop(context.Background()) }) // what Stop promises has clauses of its own
	return c
}

// again stops a member and starts another in its place.
func (s *Subject) again(c election.Coordination) election.Coordination {
	s.t.Helper()
	require.NoError(s.t, c.Stop(s.ctx))
	return s.member()
}

// elect makes broker 1 controller through a member.
func (s *Subject) elect(c election.Coordination) election.Term {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.Patience)
	defer cancel()
	term, err := c.Election().Campaign(ctx, 1)
	require.NoError(s.t, err)
	return term
}

// briefly is a context that ends soon, for waits that must not succeed.
func (s *Subject) briefly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, 50*time.Millisecond)
}

func open(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return false
	default:
		return true
	}
}

// is says whether err is one of those wanted.
func is(err error, wanted ...error) bool {
	for _, w := range wanted {
		if errors.Is(err, w) {
			return true
		}
	}
	return false
}

func id(n byte) election.TopicID { return election.TopicID{0: n, 15: 1} }

func assignments(n int, replicas ...int32) []election.Assignment {
	all := make([]election.Assignment, n)
	for i := range all {
		all[i].Replicas = append([]int32{}, replicas...)
	}
	return all
}

func newTopic(name string, n byte, partitions int) election.NewTopic {
	return election.NewTopic{Name: name, ID: id(n), Partitions: assignments(partitions, 1, 2)}
}

// create creates topics and sees that it goes well.
func (s *Subject) create(c election.Coordination, epoch int32, topics ...election.NewTopic) {
	s.t.Helper()
	errs, err := c.Metadata().CreateTopics(s.ctx, epoch, topics)
	require.NoError(s.t, err)
	require.Len(s.t, errs, len(topics))
	for _, e := range errs {
		require.NoError(s.t, e)
	}
}

func (s *Subject) topics(c election.Coordination, names ...string) []election.Topic {
	s.t.Helper()
	topics, err := c.Metadata().Topics(s.ctx, names...)
	require.NoError(s.t, err)
	return topics
}

func (s *Subject) configs(c election.Coordination, entities ...election.Entity) []election.Config {
	s.t.Helper()
	configs, err := c.Metadata().Configs(s.ctx, entities...)
	require.NoError(s.t, err)
	return configs
}

// oneError is the error of a write of one item.
func oneError(errs []error, err error) error {
	if err != nil {
		return err
	}
	return errs[0]
}

func broker(id int32, port int32) election.Broker {
	return election.Broker{ID: id, Rack: "r1", Endpoints: []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: port}}}
}

func checkLifeCycle(t TB, s *Subject) {
	unused := s.cluster.Member()
	require.NotNil(t, unused.Election())
	require.NotNil(t, unused.Membership())
	require.NotNil(t, unused.Metadata())
	require.NotNil(t, unused.Requests())
	_, err := unused.Metadata().Topics(s.ctx)
	require.ErrorIs(t, err, election.ErrClosed, "before Start")
	_, err = unused.Election().Campaign(s.ctx, 1)
	require.ErrorIs(t, err, election.ErrClosed, "before Start")
	require.NoError(t, unused.Stop(s.ctx), "Stop unstarted")

	c := s.member()
	s.elect(c)
	require.NoError(t, c.Stop(s.ctx))
	require.NoError(t, c.Stop(s.ctx), "Stop twice")
	_, err = c.Metadata().Topics(s.ctx)
	require.ErrorIs(t, err, election.ErrClosed)
	_, err = c.Metadata().CreateTopics(s.ctx, 1, nil)
	require.True(t, is(err, election.ErrClosed, election.ErrStaleController), "%v", err)
	_, err = c.Membership().Register(s.ctx, broker(1, 9092))
	require.ErrorIs(t, err, election.ErrClosed)
	_, err = c.Membership().Watch(s.ctx)
	require.ErrorIs(t, err, election.ErrClosed)
}

func checkContexts(t TB, s *Subject) {
	c := s.member()
	term := s.elect(c)
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := c.Metadata().Topics(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Metadata().CreateTopics(ended, term.Epoch(), []election.NewTopic{newTopic("a", 1, 1)})
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Metadata().ProducerIDs(ended, 1, 0)
	require.ErrorIs(t, err, context.Canceled)

	w, err := c.Metadata().Watch(s.ctx)
	require.NoError(t, err)
	defer w.Close()
	for {
		brief, cancel := s.briefly()
		_, err = w.Next(brief) // the write above may have happened
		cancel()
		if err != nil {
			break
		}
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	brief, cancel := s.briefly()
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := c.Election().Campaign(brief, 2); done <- err }()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(s.Patience):
		require.Fail(t, "Campaign waits on when its context has ended")
	}
	require.True(t, open(term.Lost()))
}

func checkStopEndsWaits(t TB, s *Subject) {
	c := s.member()
	term := s.elect(c)
	w, err := c.Membership().Watch(s.ctx)
	require.NoError(t, err)
	campaign, next := make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Election().Campaign(s.ctx, 2); campaign <- err }()
	go func() { _, err := w.Next(s.ctx); next <- err }()
	time.Sleep(10 * time.Millisecond) // so that they wait, usually
	require.NoError(t, c.Stop(s.ctx))
	for _, ch := range []chan error{campaign, next} {
		select {
		case err := <-ch:
			require.ErrorIs(t, err, election.ErrClosed)
		case <-time.After(s.Patience):
			require.Fail(t, "Stop left a call waiting")
		}
	}
	require.False(t, open(term.Lost()))
}
