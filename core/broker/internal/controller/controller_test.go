package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

// broker is a broker of a cluster in memory that has a controller and a cache.
type broker struct {
	*Controller
	member election.Coordination
	cache  *metadata.Cache
}

// single is the pusher to a broker that is alone and does whatever it is told.
type single struct {
	id    int32
	cache *metadata.Cache
}

func (single) Drop() {}

func (s single) Push(broker int32, _ int64, req kmsg.Request) kmsg.Response {
	if broker != s.id {
		return nil
	}
	switch req := req.(type) {
	case *kmsg.UpdateMetadataRequest:
		return s.cache.Update(req)
	case *kmsg.LeaderAndISRRequest:
		return req.ResponseKind()
	case *kmsg.StopReplicaRequest:
		resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
		for _, topic := range req.Topics {
			for _, p := range topic.PartitionStates {
				resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: topic.Topic, Partition: p.Partition})
			}
		}
		return resp
	}
	return nil
}

func newBroker(t *testing.T, mem *electiontest.Memory, id int32) *broker {
	b := &broker{member: mem.Member()}
	require.NoError(t, b.member.Start(t.Context()))
	r, err := b.member.Membership().Register(t.Context(), election.Broker{ID: id, Endpoints: []election.Endpoint{
		{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "host", Port: 1000 + id}}})
	require.NoError(t, err)
	b.cache = metadata.NewCache(r.Epoch)
	var ids atomic.Int32
	b.Controller = New(Options{
		Rules: Rules{BrokerID: id, InterBroker: "PLAINTEXT", Partitions: 1, ReplicationFactor: 1, DeleteTopics: true,
			Unclean: func(string) bool { return false }, CheckConfig: func(map[string]string) error { return nil }, Draw: func(int) int { return 0 },
			NewID: func() election.TopicID { return election.TopicID{byte(id), byte(ids.Add(1))} }},
		Election: b.member.Election(), Membership: b.member.Membership(), Metadata: b.member.Metadata(), Requests: b.member.Requests(),
		Pusher: single{id, b.cache}, Rebalance: 20 * time.Millisecond,
	})
	require.NoError(t, b.Start(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, b.Stop(context.Background()))
		require.NoError(t, b.member.Stop(context.Background()))
	})
	return b
}

