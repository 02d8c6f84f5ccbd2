package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// PartitionFacts are what a broker knows of a partition.
type PartitionFacts struct {
	Now       time.Time
	Broker    int32 // this one
	Topic     string
	Partition int32
	// Known is the partition as the cluster's metadata has it, nil when there is none.
	Known *metadata.Partition
	// TopicPartitions is how many partitions the topic has, 0 when there is no such topic.
	TopicPartitions int
	Alive           func(broker int32) bool
	Controller      int32 // -1: none was heard of
	// Here is this broker's replica, nil when it has none.
	Here *partition.Standing

	LagMax        time.Duration // replica.lag.time.max.ms
	MinISR        int           // min.insync.replicas of the topic
	Unclean       bool          // unclean.leader.election.enable of the topic
	AutoRebalance time.Duration // how often preferred leaders are elected, 0 for never
	Imbalance     int32         // and beyond which percentage of imbalance
	Throttled     bool          // what this broker's replica sends counts for its quota of replication
	// FetchThrottled says whether what a follower fetches counts for its broker's quota of replication.
	FetchThrottled func(broker int32) bool

	Events []journal.Entry // of the partition
	// Brokers are the events of the brokers that have replicas.
	Brokers map[int32][]journal.Entry
}

// PartitionState is a partition as an explanation shows it.
type PartitionState struct {
	Leader      int32     `json:"leader"` // -1 none
	LeaderEpoch int32     `json:"leader_epoch"`
	Preferred   int32     `json:"preferred"` // the first replica
	Replicas    []Replica `json:"replicas"`
	MinISR      int       `json:"min_insync_replicas"`
	Moving      bool      `json:"moving"` // a reassignment goes on, as far as this broker knows
}

// Replica is a replica as an explanation shows it.
type Replica struct {
	Broker  int32 `json:"broker"`
	Alive   bool  `json:"alive"`
	InSync  bool  `json:"in_sync"`
	Offline bool  `json:"offline"` // its broker isn't alive, or its log directory failed
	// What the leader knows of a follower; absent elsewhere.
	End       *int64          `json:"end,omitempty"`
	Behind    *int64          `json:"behind,omitempty"`
	CaughtUp  *journal.Millis `json:"since_caught_up_ms,omitempty"`
	LastFetch *journal.Millis `json:"since_last_fetch_ms,omitempty"`
}

// Partition explains why a partition has the leader that it has, and why it is under-replicated if it is.
func Partition(f PartitionFacts) Explanation {
	e := begin(journal.OfPartition(f.Topic, f.Partition), f.Broker, f.Now, f.Events)
	if f.Known == nil {
		missing(&e, f)
		return e
	}
	e.State = partitionState(f)
	leader(&e, f)
	replicas := 0
	for _, id := range f.Known.Replicas {
		if !slices.Contains(f.Known.ISR, id) {
			e.find("not-in-sync", "broker %d is not in sync: %s", id, f.behind(id))
			replicas++
		}
	}
	if n := min(f.MinISR, len(f.Known.Replicas)); len(f.Known.ISR) < n && f.Known.Leader >= 0 {
		e.find("under-min-isr", "acks=all is refused: %d in sync, and min.insync.replicas is %d", len(f.Known.ISR), f.MinISR)
	}
	moving(&e, f)
	summarise(&e, f, replicas)
	remembered(&e, f)
	e.ask(f.Known.Leader, "it leads, and knows how far its followers are")
	e.ask(f.Controller, "it is controller, and remembers why it decided what it did")
	return e
}

func missing(e *Explanation, f PartitionFacts) {
	switch {
	case f.TopicPartitions == 0:
		e.Summary = fmt.Sprintf("there is no topic %q, as far as broker %d was told", f.Topic, f.Broker)
	default:
		e.Summary = fmt.Sprintf("topic %q has no partition %d: it has %s", f.Topic, f.Partition, count(f.TopicPartitions, "partition"))
	}
	e.ask(f.Controller, "it is controller, and knows all topics")
}

