package metadata

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/election"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	request = kmsg.UpdateMetadataRequest
	topic   = kmsg.UpdateMetadataRequestTopicState
	part    = kmsg.UpdateMetadataRequestTopicPartition
	live    = kmsg.UpdateMetadataRequestLiveBroker
	endp    = kmsg.UpdateMetadataRequestLiveBrokerEndpoint
)

func newCache() *Cache { return NewCache(func() int64 { return 7 }) }

// update sends a request in its version, as over a wire.
func update(t testing.TB, c *Cache, req *request) int16 {
	t.Helper()
	sent := &request{Version: req.Version}
	require.NoError(t, sent.ReadFrom(req.AppendTo(nil)))
	return c.Update(sent).ErrorCode
}

func TestUpdate(t *testing.T) {
	c := newCache()
	id, epoch := c.Snapshot().Controller()
	require.Equal(t, election.NoBroker, id)
	require.Zero(t, epoch)
	_, ok := c.Snapshot().TopicByID([16]byte{})
	require.False(t, ok)

	rack := "r"
	brokers := []live{{ID: 5, Endpoints: []endp{{Host: "five", Port: 1, ListenerName: "A", SecurityProtocol: 1}, {Host: "5", Port: 2, ListenerName: "B"}}}, {ID: 1, Rack: &rack}}
	first := c.Snapshot()
	require.Zero(t, update(t, c, &request{Version: 8, ControllerID: 3, ControllerEpoch: 2, BrokerEpoch: 7, LiveBrokers: brokers, TopicStates: []topic{
		{Topic: "a", TopicID: [16]byte{1}, PartitionStates: []part{{Partition: 2, Leader: 5, LeaderEpoch: 4, ISR: []int32{5}, ZKVersion: 9, Replicas: []int32{5, 6}, OfflineReplicas: []int32{6}}, {Partition: 0, Leader: -1}}},
		{Topic: "b", TopicID: [16]byte{2}, PartitionStates: []part{{Partition: 0, Leader: 1}}}}}))
	require.Empty(t, first.Topics(), "a snapshot never changes")
	s := c.Snapshot()
	id, epoch = s.Controller()
	require.Equal(t, int32(3), id)
	require.Equal(t, int32(2), epoch)
	require.Equal(t, []int32{1, 5}, []int32{s.Brokers()[0].ID, s.Brokers()[1].ID})
	require.Equal(t, "r", s.Brokers()[0].Rack)
	five, ok := s.Broker(5)
	require.True(t, ok)
	require.Equal(t, []election.Endpoint{{Listener: "A", Protocol: "SSL", Host: "five", Port: 1}, {Listener: "B", Protocol: "PLAINTEXT", Host: "5", Port: 2}}, five.Endpoints)
	host, port, ok := five.Endpoint("B")
	require.True(t, ok && host == "5" && port == 2)
	_, _, ok = five.Endpoint("C")
	require.False(t, ok)
	_, ok = s.Broker(2)
	require.False(t, ok)
	a, ok := s.TopicByID([16]byte{1})
	require.True(t, ok && a.Name == "a")
	require.Len(t, a.Partitions, 2)
	p, ok := a.Partition(2)
	require.True(t, ok)
	require.Equal(t, Partition{Number: 2, Leader: 5, LeaderEpoch: 4, PartitionEpoch: 9, Replicas: []int32{5, 6}, ISR: []int32{5}, Offline: []int32{6}}, *p)
	for _, n := range []int32{-1, 1, 3} {
		_, ok = a.Partition(n)
		require.False(t, ok)
	}
	topics, partitions := s.Counts()
	require.Equal(t, [2]int{2, 3}, [2]int{topics, partitions})

	// Partitions are added and replaced one by one; brokers all together.
	require.Zero(t, update(t, c, &request{Version: 8, ControllerID: 3, ControllerEpoch: 2, BrokerEpoch: 7, LiveBrokers: brokers[:1],
		TopicStates: []topic{{Topic: "a", TopicID: [16]byte{1}, PartitionStates: []part{{Partition: 1, Leader: 5}, {Partition: 2, Leader: 6}}}}}))
	s = c.Snapshot()
	require.Len(t, s.Brokers(), 1)
	a, _ = s.Topic("a")
	require.Len(t, a.Partitions, 3)
	p, _ = a.Partition(2)
	require.Equal(t, int32(6), p.Leader)
	require.Len(t, s.Topics(), 2)

	// A leader of -2 takes partitions away, and with the last one the topic.
	require.Zero(t, update(t, c, &request{Version: 8, ControllerEpoch: 2, BrokerEpoch: 7, TopicStates: []topic{
		{Topic: "a", TopicID: [16]byte{1}, PartitionStates: []part{{Partition: 0, Leader: -2}, {Partition: 1, Leader: -2}, {Partition: 2, Leader: -2}}},
		{Topic: "nothing", PartitionStates: []part{{Partition: 0, Leader: -2}}}}}))
	s = c.Snapshot()
	_, ok = s.Topic("a")
	require.False(t, ok)
	_, ok = s.TopicByID([16]byte{1})
	require.False(t, ok)
	topics, partitions = s.Counts()
	require.Equal(t, [2]int{1, 1}, [2]int{topics, partitions})

	// Another id is another topic: nothing of the old one stays.
	require.Zero(t, update(t, c, &request{Version: 8, ControllerEpoch: 2, BrokerEpoch: 7, TopicStates: []topic{
		{Topic: "b", TopicID: [16]byte{3}, PartitionStates: []part{{Partition: 1, Leader: 4}}}}}))
	s = c.Snapshot()
	_, ok = s.TopicByID([16]byte{2})
	require.False(t, ok)
	b, _ := s.TopicByID([16]byte{3})
	require.Len(t, b.Partitions, 1)
}

