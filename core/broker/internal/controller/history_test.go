package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/election"
)

// TestHistories lets brokers come and go, topics be made, grown, moved and deleted, leaders ask for other ISRs, and
// controllers die before and after any write, and sees after each step that what must hold holds.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim(t, 0, 1, 2)
		s.unclean = rapid.Bool().Draw(t, "unclean")
		name := rapid.SampledFrom([]string{"a", "b.x", "c"})
		number := rapid.Int32Range(0, 3)
		brokers := rapid.SliceOfNDistinct(rapid.Int32Range(0, 4), 0, 3, rapid.ID[int32])
		t.Repeat(map[string]func(*rapid.T){
			"":             func(*rapid.T) { s.check() },
			"broker comes": func(t *rapid.T) { s.up(rapid.Int32Range(0, 4).Draw(t, "broker")) },
			"broker goes":  func(t *rapid.T) { s.down(rapid.Int32Range(0, 4).Draw(t, "broker")) },
			"broker bounces": func(t *rapid.T) {
				// It is gone and back before the controller looks.
				id := rapid.Int32Range(0, 4).Draw(t, "broker")
				b, session := s.brokers[id], s.session
				if b == nil {
					t.Skip()
				}
				s.session = nil
				s.down(id)
				s.up(id)
				s.session = session
				s.tellBrokers()
			},
			"controller changes": func(*rapid.T) { s.takeOver() },
			"controller will die": func(t *rapid.T) {
				s.crashAt, s.after = rapid.IntRange(1, 4).Draw(t, "writes"), rapid.Bool().Draw(t, "after")
			},
			"create": func(t *rapid.T) {
				s.run(&CreateTopics{Topics: []NewTopic{{Name: name.Draw(t, "name"), Partitions: rapid.Int32Range(1, 3).Draw(t, "partitions"),
					ReplicationFactor: rapid.Int16Range(1, 3).Draw(t, "replicas")}}})
			},
			"create by hand": func(t *rapid.T) { s.create(name.Draw(t, "name"), brokers.Draw(t, "replicas")) },
			"grow": func(t *rapid.T) {
				s.run(&CreatePartitions{Topics: []MorePartitions{{Topic: name.Draw(t, "name"), Count: number.Draw(t, "count") + 1}}})
			},
			"delete": func(t *rapid.T) { s.run(&DeleteTopics{Topics: []string{name.Draw(t, "name")}}) },
			"elect": func(t *rapid.T) {
				s.run(&ElectLeaders{Unclean: rapid.Bool().Draw(t, "kind"), Partitions: []PartitionID{{name.Draw(t, "name"), number.Draw(t, "partition")}}})
			},
			"move": func(t *rapid.T) {
				target := brokers.Draw(t, "target")
				if len(target) == 0 {
					target = nil // cancel
				}
				s.run(&AlterReassignments{Partitions: []Reassignment{{PartitionID{name.Draw(t, "name"), number.Draw(t, "partition")}, target}}})
			},
			"other ISR": func(t *rapid.T) {
				topic, ok := s.topics()[name.Draw(t, "name")]
				p := number.Draw(t, "partition")
				if !ok || topic.Deleting || int(p) >= len(topic.Partitions) || topic.Partitions[p].State == nil || topic.Partitions[p].State.Leader < 0 {
					t.Skip()
				}
				part := topic.Partitions[p]
				isr := []int32{part.State.Leader}
				for _, id := range part.Replicas {
					if id != part.State.Leader && rapid.Bool().Draw(t, "in sync") {
						isr = append(isr, id)
					}
				}
				s.isr(topic.Name, p, isr...)
			},
			"stop politely": func(t *rapid.T) {
				id := rapid.Int32Range(0, 4).Draw(t, "broker")
				if s.brokers[id] == nil {
					t.Skip()
				}
				s.brokers[id].stopping = true
				if !s.run(&ControlledShutdown{Broker: id, Epoch: s.brokers[id].registration.Epoch()}) {
					return // the broker asks the next controller
				}
				for _, topic := range s.topics() {
					for _, p := range topic.Partitions {
						if !topic.Deleting && p.State != nil && p.State.Leader == id {
							require.Equal(t, []int32{id}, p.State.ISR, "others in sync could have led")
						}
					}
				}
				s.down(id)
			},
			"broker is about to stop": func(t *rapid.T) {
				id := rapid.Int32Range(0, 4).Draw(t, "broker")
				b := s.brokers[id]
				if b == nil {
					t.Skip()
				}
				b.stopping = true
				c := &ControlledShutdown{Broker: id, Epoch: b.registration.Epoch()}
				if !s.run(c) {
					b.stopping = false // the next controller doesn't know of it
					return
				}
				require.NoError(t, c.Err)
				for _, k := range c.Remaining {
					st := s.state(k.Topic, int(k.Partition))
					require.Equal(t, []int32{id}, st.ISR, "it leads %v still, though others are in sync", k)
				}
			},
			"log directory fails": func(t *rapid.T) {
				id := rapid.Int32Range(0, 4).Draw(t, "broker")
				if s.brokers[id] == nil {
					t.Skip()
				}
				s.brokers[id].failed = true
				s.run(LogDirFailed{id})
			},
			"rebalance": func(t *rapid.T) {
				s.rules.Imbalance = 0
				if !s.run(Rebalance{}) {
					return
				}
				for name, topic := range s.topics() {
					for i, p := range topic.Partitions {
						if topic.Deleting || p.State == nil || len(p.Adding)+len(p.Removing) > 0 {
							continue
						}
						first := p.Replicas[0]
						if s.well(first) && !s.brokers[first].stopping && slices.Contains(p.State.ISR, first) {
							require.Equal(t, first, p.State.Leader, "%s-%d is not led by whom it prefers", name, i)
						}
					}
				}
			},
			"topic without an id": func(t *rapid.T) {
				// As tools from before there were ids do: a new topic, or one that had an id before they wrote to it.
				n := name.Draw(t, "name")
				topic, ok := s.topics()[n]
				if !ok {
					topic = election.Topic{Name: n, Partitions: []election.Partition{{Assignment: election.Assignment{Replicas: brokers.Draw(t, "replicas")}}}}
				}
				topic.ID = election.TopicID{}
				s.mem.PutTopic(topic)
				s.run(TopicsChanged{[]string{n}, []election.Topic{topic}})
			},
			"topic from elsewhere": func(t *rapid.T) {
				// As Kafka's tools do with ZooKeeper: written without the controller, which is told.
				n := name.Draw(t, "name")
				s.ids++
				crash := s.crashAt
				s.crashAt = 0
				_, err := s.member.Metadata().CreateTopics(t.Context(), s.term.Epoch(), []election.NewTopic{{Name: n, ID: election.TopicID{s.ids},
					Partitions: []election.Assignment{{Replicas: brokers.Draw(t, "replicas")}}}})
				require.NoError(t, err)
				s.crashAt = crash
				if all, err := s.member.Metadata().Topics(t.Context(), n); err == nil {
					s.run(TopicsChanged{[]string{n}, all})
				}
			},
		})
	})
}

