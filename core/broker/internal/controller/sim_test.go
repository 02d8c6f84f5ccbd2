package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is what the simulation needs of *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// sim is a cluster in one process: coordination in memory, brokers that take pushes as Kafka's do, and one machine after the
// other that is controller.
type sim struct {
	t       tb
	mem     *electiontest.Memory
	member  election.Coordination
	rules   Rules
	term    election.Term
	session *Session
	brokers map[int32]*fakeBroker
	crashAt int // writes until the controller dies; 0: it doesn't
	after   bool
	ids     byte
	unclean bool
	seen    map[string]election.PartitionState // by topic id and partition, the newest state
}

var errCrash = errors.New("the controller died")

func newSim(t tb, brokers ...int32) *sim {
	s := &sim{t: t, mem: electiontest.NewMemory(), brokers: map[int32]*fakeBroker{}, seen: map[string]election.PartitionState{}}
	s.mem.Before = func(string) error { return s.write(false) }
	s.mem.After = func(string) error { return s.write(true) }
	s.member = s.mem.Member()
	require.NoError(t, s.member.Start(context.Background()))
	s.rules = Rules{BrokerID: 0, InterBroker: "INTERNAL", Partitions: 2, ReplicationFactor: 2, DeleteTopics: true,
		Unclean:     func(string) bool { return s.unclean },
		CheckConfig: func(map[string]string) error { return nil },
		Draw:        func(int) int { return 0 },
		NewID:       func() election.TopicID { s.ids++; return election.TopicID{s.ids} }}
	for _, id := range brokers {
		s.up(id)
	}
	s.takeOver()
	return s
}

// write counts writes, and makes the controller die before or after the one that was chosen.
func (s *sim) write(done bool) error {
	if s.crashAt == 0 || done != s.after {
		return nil
	}
	if s.crashAt--; s.crashAt == 0 {
		return errCrash
	}
	return nil
}

// takeOver makes a new controller, which reads everything.
func (s *sim) takeOver() {
	ctx := context.Background()
	if s.term != nil {
		require.NoError(s.t, s.term.Resign(ctx))
	}
	var err error
	s.term, err = s.member.Election().Campaign(ctx, s.rules.BrokerID)
	require.NoError(s.t, err)
	s.session = NewSession(Options{Rules: s.rules, Election: s.member.Election(), Membership: s.member.Membership(), Metadata: s.member.Metadata(),
		Requests: s.member.Requests(), Pusher: s}, s.term)
	s.survives(s.session.Begin(ctx))
}

// run gives an event to the controller. When that dies on the way another takes over, and run returns false.
func (s *sim) run(ev Event) bool {
	s.t.Helper()
	return s.survives(s.session.Handle(context.Background(), ev))
}

func (s *sim) survives(err error) bool {
	s.t.Helper()
	if errors.Is(err, errCrash) {
		s.takeOver()
		return false
	}
	require.NoError(s.t, err)
	return true
}

func (s *sim) up(id int32) {
	s.t.Helper()
	if s.brokers[id] != nil {
		return
	}
	r, err := s.member.Membership().Register(context.Background(), election.Broker{ID: id, Rack: fmt.Sprintf("rack%d", id%2),
		Endpoints: []election.Endpoint{{Listener: "INTERNAL", Protocol: "PLAINTEXT", Host: "host", Port: 1000 + id}}})
	require.NoError(s.t, err)
	s.brokers[id] = newFakeBroker(s, id, r)
	s.tellBrokers()
}

func (s *sim) down(id int32) {
	s.t.Helper()
	b := s.brokers[id]
	if b == nil {
		return
	}
	delete(s.brokers, id)
	require.NoError(s.t, b.registration.Leave(context.Background()))
	s.tellBrokers()
}

func (s *sim) tellBrokers() {
	if s.session == nil {
		return
	}
	all, err := s.member.Membership().Brokers(context.Background())
	require.NoError(s.t, err)
	s.run(BrokersChanged{all})
}

// Drop makes sim a Pusher, together with Push.
func (s *sim) Drop() {}

// Push brings a request to a broker at once.
func (s *sim) Push(broker int32, epoch int64, req kmsg.Request) kmsg.Response {
	b := s.brokers[broker]
	require.NotNil(s.t, b, "a push to broker %d, which is dead", broker)
	require.Equal(s.t, b.registration.Epoch(), epoch)
	// As over a wire: what is sent must be encodable, and nothing may be shared.
	sent := kmsg.RequestForKey(req.Key())
	sent.SetVersion(req.GetVersion())
	require.NoError(s.t, sent.ReadFrom(req.AppendTo(nil)))
	return b.take(sent)
}