func TestUpdateFences(t *testing.T) {
	c := newCache()
	require.Zero(t, update(t, c, &request{Version: 8, ControllerID: 1, ControllerEpoch: 5, BrokerEpoch: 7}))
	before := c.Snapshot()
	require.Equal(t, kerr.StaleControllerEpoch.Code, update(t, c, &request{Version: 8, ControllerID: 2, ControllerEpoch: 4, BrokerEpoch: 7}))
	require.Equal(t, kerr.StaleBrokerEpoch.Code, update(t, c, &request{Version: 8, ControllerID: 2, ControllerEpoch: 6, BrokerEpoch: 6}))
	require.Same(t, before, c.Snapshot())
	for _, epoch := range []int64{-1, 7, 8} { // unknown, ours, one that we are about to learn
		require.Zero(t, update(t, c, &request{Version: 8, ControllerEpoch: 6, BrokerEpoch: epoch}))
	}
}

// TestOldVersions sends what controllers of older clusters send.
func TestOldVersions(t *testing.T) {
	for v := range int16(9) {
		c := newCache()
		p := part{Topic: "a", Partition: 0, Leader: 1, Replicas: []int32{1}, ISR: []int32{1}}
		require.Zero(t, update(t, c, &request{Version: v, ControllerEpoch: 1, BrokerEpoch: 7, PartitionStates: []part{p},
			TopicStates: []topic{{Topic: "a", TopicID: [16]byte{1}, PartitionStates: []part{p}}},
			LiveBrokers: []live{{ID: 1, Host: "h", Port: 9, Endpoints: []endp{{Host: "h", Port: 9, ListenerName: "PLAINTEXT"}}}}}), "version %d", v)
		known, ok := c.Snapshot().Topic("a")
		require.True(t, ok, "version %d", v)
		require.Equal(t, int32(1), known.Partitions[0].Leader)
		b, _ := c.Snapshot().Broker(1)
		host, port, ok := b.Endpoint("PLAINTEXT")
		require.True(t, ok && host == "h" && port == 9, "version %d: %+v", v, b)
	}
	// A request without ids leaves those that are known.
	c := newCache()
	update(t, c, &request{Version: 8, BrokerEpoch: 7, TopicStates: []topic{{Topic: "a", TopicID: [16]byte{1}, PartitionStates: []part{{Leader: 1}}}}})
	update(t, c, &request{Version: 6, BrokerEpoch: 7, TopicStates: []topic{{Topic: "a", PartitionStates: []part{{Leader: 2}}}}})
	known, ok := c.Snapshot().TopicByID([16]byte{1})
	require.True(t, ok && known.Partitions[0].Leader == 2)
}