// TestCrashAtEveryWrite creates, grows, moves and deletes a topic with a controller that dies before or after each write
// that this takes; in the end everything is as if none had died.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			s := newSim(t, 0, 1, 2)
			s.crashAt, s.after = at, after
			// Clients repeat what they got no answer to.
			for len(s.topics()) == 0 {
				s.create("a", []int32{0, 1}, []int32{1, 2})
			}
			s.check()
			for len(s.topics()["a"].Partitions) < 3 {
				s.run(&CreatePartitions{Topics: []MorePartitions{{Topic: "a", Count: 3}}})
			}
			s.check()
			moving := func() bool { return len(s.topics()["a"].Partitions[0].Adding) > 0 }
			for !moving() {
				s.run(&AlterReassignments{Partitions: []Reassignment{{PartitionID{"a", 0}, []int32{2, 1}}}})
			}
			s.check()
			for moving() {
				s.isr("a", 0, s.state("a", 0).Leader, 1, 2)
				if st := s.state("a", 0); st.Leader == 0 {
					s.isr("a", 0, 0, 1, 2)
				}
			}
			s.check()
			require.Equal(t, []int32{2, 1}, s.topics()["a"].Partitions[0].Replicas)
			for len(s.topics()) > 0 {
				s.run(&DeleteTopics{Topics: []string{"a"}})
			}
			s.check()
			if s.crashAt > 0 {
				require.Greater(t, at, 8, "so few writes")
				break
			}
		}
	}
}

// TestPushesEncode sees that an answer to AlterPartition can be sent in every version.
func TestPushesEncode(t *testing.T) {
	s := newSim(t, 0, 1)
	s.create("a", []int32{0, 1})
	resp := s.isr("a", 0, 0)
	require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
	for v := range int16(4) {
		resp.Version = v
		again := kmsg.AlterPartitionResponse{Version: v}
		require.NoError(t, again.ReadFrom(resp.AppendTo(nil)))
		require.Equal(t, []int32{0}, again.Topics[0].Partitions[0].ISR)
	}
}
