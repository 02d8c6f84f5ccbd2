package journal

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func seqs(list []Entry) []uint64 {
	out := []uint64{}
	for _, e := range list {
		out = append(out, e.Seq)
	}
	return out
}

// TestJournalAgainstModel compares a journal with a plain list that is cut in the obvious way.
func TestJournalAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, each := rapid.IntRange(1, 20).Draw(t, "max"), rapid.IntRange(1, 5).Draw(t, "per subject")
		j := New(most, each, time.Now)
		var model []Entry
		for n := range rapid.IntRange(0, 100).Draw(t, "events") {
			e := WentAway{Broker: int32(rapid.IntRange(0, 7).Draw(t, "subject"))}
			j.Record(e)
			same := 0
			for _, m := range model {
				if m.Event == e {
					same++
				}
			}
			if same == each {
				i := slices.IndexFunc(model, func(m Entry) bool { return m.Event == e })
				model = slices.Delete(model, i, i+1)
			}
			if len(model) == most {
				model = model[1:]
			}
			model = append(model, Entry{Seq: uint64(n + 1), Event: e})

			assert.Equal(t, seqs(model), seqs(j.Latest(0)))
			for subject := range int32(8) {
				var want []Entry
				for _, m := range model {
					if m.Event.About() == OfBroker(subject) {
						want = append(want, m)
					}
				}
				assert.Equal(t, seqs(want), seqs(j.About(OfBroker(subject))))
			}
			assert.LessOrEqual(t, len(j.slots), most, "memory is bounded")
			if few := min(3, len(model)); few > 0 {
				assert.Equal(t, seqs(model[len(model)-few:]), seqs(j.Latest(few)))
			}
		}
		assert.LessOrEqual(t, len(j.subjects), most)
	})
}

// TestNoisySubject: what one group does doesn't push out what happened to others.
func TestNoisySubject(t *testing.T) {
	j := New(100, 10, time.Now)
	j.Record(DirFailed{Broker: 1, Dir: "/a", Err: "EIO"})
	for range 1000 {
		j.Record(MemberOut{Group: "g", Cause: Left})
	}
	assert.Len(t, j.About(OfGroup("g")), 10)
	assert.Len(t, j.About(OfBroker(1)), 1)
}

func TestNoJournal(t *testing.T) {
	var j *Journal
	j.Record(WentAway{Broker: 1})
	assert.Empty(t, j.Latest(0))
	assert.Empty(t, j.About(OfBroker(1)))
}

func TestJournalFromManyGoroutines(t *testing.T) {
	j := New(50, 5, time.Now)
	var all sync.WaitGroup
	for id := range int32(4) {
		all.Go(func() {
			for range 200 {
				j.Record(Registered{Broker: id})
				j.About(OfBroker(id))
				j.Latest(10)
			}
		})
	}
	all.Wait()
	assert.Len(t, j.Latest(0), 20)
}

