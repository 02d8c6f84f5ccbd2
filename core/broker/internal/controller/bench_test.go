package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

// encoder is a pusher that encodes what it is given, as a connection does, and that nobody answers.
type encoder struct {
	buf             []byte
	requests, bytes int
}

func (e *encoder) Drop() {}
func (e *encoder) Push(_ int32, _ int64, req kmsg.Request) kmsg.Response {
	e.buf = req.AppendTo(e.buf[:0])
	e.requests++
	e.bytes += len(e.buf)
	return nil
}

// benchCluster is a coordination with three living brokers and n partitions of ten topics with three replicas each.
func benchCluster(b *testing.B, n int) (Options, election.Coordination) {
	member := electiontest.NewMemory().Member()
	require.NoError(b, member.Start(b.Context()))
	for id := range int32(3) {
		_, err := member.Membership().Register(b.Context(), election.Broker{ID: id, Endpoints: []election.Endpoint{
			{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "host", Port: 1000 + id}}})
		require.NoError(b, err)
	}
	ids := byte(0)
	o := Options{Election: member.Election(), Membership: member.Membership(), Metadata: member.Metadata(), Requests: member.Requests(), Pusher: &encoder{},
		Rules: Rules{BrokerID: 0, InterBroker: "PLAINTEXT", Partitions: 1, ReplicationFactor: 3, DeleteTopics: true,
			Unclean: func(string) bool { return false }, CheckConfig: func(map[string]string) error { return nil }, Draw: func(int) int { return 0 },
			NewID: func() election.TopicID { ids++; return election.TopicID{ids} }}}
	s := benchTakeOver(b, o)
	create := &CreateTopics{}
	for i := range 10 {
		create.Topics = append(create.Topics, NewTopic{Name: fmt.Sprintf("topic-%d", i), Partitions: int32(n / 10), ReplicationFactor: 3})
	}
	require.NoError(b, s.Handle(b.Context(), create))
	require.NoError(b, create.Results[0].Err)
	require.NoError(b, s.term.Resign(b.Context()))
	return o, member
}

func benchTakeOver(b *testing.B, o Options) *Session {
	term, err := o.Election.Campaign(context.Background(), 0)
	require.NoError(b, err)
	s := NewSession(o, term)
	require.NoError(b, s.Begin(context.Background()))
	return s
}

// BenchmarkTakeOver is a new controller's first work with 10,000 partitions on three brokers: to read, to look at everything, and to
// encode what all brokers have to be told.
func BenchmarkTakeOver(b *testing.B) {
	o, _ := benchCluster(b, 10_000)
	e := o.Pusher.(*encoder)
	b.ReportAllocs()
	for b.Loop() {
		e.requests, e.bytes = 0, 0
		s := benchTakeOver(b, o)
		require.NoError(b, s.term.Resign(b.Context()))
	}
	b.ReportMetric(float64(e.bytes), "B-pushed")
	b.ReportMetric(float64(e.requests), "pushes")
}

// BenchmarkBrokerDies is what a controller does when one of three brokers with 1,000 partitions dies: to decide, to write, and to
// encode what the others have to be told.
func BenchmarkBrokerDies(b *testing.B) {
	o, _ := benchCluster(b, 1000)
	s := benchTakeOver(b, o)
	e := o.Pusher.(*encoder)
	all, err := o.Membership.Brokers(b.Context())
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		e.requests, e.bytes = 0, 0
		require.NoError(b, s.Handle(b.Context(), BrokersChanged{all[:2]}))
		b.StopTimer()
		died := [2]int{e.requests, e.bytes}
		require.NoError(b, s.Handle(b.Context(), BrokersChanged{all}))
		for _, t := range s.machine.topics { // all in sync again
			for i := range t.parts {
				t.parts[i].state.ISR = t.parts[i].assignment.Replicas
			}
		}
		require.NoError(b, s.Handle(b.Context(), Rebalance{}))
		e.requests, e.bytes = died[0], died[1]
		b.StartTimer()
	}
	b.ReportMetric(float64(e.bytes), "B-pushed")
	b.ReportMetric(float64(e.requests), "pushes")
}
