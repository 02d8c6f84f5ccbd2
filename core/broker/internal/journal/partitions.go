package journal

import "fmt"

// Reason says why a partition got the leader, or the in-sync set, that it got.
type Reason string

// The reasons.
const (
	FirstLeader   Reason = "new-partition"
	LeaderDied    Reason = "leader-not-alive"
	LeaderStops   Reason = "leader-stops"      // controlled shutdown
	DirectoryLost Reason = "log-dir-failed"    // of the leader
	Reassigned    Reason = "reassignment"      // the leader isn't part of where the partition goes
	Preferred     Reason = "preferred-replica" // by command, or auto.leader.rebalance.enable
	ReplicaCame   Reason = "replica-came-back" // there was no leader
	Unclean       Reason = "unclean"           // nobody in sync was alive; what only they had is lost
	NobodyLeft    Reason = "nobody-in-sync"    // and so there is no leader
	LeaderAsked   Reason = "leader-asked"      // AlterPartition (KIP-497)
	BrokersGone   Reason = "brokers-not-alive"
)

// LeaderChanged says that the controller, which is this broker, gave a partition another leader.
type LeaderChanged struct {
	Topic       string  `json:"topic"`
	Partition   int32   `json:"partition"`
	From        int32   `json:"from"` // -1: there was none
	To          int32   `json:"to"`   // -1: there is none
	LeaderEpoch int32   `json:"leader_epoch"`
	ISR         []int32 `json:"isr"`
	Reason      Reason  `json:"reason"`
}

// Kind is "leader-changed".
func (LeaderChanged) Kind() string { return "leader-changed" }

// About is the partition.
func (e LeaderChanged) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e LeaderChanged) String() string {
	if e.To < 0 {
		return fmt.Sprintf("lost its leader, broker %d, and nobody in sync is alive to follow it (ISR %v)", e.From, e.ISR)
	}
	return fmt.Sprintf("broker %d leads from epoch %d on: %s", e.To, e.LeaderEpoch, e.why())
}

func (e LeaderChanged) why() string {
	switch e.Reason {
	case FirstLeader:
		return "it is the partition's first leader"
	case LeaderDied:
		return fmt.Sprintf("broker %d, which led, is not alive", e.From)
	case LeaderStops:
		return fmt.Sprintf("broker %d, which led, is stopping and handed over", e.From)
	case DirectoryLost:
		return fmt.Sprintf("the log directory of broker %d, which led, failed", e.From)
	case Reassigned:
		return fmt.Sprintf("the partition moves away from broker %d, which led", e.From)
	case Preferred:
		return fmt.Sprintf("it is the preferred replica, and took over from broker %d", e.From)
	case ReplicaCame:
		return "there was no leader, and it came back"
	case Unclean:
		return fmt.Sprintf("nobody in sync was alive, and unclean.leader.election.enable, or a command, allowed it though it was not: records that only broker %d had are lost", e.From)
	}
	return string(e.Reason)
}

// ISRChanged says that the controller, which is this broker, recorded another in-sync set under the same leader.
type ISRChanged struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	From      []int32 `json:"from"`
	To        []int32 `json:"to"`
	Leader    int32   `json:"leader"`
	Reason    Reason  `json:"reason"`
}

// Kind is "isr-changed".
func (ISRChanged) Kind() string { return "isr-changed" }

// About is the partition.
func (e ISRChanged) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e ISRChanged) String() string {
	switch e.Reason {
	case LeaderAsked:
		return fmt.Sprintf("the in-sync set went from %v to %v, as the leader, broker %d, asked", e.From, e.To, e.Leader)
	case BrokersGone:
		return fmt.Sprintf("the in-sync set went from %v to %v: who is missing is not alive, is stopping, or lost its log directory", e.From, e.To)
	}
	return fmt.Sprintf("the in-sync set went from %v to %v: %s", e.From, e.To, e.Reason)
}

// FellBehind says that a leader, which is this broker, asked for a follower to be taken out of the in-sync set.
type FellBehind struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Follower  int32  `json:"follower"`
	Behind    int64  `json:"behind"`      // offsets between the ends of the two logs; -1: its end isn't known
	Lag       Millis `json:"lag_ms"`      // since it was last caught up
	Unheard   Millis `json:"unheard_ms"`  // since it last fetched
	Fetched   bool   `json:"fetched"`     // it has fetched at all under this leader
	Allowed   Millis `json:"allowed_ms"`  // replica.lag.time.max.ms
	BrokerUp  bool   `json:"broker_up"`   // its broker is known to live
	LeaderEnd int64  `json:"leader_end"`  // the leader's log end offset
	Epoch     int32  `json:"epoch"`       // leader epoch
	Remaining int    `json:"isr_members"` // how many are in sync without it
}