func partitionState(f PartitionFacts) PartitionState {
	k := f.Known
	s := PartitionState{Leader: k.Leader, LeaderEpoch: k.LeaderEpoch, Preferred: -1, Replicas: []Replica{}, MinISR: f.MinISR}
	if len(k.Replicas) > 0 {
		s.Preferred = k.Replicas[0]
	}
	for _, id := range k.Replicas {
		r := Replica{Broker: id, Alive: f.Alive(id), InSync: slices.Contains(k.ISR, id), Offline: slices.Contains(k.Offline, id)}
		if follower := f.follower(id); follower != nil {
			behind, since := f.Here.End-follower.End, journal.Millis(f.Now.Sub(follower.CaughtUp))
			r.CaughtUp = &since
			if follower.End >= 0 {
				r.End, r.Behind = &follower.End, &behind
			}
			if !follower.LastFetch.IsZero() {
				last := journal.Millis(f.Now.Sub(follower.LastFetch))
				r.LastFetch = &last
			}
		}
		s.Replicas = append(s.Replicas, r)
	}
	s.Moving = f.Here != nil && len(f.Here.Adding)+len(f.Here.Removing) > 0
	return s
}

// follower is what this broker, as leader, knows of another replica, or nil.
func (f *PartitionFacts) follower(id int32) *partition.Follower {
	if f.Here == nil || f.Here.Role != partition.RoleLeader {
		return nil
	}
	for i := range f.Here.Followers {
		if f.Here.Followers[i].Broker == id {
			return &f.Here.Followers[i]
		}
	}
	return nil
}

// leader explains who leads, or why nobody does.
func leader(e *Explanation, f PartitionFacts) {
	k := f.Known
	var preferred int32 = -1
	if len(k.Replicas) > 0 {
		preferred = k.Replicas[0]
	}
	switch {
	case k.Leader < 0:
		e.find("no-leader", "nobody leads: only replicas in sync (%v) may, because they alone have all that was acknowledged, and none of them is there: %s", k.ISR, f.absent(k.ISR))
		if f.Unclean {
			e.find("unclean-allowed", "unclean.leader.election.enable is set: as soon as any replica is alive it leads, and what it lacks is lost")
		} else {
			e.find("unclean-forbidden", "start one of them again; if none can come back, `barnabas topic elect-leaders --unclean` makes another replica lead, and what that lacks is lost")
		}
	case k.Leader == preferred:
		e.find("preferred-leads", "broker %d leads because it is the preferred replica, the first in the list %v", k.Leader, k.Replicas)
	case !f.Alive(preferred):
		e.find("preferred-not-alive", "broker %d leads because the preferred replica's broker, %d, is not alive%s", k.Leader, preferred, f.gone(preferred))
	case slices.Contains(k.Offline, preferred):
		e.find("preferred-offline", "broker %d leads because the log directory of the preferred replica, on broker %d, failed", k.Leader, preferred)
	case !slices.Contains(k.ISR, preferred):
		e.find("preferred-not-in-sync", "broker %d leads because the preferred replica, on broker %d, is not in sync", k.Leader, preferred)
	default:
		e.find("preferred-waits", "broker %d leads though the preferred replica, on broker %d, is alive and in sync: nothing gave the leadership back yet; %s", k.Leader, preferred, f.giveBack())
	}
}

func (f *PartitionFacts) giveBack() string {
	if f.AutoRebalance > 0 {
		return fmt.Sprintf("auto.leader.rebalance.enable does so every %s, for brokers that lack more than %d%% of what they should lead, and `barnabas topic elect-leaders` at once", f.AutoRebalance, f.Imbalance)
	}
	return "auto.leader.rebalance.enable is off, so `barnabas topic elect-leaders` has to"
}

// absent says why replicas can't lead.
func (f *PartitionFacts) absent(ids []int32) (text string) {
	for i, id := range ids {
		if i > 0 {
			text += ", "
		}
		switch {
		case !f.Alive(id):
			text += fmt.Sprintf("broker %d is not alive%s", id, f.gone(id))
		case slices.Contains(f.Known.Offline, id):
			text += fmt.Sprintf("the log directory of broker %d failed", id)
		default:
			text += fmt.Sprintf("broker %d is alive and about to lead", id)
		}
	}
	return text
}

// gone says since when a broker isn't alive, if this one has seen it go.
func (f *PartitionFacts) gone(id int32) string {
	events := f.Brokers[id]
	for i := len(events) - 1; i >= 0; i-- {
		switch events[i].Event.(type) {
		case journal.WentAway:
			return fmt.Sprintf(" (for %s by now)", ago(f.Now, events[i].At))
		case journal.CameAlive:
			return ""
		}
	}
	return ""
}

