package electiontest

import (
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Clauses 11: what is asked of the controller.

func (s *Subject) requests(c election.Coordination) []election.Request {
	s.t.Helper()
	all, err := c.Requests().List(s.ctx)
	require.NoError(s.t, err)
	return all
}

func checkRequests(t TB, s *Subject) {
	c := s.member()
	term := s.elect(c)
	w, err := c.Requests().Watch(s.ctx)
	require.NoError(t, err)
	defer w.Close()
	require.Empty(t, s.requests(c))
	for _, id := range []int32{7, 8, 7} {
		require.NoError(t, c.Requests().ReportDirFailure(s.ctx, id))
		s.sees(w, election.Change{Kind: election.RequestsChanged})
	}
	require.ErrorIs(t, c.Requests().ReportDirFailure(s.ctx, -1), election.ErrInvalid)
	all := s.requests(c)
	require.Len(t, all, 3)
	for i, id := range []int32{7, 8, 7} {
		require.Equal(t, election.DirFailed, all[i].Kind)
		require.Equal(t, id, all[i].Broker)
	}
	_, err = c.Requests().Done(s.ctx, term.Epoch()+1, all)
	require.ErrorIs(t, err, election.ErrStaleController)
	require.Equal(t, all, s.requests(c))
	foreign := []election.Request{
		{Kind: election.Reassign, Topic: "a", Replicas: []int32{1}}, {Kind: election.ElectPreferred, Topic: "a"},
		{Kind: election.DirFailed, Broker: 7, ID: "log_dir_event_9999999999"},
	}
	errs, err := c.Requests().Done(s.ctx, term.Epoch(), append(foreign, all[0], all[0]))
	require.NoError(t, err)
	require.Len(t, errs, 5)
	for _, e := range errs {
		require.NoError(t, e, "11.2")
	}
	require.Equal(t, all[1:], s.requests(c))
	require.NoError(t, oneError(c.Requests().Done(s.ctx, term.Epoch(), all[1:])))
	require.Empty(t, s.requests(c))
}

func checkUnmark(t TB, s *Subject) {
	c := s.member()
	epoch := s.elect(c).Epoch()
	in := newTopic("a", 1, 2)
	in.Config = map[string]string{"k": "v"}
	s.create(c, epoch, in, newTopic("b", 2, 1))
	_, err := c.Metadata().UpdatePartitions(s.ctx, epoch, []election.PartitionUpdate{{Topic: "a", Partition: 1, State: election.PartitionState{Leader: 1, ISR: []int32{1}, PartitionEpoch: -1}}})
	require.NoError(t, err)
	topics, configs := s.topics(c), s.configs(c)
	require.NoError(t, oneError(c.Metadata().MarkDeleted(s.ctx, epoch, []string{"a"})))
	require.True(t, s.topics(c)[0].Deleting)
	_, err = c.Requests().Unmark(s.ctx, epoch+1, []string{"a"})
	require.ErrorIs(t, err, election.ErrStaleController)
	for range 2 {
		errs, err := c.Requests().Unmark(s.ctx, epoch, []string{"a", "a", "b", "nothing"})
		require.NoError(t, err)
		require.Equal(t, make([]error, 4), errs)
		require.Equal(t, topics, s.topics(c))
		require.Equal(t, configs, s.configs(c))
	}
	c = s.again(c)
	require.Equal(t, topics, s.topics(c))
}