func TestAwait(t *testing.T) {
	c := newCache()
	seen := make(chan error, 1)
	go func() {
		_, err := c.Await(context.Background(), func(s *Snapshot) bool { _, ok := s.Topic("a"); return ok })
		seen <- err
	}()
	for i := range 10 {
		update(t, c, &request{Version: 8, BrokerEpoch: 7, TopicStates: []topic{{Topic: fmt.Sprint(i), PartitionStates: []part{{}}}}})
	}
	update(t, c, &request{Version: 8, BrokerEpoch: 7, TopicStates: []topic{{Topic: "a", PartitionStates: []part{{}}}}})
	select {
	case err := <-seen:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("not seen")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	s, err := c.Await(ctx, func(*Snapshot) bool { return false })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotNil(t, s)
}

// BenchmarkUpdate changes one partition of many.
func BenchmarkUpdate(b *testing.B) {
	c := newCache()
	req := &request{Version: 8, BrokerEpoch: 7}
	for i := range 1000 {
		state := topic{Topic: fmt.Sprintf("topic-%d", i), TopicID: [16]byte{byte(i), byte(i >> 8), 1}}
		for p := range int32(10) {
			state.PartitionStates = append(state.PartitionStates, part{Partition: p, Leader: 1, Replicas: []int32{1}, ISR: []int32{1}})
		}
		req.TopicStates = append(req.TopicStates, state)
	}
	c.Update(req)
	one := &request{Version: 8, BrokerEpoch: 7, TopicStates: []topic{{Topic: "topic-7", TopicID: [16]byte{7, 0, 1}, PartitionStates: []part{{Partition: 3}}}}}
	b.ReportAllocs()
	for b.Loop() {
		c.Update(one)
	}
}

// TestLost has the first word to a later registration be all there is: what was deleted meanwhile is forgotten.
func TestLost(t *testing.T) {
	c := newCache()
	say := func(epoch int64, names ...string) {
		req := &request{Version: 8, BrokerEpoch: epoch}
		for i, name := range names {
			req.TopicStates = append(req.TopicStates, topic{Topic: name, TopicID: [16]byte{name[0], byte(i)}, PartitionStates: []part{{Leader: 1}}})
		}
		require.Zero(t, update(t, c, req))
	}
	has := func(names ...string) {
		t.Helper()
		var found []string
		for _, one := range c.Snapshot().Topics() {
			found = append(found, one.Name)
		}
		require.Equal(t, names, found)
	}
	say(7, "a", "b")
	c.Lost(7)
	say(7, "c")
	has("a", "b", "c") // said to the registration that is lost: nothing follows from that
	before := c.Snapshot()
	say(8, "b", "d")
	has("b", "d")
	gone := c.Snapshot().Gone(before)
	slices.Sort(gone)
	require.Equal(t, []string{"a", "b", "c"}, gone, "b is another one")
	_, known := c.Snapshot().TopicByID([16]byte{'a', 0})
	require.False(t, known)
	_, partitions := c.Snapshot().Counts()
	require.Equal(t, 2, partitions)
	say(8, "e")
	has("b", "d", "e")
	c.Lost(8)
	say(9)
	require.Empty(t, c.Snapshot().Topics(), "there is none any more")
}