// behind says why a replica isn't in sync.
func (f *PartitionFacts) behind(id int32) string {
	switch {
	case !f.Alive(id):
		return "it is not alive" + f.gone(id)
	case slices.Contains(f.Known.Offline, id):
		return "its log directory failed; mend the disk and restart it"
	case f.Known.Leader < 0:
		return "there is nobody to fetch from"
	}
	follower := f.follower(id)
	if follower == nil {
		return f.asFollower(id)
	}
	switch unheard := f.Now.Sub(follower.LastFetch); {
	case follower.LastFetch.IsZero():
		return fmt.Sprintf("it is alive, but has not fetched since broker %d began to lead", f.Known.Leader)
	case unheard > f.LagMax/2 && f.FetchThrottled(id):
		return fmt.Sprintf("it is alive, and has not fetched for %s, %d records behind: what it fetches of this partition is throttled (follower.replication.throttled.rate of broker %d)", round(unheard), f.Here.End-follower.End, id)
	case unheard > f.LagMax/2:
		return fmt.Sprintf("it is alive, but has not fetched for %s: it hangs, or can't reach broker %d, or its fetchers are stuck (its own journal tells)", round(unheard), f.Known.Leader)
	case follower.End >= f.Here.End:
		return "it has caught up, and the controller is asked to record it"
	case f.Throttled:
		return fmt.Sprintf("it fetches, is %d records behind, and replication of this partition is throttled (leader.replication.throttled.rate and its like)", f.Here.End-follower.End)
	}
	return fmt.Sprintf("it fetches, and is %d records behind; it was last caught up %s ago", f.Here.End-follower.End, ago(f.Now, follower.CaughtUp))
}

// asFollower says what is known of a replica when this broker doesn't lead.
func (f *PartitionFacts) asFollower(id int32) string {
	if id != f.Broker {
		return "it is alive; the leader knows how far it is"
	}
	if f.Here != nil && f.Here.Offline != nil {
		return fmt.Sprintf("its log directory failed: %v", f.Here.Offline)
	}
	trouble := f.Brokers[f.Known.Leader]
	for i := len(trouble) - 1; i >= 0; i-- {
		switch ev := trouble[i].Event.(type) {
		case journal.Unreachable:
			return fmt.Sprintf("this broker follows and can't fetch from broker %d, for %s by now: %s", f.Known.Leader, ago(f.Now, trouble[i].At), ev.Err)
		case journal.Reached:
			i = 0
		}
	}
	for i := len(f.Events) - 1; i >= 0; i-- {
		if stuck, ok := f.Events[i].Event.(journal.Stuck); ok {
			return fmt.Sprintf("%s ago %s", ago(f.Now, f.Events[i].At), stuck)
		}
	}
	return "this broker follows, and its journal has no trouble with that; the leader knows how far it is"
}

func moving(e *Explanation, f PartitionFacts) {
	if f.Here != nil && len(f.Here.Adding)+len(f.Here.Removing) > 0 {
		e.find("moving", "it moves: replicas on %v are added and those on %v go when the new ones are in sync", f.Here.Adding, f.Here.Removing)
	}
}

func summarise(e *Explanation, f PartitionFacts, notInSync int) {
	k := f.Known
	switch {
	case k.Leader < 0:
		e.Summary = fmt.Sprintf("offline: nobody in sync is there to lead (%d of %s in sync)", len(k.ISR), count(len(k.Replicas), "replica"))
	case notInSync > 0:
		e.Summary = fmt.Sprintf("under-replicated: %d of %s in sync, broker %d leads", len(k.Replicas)-notInSync, count(len(k.Replicas), "replica"), k.Leader)
	default:
		e.Summary = fmt.Sprintf("well: %s in sync, broker %d leads", count(len(k.Replicas), "replica"), k.Leader)
	}
}

// remembered adds the latest change of the leader, and the latest of the in-sync set, as far as this broker saw them.
func remembered(e *Explanation, f PartitionFacts) {
	var led, isr bool
	for i := len(f.Events) - 1; i >= 0 && !(led && isr); i-- {
		at := ago(f.Now, f.Events[i].At)
		switch ev := f.Events[i].Event.(type) {
		case journal.LeaderChanged:
			if !led {
				e.find("leader-changed", "%s ago: %s", at, ev)
			}
			led = true
		case journal.FellBehind:
			if !isr {
				e.find("fell-behind", "%s ago: %s", at, ev)
			}
			isr = true
		case journal.CaughtUp:
			isr = true
		}
	}
}
