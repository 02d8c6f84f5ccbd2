package explain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/health"
	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

var now = time.Unix(1_700_000_000, 0)

func before(d time.Duration) time.Time { return now.Add(-d) }

// text is all that an explanation says.
func text(e Explanation) string {
	lines := []string{e.Summary}
	for _, f := range e.Findings {
		lines = append(lines, f.Code+": "+f.Text)
	}
	return strings.Join(lines, "\n")
}

func TestPartition(t *testing.T) {
	alive := func(ids ...int32) func(int32) bool {
		return func(id int32) bool {
			for _, other := range ids {
				if id == other {
					return true
				}
			}
			return false
		}
	}
	leading := func(followers ...partition.Follower) *partition.Standing {
		return &partition.Standing{Role: partition.RoleLeader, End: 100, Followers: followers}
	}
	for _, c := range []struct {
		name  string
		known metadata.Partition
		alive func(int32) bool
		edit  func(*PartitionFacts)
		says  []string
	}{
		{"hangs", metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}}, alive(1, 2), func(f *PartitionFacts) {
			f.Here = leading(partition.Follower{Broker: 2, End: 40, CaughtUp: before(time.Minute), LastFetch: before(50 * time.Second)})
		}, []string{"under-replicated: 1 of 2 replicas in sync, broker 1 leads", "it is alive, but has not fetched for 50s", "preferred-leads"}},
		{"slow", metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}}, alive(1, 2), func(f *PartitionFacts) {
			f.Here = leading(partition.Follower{Broker: 2, End: 40, CaughtUp: before(time.Minute), LastFetch: before(time.Second)})
		}, []string{"it fetches, and is 60 records behind; it was last caught up 1m0s ago"}},
		{"throttled", metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}}, alive(1, 2), func(f *PartitionFacts) {
			f.Throttled = true
			f.Here = leading(partition.Follower{Broker: 2, End: 40, CaughtUp: before(time.Minute), LastFetch: before(time.Second)})
		}, []string{"replication of this partition is throttled"}},
		{"throttled follower", metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}}, alive(1, 2), func(f *PartitionFacts) {
			f.FetchThrottled = func(id int32) bool { return id == 2 }
			f.Here = leading(partition.Follower{Broker: 2, End: 40, CaughtUp: before(time.Minute), LastFetch: before(50 * time.Second)})
		}, []string{"it is alive, and has not fetched for 50s, 60 records behind: what it fetches of this partition is throttled (follower.replication.throttled.rate of broker 2)"}},
		{"never fetched", metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}}, alive(1, 2), func(f *PartitionFacts) {
			f.Here = leading(partition.Follower{Broker: 2, End: -1})
		}, []string{"has not fetched since broker 1 began to lead"}},
		{"about to be in sync", metadata.Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}}, alive(1, 2), func(f *PartitionFacts) {
			f.Here = leading(partition.Follower{Broker: 2, End: 100, LastFetch: now})
		}, []string{"it has caught up, and the controller is asked to record it"}},
		{"dead", metadata.Partition{Leader: 1, Replicas: []int32{2, 1}, ISR: []int32{1}}, alive(1), func(f *PartitionFacts) {
			f.Brokers = map[int32][]journal.Entry{2: {{At: before(time.Minute), Event: journal.WentAway{Broker: 2}}}}
			f.MinISR = 2
		}, []string{"preferred-not-alive: broker 1 leads because the preferred replica's broker, 2, is not alive (for 1m0s by now)", "under-min-isr: acks=all is refused"}},
		{"unreachable leader", metadata.Partition{Leader: 2, Replicas: []int32{2, 1}, ISR: []int32{2}}, alive(1, 2), func(f *PartitionFacts) {
			f.Brokers = map[int32][]journal.Entry{2: {{At: before(time.Minute), Event: journal.Unreachable{Broker: 2, Err: "no route"}}}}
		}, []string{"this broker follows and can't fetch from broker 2, for 1m0s by now: no route"}},
		{"stuck", metadata.Partition{Leader: 2, Replicas: []int32{2, 1}, ISR: []int32{2}}, alive(1, 2), func(f *PartitionFacts) {
			f.Brokers = map[int32][]journal.Entry{2: {{Event: journal.Unreachable{Broker: 2}}, {Event: journal.Reached{Broker: 2}}}}
			f.Events = []journal.Entry{{At: before(time.Minute), Event: journal.Stuck{Topic: "t", Leader: 2, End: 4, Err: "EIO"}}}
		}, []string{"at offset 4, can't follow broker 2: EIO"}},
		{"own disk", metadata.Partition{Leader: 2, Replicas: []int32{2, 1}, ISR: []int32{2}}, alive(1, 2), func(f *PartitionFacts) {
			f.Here = &partition.Standing{Role: partition.RoleFollower, Offline: errors.New("EIO")}
		}, []string{"its log directory failed: EIO"}},
		{"nobody", metadata.Partition{Leader: -1, Replicas: []int32{2, 3}, ISR: []int32{2, 3}, Offline: []int32{2, 3}}, alive(1, 3), func(f *PartitionFacts) { f.Unclean = true },
			[]string{"offline: nobody in sync is there to lead", "broker 2 is not alive, the log directory of broker 3 failed", "unclean-allowed"}},
		{"waits", metadata.Partition{Leader: 1, Replicas: []int32{2, 1}, ISR: []int32{1, 2}}, alive(1, 2), func(f *PartitionFacts) { f.AutoRebalance, f.Imbalance = time.Minute, 10 },
			[]string{"preferred-waits", "auto.leader.rebalance.enable does so every 1m0s, for brokers that lack more than 10%"}},
		{"moves", metadata.Partition{Leader: 1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}}, alive(1, 2, 3), func(f *PartitionFacts) {
			f.Here = leading()
			f.Here.Adding, f.Here.Removing = []int32{3}, []int32{2}
		}, []string{"moving: it moves: replicas on [3] are added and those on [2] go"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := PartitionFacts{Now: now, Broker: 1, Topic: "t", Known: &c.known, TopicPartitions: 1, Alive: c.alive, Controller: 9, LagMax: 30 * time.Second, MinISR: 1, FetchThrottled: func(int32) bool { return false }}
			c.edit(&f)
			e := Partition(f)
			for _, want := range c.says {
				assert.Contains(t, text(e), want)
			}
			assert.Contains(t, e.Ask, Ask{9, "it is controller, and remembers why it decided what it did"})
			_, err := json.Marshal(e)
			require.NoError(t, err)
		})
	}
	assert.Contains(t, Partition(PartitionFacts{Topic: "t", Controller: 1}).Summary, `there is no topic "t"`)
	assert.Contains(t, Partition(PartitionFacts{Topic: "t", Partition: 4, TopicPartitions: 2}).Summary, `has no partition 4: it has 2 partitions`)
}

