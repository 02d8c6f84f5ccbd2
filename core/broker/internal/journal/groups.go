package journal

import (
	"fmt"
	"strings"
	"time"
)

// Millis is a duration that JSON shows as whole milliseconds, as Kafka's settings do.
type Millis time.Duration

// MarshalJSON writes the milliseconds.
func (m Millis) MarshalJSON() ([]byte, error) {
	return fmt.Append(nil, time.Duration(m).Milliseconds()), nil
}

// String is the duration for people: in milliseconds below a second, in tenths of seconds above.
func (m Millis) String() string {
	d := time.Duration(m)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// Member is a member of a group, as it named itself.
type Member struct {
	ID       string `json:"id"`
	Instance string `json:"instance,omitempty"` // group.instance.id of a static member (KIP-345)
	ClientID string `json:"client_id,omitempty"`
	Host     string `json:"host,omitempty"`
}

// String names the member and where it runs.
func (m Member) String() string {
	text := "member " + m.ID
	if m.Instance != "" {
		text = "static member " + m.Instance + " (" + m.ID + ")"
	}
	if m.Host != "" {
		text += " at " + strings.TrimPrefix(m.Host, "/") // as Kafka writes addresses
	}
	return text
}

// Cause says why a group rebalances, or why somebody isn't a member any more.
type Cause string

// The causes.
const (
	Joined            Cause = "member-joined"             // a new member
	Rejoined          Cause = "member-rejoined"           // a member that subscribes to something else than before
	LeaderRejoined    Cause = "leader-rejoined"           // the leader wants to assign anew: mostly, partitions were added
	StaticReplaced    Cause = "static-member-replaced"    // a static member started again and supports other protocols than before
	Left              Cause = "member-left"               // by its own word: it closed
	SessionTimeout    Cause = "session-timeout"           // it wasn't heard of for session.timeout.ms
	RebalanceTimeout  Cause = "rebalance-timeout"         // it didn't join again within the group's rebalance timeout
	SyncTimeout       Cause = "sync-timeout"              // it joined and didn't ask for its assignment within the rebalance timeout
	NeverAnswered     Cause = "join-timeout"              // it was new, and its join was not answered for five minutes
	GroupFull         Cause = "group-full"                // others had its place already (group.max.size)
	AssignmentFailed  Cause = "assignment-not-stored"     // the assignment couldn't be written
	CoordinatorLoaded Cause = "more-members-than-allowed" // a loaded group has more members than group.max.size
)

// MemberOut says that somebody isn't a member of a group any more.
type MemberOut struct {
	Group   string `json:"group"`
	Member  Member `json:"member"`
	Cause   Cause  `json:"cause"`
	Timeout Millis `json:"timeout_ms,omitempty"` // the one that passed
	Silent  Millis `json:"silent_ms,omitempty"`  // for how long it wasn't heard of, if that is known
}

// Kind is "member-out".
func (MemberOut) Kind() string { return "member-out" }

// About is the group.
func (e MemberOut) About() Subject { return OfGroup(e.Group) }

func (e MemberOut) String() string {
	switch e.Cause {
	case Left:
		return e.Member.String() + " left"
	case SessionTimeout:
		return fmt.Sprintf("%s was put out: no heartbeat for %s, and its session.timeout.ms is %d", e.Member, e.Silent, time.Duration(e.Timeout).Milliseconds())
	case RebalanceTimeout:
		return fmt.Sprintf("%s was put out: it did not join the rebalance within %s (max.poll.interval.ms of the slowest member); it may have been busy with what it polled", e.Member, e.Timeout)
	case SyncTimeout:
		return fmt.Sprintf("%s was put out: it joined, and did not ask for its assignment within %s", e.Member, e.Timeout)
	case NeverAnswered:
		return fmt.Sprintf("%s was put out: it was new, and has waited for the rebalance longer than %s", e.Member, e.Timeout)
	case GroupFull:
		return e.Member.String() + " was put out: the group has as many members as group.max.size allows"
	}
	return fmt.Sprintf("%s was put out: %s", e.Member, e.Cause)
}

// RebalanceBegan says that a group that had an assignment, or none yet, asks its members to join again.
type RebalanceBegan struct {
	Group      string `json:"group"`
	Generation int32  `json:"generation"` // the one that ends
	Cause      Cause  `json:"cause"`
	Member     Member `json:"member,omitzero"` // who caused it, if somebody did
	Members    int    `json:"members"`         // who are asked to join
	Within     Millis `json:"within_ms"`       // how long they have
}

// Kind is "rebalance-began".
func (RebalanceBegan) Kind() string { return "rebalance-began" }

// About is the group.
func (e RebalanceBegan) About() Subject { return OfGroup(e.Group) }

func (e RebalanceBegan) String() string {
	return "rebalance began: " + e.cause()
}

func (e RebalanceBegan) cause() string {
	switch e.Cause {
	case Joined:
		return e.Member.String() + " joined"
	case Rejoined:
		return e.Member.String() + " joined again with another subscription"
	case LeaderRejoined:
		return e.Member.String() + ", the leader, joined again: it saw other partitions or topics than before"
	case StaticReplaced:
		return e.Member.String() + " started again with other assignment protocols"
	case Left:
		return e.Member.String() + " left"
	case AssignmentFailed:
		return "the assignment could not be stored"
	case CoordinatorLoaded:
		return "the group was loaded with more members than group.max.size allows"
	case SessionTimeout:
		return e.Member.String() + " was not heard of for its session timeout"
	case SyncTimeout:
		return e.Member.String() + " did not ask for its assignment in time"
	case NeverAnswered:
		return e.Member.String() + " was new and waited too long"
	}
	return string(e.Cause)
}

// RebalanceEnded says that a group has a new generation, whose leader is to assign.
type RebalanceEnded struct {
	Group      string `json:"group"`
	Generation int32  `json:"generation"`
	Members    int    `json:"members"`
	Leader     Member `json:"leader,omitzero"`
	Protocol   string `json:"protocol,omitempty"`
	Took       Millis `json:"took_ms"`
	TimedOut   bool   `json:"timed_out"`       // the time for joining was up, and not everybody had joined
	Last       Member `json:"last,omitzero"`   // who joined last
	LastAfter  Millis `json:"last_after_ms"`   // and how long after the rebalance began
	Absent     int    `json:"absent,omitzero"` // static members that did not join and stay
}

// Kind is "rebalance-ended".
func (RebalanceEnded) Kind() string { return "rebalance-ended" }

// About is the group.
func (e RebalanceEnded) About() Subject { return OfGroup(e.Group) }

func (e RebalanceEnded) String() string {
	if e.Members == 0 {
		return fmt.Sprintf("rebalance ended after %s: generation %d has no members", e.Took, e.Generation)
	}
	text := fmt.Sprintf("rebalance ended after %s: generation %d has %d member%s", e.Took, e.Generation, e.Members, plural(e.Members))
	if e.TimedOut {
		text += "; the time for joining was up"
	}
	if e.Members > 1 {
		text += fmt.Sprintf("; the last to join was %s, after %s", e.Last, e.LastAfter)
	}
	if e.Absent > 0 {
		text += fmt.Sprintf("; %d static member%s did not join, and stay for now", e.Absent, plural(e.Absent))
	}
	return text
}

// Assigned says that a group's leader has brought the assignment of a generation, and that it is stored.
type Assigned struct {
	Group      string `json:"group"`
	Generation int32  `json:"generation"`
	Leader     Member `json:"leader,omitzero"`
	Took       Millis `json:"took_ms"` // since the generation began
}

// Kind is "assigned".
func (Assigned) Kind() string { return "assigned" }

// About is the group.
func (e Assigned) About() Subject { return OfGroup(e.Group) }

func (e Assigned) String() string {
	return fmt.Sprintf("generation %d was assigned by %s within %s", e.Generation, e.Leader, e.Took)
}

// ShardLoaded says that this broker coordinates a shard of groups from now on.
type ShardLoaded struct {
	Shard  int32  `json:"shard"`
	Epoch  int32  `json:"epoch"` // leader epoch of its partition
	Groups int    `json:"groups"`
	Took   Millis `json:"took_ms"`
}

// Kind is "shard-loaded".
func (ShardLoaded) Kind() string { return "shard-loaded" }

// About is the shard.
func (e ShardLoaded) About() Subject { return OfShard(e.Shard) }

func (e ShardLoaded) String() string {
	return fmt.Sprintf("this broker coordinates shard %d (%d groups, read within %s) under epoch %d", e.Shard, e.Groups, e.Took, e.Epoch)
}

// ShardFailed says that a shard of groups could not be read. It is tried again.
type ShardFailed struct {
	Shard int32  `json:"shard"`
	Epoch int32  `json:"epoch"`
	Err   string `json:"error"`
}

// Kind is "shard-failed".
func (ShardFailed) Kind() string { return "shard-failed" }

// About is the shard.
func (e ShardFailed) About() Subject { return OfShard(e.Shard) }

func (e ShardFailed) String() string {
	return fmt.Sprintf("shard %d could not be read: %s", e.Shard, e.Err)
}

// ShardLeft says that this broker doesn't coordinate a shard any more.
type ShardLeft struct {
	Shard int32 `json:"shard"`
	Epoch int32 `json:"epoch"`
}

// Kind is "shard-left".
func (ShardLeft) Kind() string { return "shard-left" }

// About is the shard.
func (e ShardLeft) About() Subject { return OfShard(e.Shard) }

func (e ShardLeft) String() string {
	return fmt.Sprintf("this broker does not coordinate shard %d any more", e.Shard)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