// TestEvents: every event says what it is about, reads as a sentence, and has names for programs in its facts.
func TestEvents(t *testing.T) {
	m := Member{ID: "c-1", ClientID: "c", Host: "10.0.0.1"}
	static := Member{ID: "i-1", Instance: "i"}
	group, part := OfGroup("g"), OfPartition("t", 3)
	for _, c := range []struct {
		event Event
		about Subject
		text  string
	}{
		{MemberOut{Group: "g", Member: m, Cause: Left}, group, "member c-1 at 10.0.0.1 left"},
		{MemberOut{Group: "g", Member: m, Cause: SessionTimeout, Timeout: Millis(10 * time.Second), Silent: Millis(10012 * time.Millisecond)}, group,
			"member c-1 at 10.0.0.1 was put out: no heartbeat for 10s, and its session.timeout.ms is 10000"},
		{MemberOut{Group: "g", Member: static, Cause: RebalanceTimeout, Timeout: Millis(time.Minute)}, group,
			"static member i (i-1) was put out: it did not join the rebalance within 1m0s (max.poll.interval.ms of the slowest member); it may have been busy with what it polled"},
		{MemberOut{Group: "g", Member: m, Cause: SyncTimeout, Timeout: Millis(time.Second)}, group,
			"member c-1 at 10.0.0.1 was put out: it joined, and did not ask for its assignment within 1s"},
		{MemberOut{Group: "g", Member: m, Cause: NeverAnswered, Timeout: Millis(time.Minute)}, group,
			"member c-1 at 10.0.0.1 was put out: it was new, and has waited for the rebalance longer than 1m0s"},
		{MemberOut{Group: "g", Member: m, Cause: GroupFull}, group, "member c-1 at 10.0.0.1 was put out: the group has as many members as group.max.size allows"},
		{RebalanceBegan{Group: "g", Cause: Joined, Member: m}, group, "rebalance began: member c-1 at 10.0.0.1 joined"},
		{RebalanceBegan{Group: "g", Cause: LeaderRejoined, Member: m}, group, "rebalance began: member c-1 at 10.0.0.1, the leader, joined again: it saw other partitions or topics than before"},
		{RebalanceBegan{Group: "g", Cause: AssignmentFailed}, group, "rebalance began: the assignment could not be stored"},
		{RebalanceEnded{Group: "g", Generation: 4, Members: 2, Took: Millis(2 * time.Second), TimedOut: true, Last: m, LastAfter: Millis(1500 * time.Millisecond), Absent: 1}, group,
			"rebalance ended after 2s: generation 4 has 2 members; the time for joining was up; the last to join was member c-1 at 10.0.0.1, after 1.5s; 1 static member did not join, and stay for now"},
		{RebalanceEnded{Group: "g", Generation: 5}, group, "rebalance ended after 0s: generation 5 has no members"},
		{Assigned{Group: "g", Generation: 4, Leader: m, Took: Millis(20 * time.Millisecond)}, group, "generation 4 was assigned by member c-1 at 10.0.0.1 within 20ms"},
		{LeaderChanged{Topic: "t", Partition: 3, From: 1, To: 2, LeaderEpoch: 7, Reason: LeaderDied}, part, "broker 2 leads from epoch 7 on: broker 1, which led, is not alive"},
		{LeaderChanged{Topic: "t", Partition: 3, From: 1, To: -1, ISR: []int32{1}, Reason: NobodyLeft}, part, "lost its leader, broker 1, and nobody in sync is alive to follow it (ISR [1])"},
		{ISRChanged{Topic: "t", Partition: 3, From: []int32{1, 2}, To: []int32{1}, Leader: 1, Reason: LeaderAsked}, part, "the in-sync set went from [1 2] to [1], as the leader, broker 1, asked"},
		{FellBehind{Topic: "t", Partition: 3, Follower: 2, Behind: 5, Lag: Millis(time.Minute), Allowed: Millis(30 * time.Second), Fetched: true}, part,
			"broker 2 fell out of the in-sync set: not caught up for 1m0s (replica.lag.time.max.ms is 30s), it fetches but is 5 records behind"},
		{FellBehind{Topic: "t", Partition: 3, Follower: 2, Behind: 5, Lag: Millis(time.Minute), Unheard: Millis(time.Minute), Allowed: Millis(30 * time.Second), Fetched: true}, part,
			"broker 2 fell out of the in-sync set: not caught up for 1m0s (replica.lag.time.max.ms is 30s), it has not fetched for 1m0s"},
		{CaughtUp{Topic: "t", Partition: 3, Follower: 2, End: 9}, part, "broker 2 caught up, at offset 9, and is to be in sync again"},
		{RoleTaken{Topic: "t", Partition: 3, Leader: -1}, part, "this broker follows nobody under epoch 0: there is no leader"},
		{CutOff{Topic: "t", Partition: 3, Leader: 1, End: 9, To: 7}, part, "this broker's replica was cut from offset 9 to 7: its leader, broker 1, has nothing or something else there"},
		{Stuck{Topic: "t", Partition: 3, Leader: 1, End: 9, Err: "EIO"}, part, "this broker's replica, at offset 9, can't follow broker 1: EIO"},
		{RegistrationLost{Broker: 1, Epoch: 5}, OfBroker(1), "its registration, of epoch 5, is lost: the coordination did not hear of it in time"},
		{PluginSaid{Role: "partitioner", Name: "x", Level: "WARN", Text: "slow"}, OfPlugin("partitioner", "x"), "WARN: slow"},
		{ShardFailed{Shard: 4, Err: "EIO"}, OfShard(4), "shard 4 could not be read: EIO"},
		{Phase{Broker: 1, Phase: "serving", Took: Millis(time.Second)}, OfBroker(1), "serving, after 1s"},
	} {
		assert.Equal(t, c.about, c.event.About())
		assert.Equal(t, c.text, c.event.String())
		assert.NotEmpty(t, c.event.Kind())
	}
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	text, err := json.Marshal(Entry{Seq: 3, At: at, Event: MemberOut{Group: "g", Member: m, Cause: SessionTimeout, Timeout: Millis(time.Second)}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"seq": 3, "at": "2024-05-01T12:00:00Z", "kind": "member-out", "about": "group g",
		"text": "member c-1 at 10.0.0.1 was put out: no heartbeat for 0s, and its session.timeout.ms is 1000",
		"facts": {"group": "g", "member": {"id": "c-1", "client_id": "c", "host": "10.0.0.1"}, "cause": "session-timeout", "timeout_ms": 1000}}`, string(text))
}

func TestSubjects(t *testing.T) {
	for want, s := range map[string]Subject{
		"group g": OfGroup("g"), "partition t-0": OfPartition("t", 0), "broker 2": OfBroker(2), "shard 7": OfShard(7), "plugin a/b": OfPlugin("a", "b"),
	} {
		assert.Equal(t, want, s.String())
	}
}

// BenchmarkRecord is what an event costs: nothing beside itself, once the journal is full.
func BenchmarkRecord(b *testing.B) {
	j := New(DefaultEvents, DefaultPerSubject, time.Now)
	b.ReportAllocs()
	for i := range b.N {
		j.Record(WentAway{Broker: int32(i % 1000)})
	}
}