func TestGroup(t *testing.T) {
	member := func(id string) journal.Member {
		return journal.Member{ID: id + "-1", ClientID: id, Host: "/10.0.0.1"}
	}
	base := GroupFacts{Now: now, Broker: 1, Group: "g", Shard: 3, Coordinator: 1}
	elsewhere := base
	elsewhere.Coordinator = 2
	e := Group(elsewhere)
	assert.Equal(t, "broker 2 coordinates the group, not this one", e.Summary)
	assert.Equal(t, []Ask{{2, "it coordinates the group"}}, e.Ask)
	nobody := base
	nobody.Coordinator = -1
	assert.Contains(t, text(Group(nobody)), "nobody coordinates the group: partition 3")
	loading := base
	loading.Loading, loading.ShardEvents = true, []journal.Entry{{At: before(time.Second), Event: journal.ShardFailed{Shard: 3, Err: "EIO"}}}
	assert.Contains(t, text(Group(loading)), "shard-failed: 1s ago shard 3 could not be read: EIO")

	waiting := base
	waiting.Status = group.Status{State: group.PreparingRebalance, Since: before(2 * time.Second), Deadline: now.Add(8 * time.Second), Members: []group.MemberStatus{
		{Member: member("here"), Joined: true, Session: 10 * time.Second, Deadline: now.Add(10 * time.Second)},
		{Member: member("busy"), Session: 10 * time.Second, Deadline: now.Add(9 * time.Second)},
		{Member: member("dead"), Session: 10 * time.Second, Deadline: now.Add(time.Second)},
	}, Pending: []group.Pending{{ID: "p-1", Until: now.Add(time.Second)}}}
	for _, want := range []string{"the group rebalances, for 2s by now: 1 of 3 members joined",
		"member busy-1 at 10.0.0.1, which sends heartbeats, the last one 1s ago, but has not joined again", "member dead-1 at 10.0.0.1, which was last heard of 9s ago: it may be dead",
		"waits-for-id: it waits for a client that was given the member id p-1", "deadline: in 8s it goes on without"} {
		assert.Contains(t, text(Group(waiting)), want)
	}
	assigning := base
	assigning.Status = group.Status{State: group.CompletingRebalance, Generation: 4, Leader: "lead-1", Members: []group.MemberStatus{{Member: member("lead")}, {Member: member("other"), Synced: true}}}
	assert.Contains(t, text(Group(assigning)), "waits-for-leader: its leader, member lead-1 at 10.0.0.1, has not brought the assignment")

	// One client is put out of one rebalance after the other.
	slow := base
	slow.Status = group.Status{State: group.Stable, Generation: 9}
	for i := range 3 {
		at := before(time.Duration(30-10*i) * time.Second)
		slow.Events = append(slow.Events,
			journal.Entry{At: at, Event: journal.RebalanceBegan{Group: "g", Cause: journal.Joined, Member: member("slow")}},
			journal.Entry{At: at, Event: journal.MemberOut{Group: "g", Cause: journal.RebalanceTimeout, Member: member("slow"), Timeout: journal.Millis(time.Minute)}},
			journal.Entry{At: at, Event: journal.RebalanceEnded{Group: "g", Generation: int32(7 + i), Members: 1, Took: journal.Millis(time.Minute), TimedOut: true}},
			journal.Entry{At: at, Event: journal.Assigned{Group: "g", Generation: int32(7 + i), Took: journal.Millis(time.Millisecond)}})
	}
	e = Group(slow)
	assert.Contains(t, text(e), "repeated: in 3 of the last 3 rebalances it was client slow at 10.0.0.1: it takes longer to handle what it polls than max.poll.interval.ms allows")
	rebalances := e.State.(GroupState).Rebalances
	require.Len(t, rebalances, 3)
	assert.Equal(t, int32(9), rebalances[0].Generation, "the latest first")
	assert.Len(t, rebalances[0].PutOut, 1)
	assert.NotNil(t, rebalances[0].Assigning)
}

func TestBroker(t *testing.T) {
	well := health.Facts{Now: now, Phase: "serving", Since: before(time.Hour), Serving: true, Registered: true, Controller: 1}
	assert.Equal(t, "ready, for 1h0m0s by now", Broker(BrokerFacts{Broker: 1, Health: well}).Summary)
	alone := well
	alone.Controller = -1
	e := Broker(BrokerFacts{Broker: 1, Health: alone, Plugins: []journal.Entry{{At: before(time.Second), Event: journal.PluginSaid{Role: "partitioner", Name: "x", Level: "WARN", Text: "gone"}}}})
	assert.Equal(t, "ready, with 1 thing worth a look", e.Summary)
	assert.Contains(t, text(e), "plugin: 1s ago plugin partitioner/x said WARN: gone")
	lost := well
	lost.Registered = false
	assert.Equal(t, "not ready: not registered in the cluster yet", Broker(BrokerFacts{Broker: 1, Health: lost}).Summary)
}