// Kind is "fell-behind".
func (FellBehind) Kind() string { return "fell-behind" }

// About is the partition.
func (e FellBehind) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e FellBehind) String() string {
	text := fmt.Sprintf("broker %d fell out of the in-sync set: not caught up for %s (replica.lag.time.max.ms is %s)", e.Follower, e.Lag, e.Allowed)
	switch {
	case !e.Fetched:
		return text + ", it has not fetched at all from this leader"
	case e.Unheard >= e.Allowed/2:
		return text + fmt.Sprintf(", it has not fetched for %s", e.Unheard)
	case e.Behind >= 0:
		return text + fmt.Sprintf(", it fetches but is %d records behind", e.Behind)
	}
	return text
}

// CaughtUp says that a leader, which is this broker, asked for a follower to be taken into the in-sync set.
type CaughtUp struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Follower  int32  `json:"follower"`
	End       int64  `json:"end"` // the follower's log end offset
}

// Kind is "caught-up".
func (CaughtUp) Kind() string { return "caught-up" }

// About is the partition.
func (e CaughtUp) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e CaughtUp) String() string {
	return fmt.Sprintf("broker %d caught up, at offset %d, and is to be in sync again", e.Follower, e.End)
}

// ISRRefused says that the controller didn't take a leader's wish for another in-sync set.
type ISRRefused struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Wanted    []int32 `json:"wanted"`
}

// Kind is "isr-refused".
func (ISRRefused) Kind() string { return "isr-refused" }

// About is the partition.
func (e ISRRefused) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e ISRRefused) String() string {
	return fmt.Sprintf("the controller did not take %v for the in-sync set", e.Wanted)
}

// RoleTaken says that this broker's replica leads, or follows, from now on, as the controller said.
type RoleTaken struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Leader      int32  `json:"leader"` // -1 none
	LeaderEpoch int32  `json:"leader_epoch"`
	Leads       bool   `json:"leads"` // this broker
}

// Kind is "role-taken".
func (RoleTaken) Kind() string { return "role-taken" }

// About is the partition.
func (e RoleTaken) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e RoleTaken) String() string {
	switch {
	case e.Leads:
		return fmt.Sprintf("this broker leads under epoch %d", e.LeaderEpoch)
	case e.Leader < 0:
		return fmt.Sprintf("this broker follows nobody under epoch %d: there is no leader", e.LeaderEpoch)
	}
	return fmt.Sprintf("this broker follows broker %d under epoch %d", e.Leader, e.LeaderEpoch)
}

// CutOff says that this broker's replica threw records away that its leader doesn't have.
type CutOff struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Leader      int32  `json:"leader"`
	LeaderEpoch int32  `json:"leader_epoch"`
	End         int64  `json:"end"` // log end offset before
	To          int64  `json:"to"`  // and after; beyond End: the log was begun anew there
}

// Kind is "cut-off".
func (CutOff) Kind() string { return "cut-off" }

// About is the partition.
func (e CutOff) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e CutOff) String() string {
	if e.To > e.End {
		return fmt.Sprintf("this broker's replica ended at offset %d, before the log of its leader, broker %d, begins: it was begun anew at %d", e.End, e.Leader, e.To)
	}
	return fmt.Sprintf("this broker's replica was cut from offset %d to %d: its leader, broker %d, has nothing or something else there", e.End, e.To, e.Leader)
}

// Stuck says that this broker's replica can't follow its leader for now. It is tried again.
type Stuck struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Leader    int32  `json:"leader"`
	End       int64  `json:"end"` // log end offset of the replica
	Err       string `json:"error"`
}

// Kind is "stuck".
func (Stuck) Kind() string { return "stuck" }

// About is the partition.
func (e Stuck) About() Subject { return OfPartition(e.Topic, e.Partition) }

func (e Stuck) String() string {
	return fmt.Sprintf("this broker's replica, at offset %d, can't follow broker %d: %s", e.End, e.Leader, e.Err)
}