func (s *sim) topics() map[string]election.Topic {
	all, err := s.member.Metadata().Topics(context.Background())
	require.NoError(s.t, err)
	m := map[string]election.Topic{}
	for _, t := range all {
		m[t.Name] = t
	}
	return m
}

// create creates a topic with replicas as given.
func (s *sim) create(name string, replicas ...[]int32) *CreateTopics {
	c := &CreateTopics{Topics: []NewTopic{{Name: name, Partitions: -1, ReplicationFactor: -1}}}
	for i, r := range replicas {
		c.Topics[0].Manual = append(c.Topics[0].Manual, ManualPartition{int32(i), r})
	}
	s.run(c)
	return c
}

func (s *sim) state(name string, partition int) election.PartitionState {
	s.t.Helper()
	t, ok := s.topics()[name]
	require.True(s.t, ok)
	require.NotNil(s.t, t.Partitions[partition].State)
	return *t.Partitions[partition].State
}

// isr has a partition's leader ask for another ISR.
func (s *sim) isr(name string, partition int32, isr ...int32) *kmsg.AlterPartitionResponse {
	s.t.Helper()
	st := s.state(name, int(partition))
	req := &kmsg.AlterPartitionRequest{Version: 2, BrokerID: st.Leader, BrokerEpoch: s.brokers[st.Leader].registration.Epoch(),
		Topics: []kmsg.AlterPartitionRequestTopic{{TopicID: s.topics()[name].ID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{
			{Partition: partition, LeaderEpoch: st.LeaderEpoch, PartitionEpoch: st.PartitionEpoch, NewISR: isr}}}}}
	c := &AlterPartition{Request: req, Response: req.ResponseKind().(*kmsg.AlterPartitionResponse)}
	s.run(c)
	return c.Response
}

// check sees that what must hold when nothing is left to do does.
func (s *sim) check() {
	s.t.Helper()
	topics := s.topics()
	for _, t := range topics {
		require.NotZero(s.t, t.ID, "%s has no id", t.Name)
		if t.Deleting {
			waits := slices.ContainsFunc(t.Partitions, func(p election.Partition) bool {
				return slices.ContainsFunc(p.Replicas, func(id int32) bool { return !s.well(id) })
			})
			require.True(s.t, waits, "%s: its deletion waits for nobody", t.Name)
			continue
		}
		for i, p := range t.Partitions {
			s.checkPartition(&t, i, &p)
		}
	}
	for id, b := range s.brokers {
		b.check(id, topics)
	}
}

// well says whether a broker is alive, and its log directory can be used.
func (s *sim) well(id int32) bool { return s.brokers[id] != nil && !s.brokers[id].failed }

func (s *sim) checkPartition(t *election.Topic, i int, p *election.Partition) {
	s.t.Helper()
	what := fmt.Sprintf("%s-%d: %+v", t.Name, i, p)
	alive := keep(p.Replicas, func(id int32) bool { return s.brokers[id] != nil })
	if p.State == nil {
		require.Empty(s.t, alive, "%s: no state though a replica lives", what)
		return
	}
	st := p.State
	require.NotEmpty(s.t, st.ISR, what)
	require.False(s.t, repeats(st.ISR), what)
	require.True(s.t, subset(st.ISR, p.Replicas), "in sync but no replica: %s", what)
	living := keep(st.ISR, s.well)
	if len(living) > 0 {
		require.Contains(s.t, living, st.Leader, "somebody in sync lives and does not lead: %s", what)
		require.Equal(s.t, living, st.ISR, "in sync and dead: %s", what)
	} else {
		require.Equal(s.t, election.NoBroker, st.Leader, what)
	}
	require.True(s.t, subset(p.Adding, p.Replicas) && subset(p.Removing, p.Replicas), what)
	if target := keep(p.Replicas, func(id int32) bool { return !slices.Contains(p.Removing, id) }); len(p.Adding)+len(p.Removing) > 0 && st.Leader >= 0 {
		require.False(s.t, subset(target, st.ISR), "arrived, but still moving: %s", what)
	}
	key := fmt.Sprintf("%x-%d", t.ID, i)
	old, ok := s.seen[key]
	s.seen[key] = *st
	if ok {
		require.GreaterOrEqual(s.t, st.PartitionEpoch, old.PartitionEpoch, what)
		require.GreaterOrEqual(s.t, st.LeaderEpoch, old.LeaderEpoch, what)
		if st.Leader != old.Leader {
			require.Greater(s.t, st.LeaderEpoch, old.LeaderEpoch, "another leader under the same epoch: %s", what)
		}
		if st.PartitionEpoch == old.PartitionEpoch {
			require.Equal(s.t, old, *st, what)
		}
	}
}