func within(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

func (b *broker) awaits(t *testing.T, want func(*metadata.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := b.cache.Await(ctx, want)
	require.NoError(t, err)
}

func has(topic string, leader int32) func(*metadata.Snapshot) bool {
	return func(s *metadata.Snapshot) bool {
		known, ok := s.Topic(topic)
		return ok && known.Partitions[0].Leader == leader
	}
}

func (b *broker) create(t *testing.T, name string) {
	t.Helper()
	c := &CreateTopics{Topics: []NewTopic{{Name: name, Partitions: -1, ReplicationFactor: -1}}}
	require.NoError(t, b.Do(t.Context(), c))
	require.NoError(t, c.Results[0].Err)
}

func TestControllerAlone(t *testing.T) {
	b := newBroker(t, electiontest.NewMemory(), 1)
	within(t, "not elected", b.Ready())
	require.True(t, b.Active())
	b.create(t, "a")
	require.True(t, has("a", 1)(b.cache.Snapshot()), "told when Do returns")
	d := &DeleteTopics{Topics: []string{"a", "nothing"}}
	require.NoError(t, b.Do(t.Context(), d))
	require.NoError(t, d.Results[0])
	require.ErrorIs(t, d.Results[1], kerr.UnknownTopicOrPartition)
	_, there := b.cache.Snapshot().Topic("a")
	require.False(t, there)
	b.create(t, "a") // gone for good: it can come again at once

	internal := &CreateTopics{Topics: []NewTopic{InternalTopic(OffsetsTopic, kafka.Layers{}), InternalTopic(TransactionsTopic, kafka.Layers{})}}
	require.NoError(t, b.Do(t.Context(), internal))
	require.NoError(t, internal.Results[0].Err)
	require.NoError(t, internal.Results[1].Err)
	known, _ := b.cache.Snapshot().Topic(TransactionsTopic)
	require.Len(t, known.Partitions, 50)
	require.Equal(t, []int32{1}, known.Partitions[0].Replicas, "three replicas by default, but one broker")
	configs, err := b.member.Metadata().Configs(t.Context(), metadata.TopicEntity(TransactionsTopic))
	require.NoError(t, err)
	require.Equal(t, "1", configs[0].Values["min.insync.replicas"], "two by default, which one replica never reaches")
	require.Equal(t, "compact", configs[0].Values["cleanup.policy"])

	require.NoError(t, b.Stop(t.Context()))
	require.ErrorIs(t, b.Do(t.Context(), &DeleteTopics{}), ErrNotController)
	require.False(t, b.Active())
	id, _, err := b.member.Election().Controller(t.Context())
	require.NoError(t, err)
	require.Equal(t, election.NoBroker, id, "Stop resigns")
}

func TestControllerFailover(t *testing.T) {
	mem := electiontest.NewMemory()
	a := newBroker(t, mem, 1)
	within(t, "not elected", a.Ready())
	a.create(t, "a")
	b := newBroker(t, mem, 2)
	require.ErrorIs(t, b.Do(t.Context(), &DeleteTopics{}), ErrNotController)
	require.NoError(t, a.Stop(t.Context()))
	within(t, "nobody took over", b.Ready())
	require.True(t, has("a", 1)(b.cache.Snapshot()))
	id, epoch := b.cache.Snapshot().Controller()
	require.Equal(t, int32(2), id)
	require.Equal(t, int32(2), epoch)
	require.NoError(t, a.member.Stop(t.Context()))
	b.awaits(t, has("a", metadata.NoLeader))
}

// TestControllerWatches changes the metadata behind the controller's back.
func TestControllerWatches(t *testing.T) {
	mem := electiontest.NewMemory()
	b := newBroker(t, mem, 1)
	within(t, "not elected", b.Ready())
	other := mem.Member()
	require.NoError(t, other.Start(t.Context()))
	defer other.Stop(context.Background())
	_, epoch, err := other.Election().Controller(t.Context())
	require.NoError(t, err)
	_, err = other.Metadata().CreateTopics(t.Context(), epoch, []election.NewTopic{{Name: "a", ID: election.TopicID{9}, Partitions: []election.Assignment{{Replicas: []int32{1}}}}})
	require.NoError(t, err)
	b.awaits(t, has("a", 1))
	_, err = other.Metadata().MarkDeleted(t.Context(), epoch, []string{"a"})
	require.NoError(t, err)
	b.awaits(t, func(s *metadata.Snapshot) bool { _, ok := s.Topic("a"); return !ok })
	require.Eventually(t, func() bool {
		topics, err := other.Metadata().Topics(t.Context())
		return err == nil && len(topics) == 0
	}, time.Minute, 5*time.Millisecond)
}

func TestControllerExpires(t *testing.T) {
	mem := electiontest.NewMemory()
	b := newBroker(t, mem, 1)
	within(t, "not elected", b.Ready())
	mem.Expire(b.member)
	b.awaits(t, func(s *metadata.Snapshot) bool { _, epoch := s.Controller(); return epoch == 1 })
	require.Eventually(t, func() bool { // elected again, though it isn't registered any more
		_, epoch, err := b.member.Election().Controller(t.Context())
		return err == nil && epoch == 2 && b.Active()
	}, time.Minute, 5*time.Millisecond)
}

// TestControllerStartsOver fails a write: nobody knows what holds, so the controller reads everything again.
func TestControllerStartsOver(t *testing.T) {
	mem := electiontest.NewMemory()
	b := newBroker(t, mem, 1)
	within(t, "not elected", b.Ready())
	for _, after := range []bool{false, true} {
		failure := fmt.Errorf("after=%v: %w", after, election.ErrUnavailable)
		var failed atomic.Bool
		hook := func(method string) error {
			if method == "CreateTopics" && failed.CompareAndSwap(false, true) {
				return failure
			}
			return nil
		}
		set := func(h func(string) error) {
			// The loop is idle: nobody else reads the hooks.
			if after {
				mem.After = h
			} else {
				mem.Before = h
			}
		}
		set(hook)
		name := fmt.Sprint("t", after)
		c := &CreateTopics{Topics: []NewTopic{{Name: name, Partitions: -1, ReplicationFactor: -1}}}
		require.ErrorIs(t, b.Do(t.Context(), c), failure)
		require.Eventually(t, func() bool {
			c := &CreateTopics{Topics: []NewTopic{{Name: name, Partitions: -1, ReplicationFactor: -1}}}
			err := b.Do(t.Context(), c)
			if err != nil {
				return false
			}
			require.Equal(t, after, errors.Is(c.Results[0].Err, kerr.TopicAlreadyExists), "it was written only if it fails behind the write")
			return true
		}, time.Minute, 10*time.Millisecond)
		require.True(t, has(name, 1)(b.cache.Snapshot()))
	}
}

func TestDoEndsWithItsContext(t *testing.T) {
	mem := electiontest.NewMemory()
	b := newBroker(t, mem, 1)
	within(t, "not elected", b.Ready())
	hold := make(chan struct{})
	mem.Before = func(string) error { <-hold; return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c := &CreateTopics{Topics: []NewTopic{{Name: "a", Partitions: -1, ReplicationFactor: -1}}}
	require.ErrorIs(t, b.Do(ctx, c), context.DeadlineExceeded)
	close(hold)
	b.awaits(t, has("a", 1)) // it went on
}

// TestControllerRebalances gives leadership back to a broker that was away, once it is in sync again.
func TestControllerRebalances(t *testing.T) {
	mem := electiontest.NewMemory()
	b := newBroker(t, mem, 1)
	within(t, "not elected", b.Ready())
	other := mem.Member()
	require.NoError(t, other.Start(t.Context()))
	defer other.Stop(context.Background())
	join := func() election.Registration {
		r, err := other.Membership().Register(t.Context(), election.Broker{ID: 2, Endpoints: []election.Endpoint{
			{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "host", Port: 1002}}})
		require.NoError(t, err)
		b.awaits(t, func(s *metadata.Snapshot) bool { return len(s.Brokers()) == 2 })
		return r
	}
	r := join()
	c := &CreateTopics{Topics: []NewTopic{{Name: "a", Partitions: -1, ReplicationFactor: -1, Manual: []ManualPartition{{0, []int32{2, 1}}}}}}
	require.NoError(t, b.Do(t.Context(), c))
	require.NoError(t, c.Results[0].Err)
	require.True(t, has("a", 2)(b.cache.Snapshot()))
	require.NoError(t, r.Leave(t.Context()))
	b.awaits(t, has("a", 1))
	join()
	known, _ := b.cache.Snapshot().Topic("a")
	brokers, err := b.member.Membership().Brokers(t.Context())
	require.NoError(t, err)
	req := &kmsg.AlterPartitionRequest{Version: 2, BrokerID: 1, BrokerEpoch: brokers[0].Epoch, Topics: []kmsg.AlterPartitionRequestTopic{{TopicID: known.ID,
		Partitions: []kmsg.AlterPartitionRequestTopicPartition{{LeaderEpoch: known.Partitions[0].LeaderEpoch,
			PartitionEpoch: known.Partitions[0].PartitionEpoch, NewISR: []int32{1, 2}}}}}}
	alter := &AlterPartition{Request: req, Response: req.ResponseKind().(*kmsg.AlterPartitionResponse)}
	require.NoError(t, b.Do(t.Context(), alter))
	require.Zero(t, alter.Response.Topics[0].Partitions[0].ErrorCode)
	b.awaits(t, has("a", 2))
}