// fakeBroker takes the controller's requests as a broker does (kafka.server.ReplicaManager, MetadataCache).
type fakeBroker struct {
	s            *sim
	registration election.Registration
	cache        *metadata.Cache
	replicas     map[tp]kmsg.LeaderAndISRRequestTopicPartition
	epoch        int32
	failed       bool // its log directory
	stopping     bool
	stopped      map[tp]bool // replicas that were told to stop
}

func newFakeBroker(s *sim, id int32, r election.Registration) *fakeBroker {
	return &fakeBroker{s: s, registration: r, cache: metadata.NewCache(r.Epoch), replicas: map[tp]kmsg.LeaderAndISRRequestTopicPartition{}, stopped: map[tp]bool{}}
}

func (b *fakeBroker) take(req kmsg.Request) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.UpdateMetadataRequest:
		resp := b.cache.Update(req)
		require.Zero(b.s.t, resp.ErrorCode)
		return resp
	case *kmsg.LeaderAndISRRequest:
		require.GreaterOrEqual(b.s.t, req.ControllerEpoch, b.epoch)
		b.epoch = req.ControllerEpoch
		resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
		for _, t := range req.TopicStates {
			out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
			for _, p := range t.PartitionStates {
				k := tp{t.Topic, p.Partition}
				result := kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition}
				if have, ok := b.replicas[k]; b.failed {
					result.ErrorCode = 56
				} else if !ok || have.LeaderEpoch < p.LeaderEpoch {
					if p.Leader >= 0 {
						_, alive := b.cache.Snapshot().Broker(p.Leader)
						require.True(b.s.t, alive, "%v's leader %d is not in the cache yet", k, p.Leader)
					}
					b.replicas[k] = p
					delete(b.stopped, k)
				}
				out.Partitions = append(out.Partitions, result)
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	case *kmsg.StopReplicaRequest:
		resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
		for _, t := range req.Topics {
			for _, p := range t.PartitionStates {
				k := tp{t.Topic, p.Partition}
				require.True(b.s.t, p.Delete || b.stopping, "%v: only who is about to stop is told to stop a replica", k)
				result := kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition}
				if b.failed {
					result.ErrorCode = 56
				} else {
					delete(b.replicas, k)
					b.stopped[k] = !p.Delete
				}
				resp.Partitions = append(resp.Partitions, result)
			}
		}
		return resp
	}
	require.Fail(b.s.t, "unknown push")
	return nil
}

// check compares what a broker was told with what is decided.
func (b *fakeBroker) check(id int32, topics map[string]election.Topic) {
	t := b.s.t
	t.Helper()
	snapshot := b.cache.Snapshot()
	require.Len(t, snapshot.Brokers(), len(b.s.brokers))
	controller, _ := snapshot.Controller()
	require.Equal(t, b.s.rules.BrokerID, controller)
	for _, known := range snapshot.Topics() {
		topic, ok := topics[known.Name]
		require.True(t, ok && !topic.Deleting, "broker %d knows of %s, which is gone", id, known.Name)
	}
	for name, topic := range topics {
		for i, p := range topic.Partitions {
			if topic.Deleting || p.State == nil {
				continue
			}
			known, ok := snapshot.Topic(name)
			require.True(t, ok, "broker %d does not know of %s", id, name)
			require.Equal(t, [16]byte(topic.ID), known.ID)
			got, ok := known.Partition(int32(i))
			require.True(t, ok)
			require.Equal(t, p.State.Leader, got.Leader, "broker %d, %s-%d", id, name, i)
			require.Equal(t, p.State.LeaderEpoch, got.LeaderEpoch)
			require.Equal(t, p.State.PartitionEpoch, got.PartitionEpoch)
			require.Equal(t, p.Replicas, got.Replicas)
			require.Equal(t, p.State.ISR, got.ISR)
			require.Equal(t, len(keep(p.Replicas, func(id int32) bool { return !b.s.well(id) })), len(got.Offline), "broker %d, %s-%d: %v", id, name, i, got.Offline)
			if k := (tp{name, int32(i)}); b.stopped[k] {
				require.NotEqual(t, id, p.State.Leader)
				require.True(t, !slices.Contains(p.State.ISR, id) || p.State.Leader == election.NoBroker, "stopped, and in sync: %v", k)
			} else if slices.Contains(p.Replicas, id) && !b.failed {
				have, ok := b.replicas[tp{name, int32(i)}]
				require.True(t, ok, "broker %d has no replica of %s-%d", id, name, i)
				require.Equal(t, p.State.Leader, have.Leader)
				require.Equal(t, p.State.LeaderEpoch, have.LeaderEpoch)
			}
		}
	}
	for k := range b.replicas {
		if b.failed {
			break // what can't be deleted stays
		}
		topic, ok := topics[k.topic]
		require.True(t, ok && slices.Contains(topic.Partitions[k.partition].Replicas, id), "broker %d has a replica of %v left over", id, k)
	}
}
