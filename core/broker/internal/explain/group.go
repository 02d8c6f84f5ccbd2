package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// GroupFacts are what a broker knows of a consumer group.
type GroupFacts struct {
	Now    time.Time
	Broker int32 // this one
	Group  string
	// Shard is what the group belongs to, -1 when that isn't known: the topic that groups are kept in doesn't exist yet.
	Shard int32
	// Coordinator leads the shard, -1 when nobody does.
	Coordinator int32
	Loading     bool // this broker coordinates the shard, and is reading it
	Status      group.Status
	Events      []journal.Entry // of the group
	ShardEvents []journal.Entry // of its shard
}

// GroupState is a group as an explanation shows it.
type GroupState struct {
	State      string        `json:"state"`
	Since      *time.Time    `json:"since,omitempty"`
	Generation int32         `json:"generation"`
	Leader     string        `json:"leader,omitempty"`
	Deadline   *time.Time    `json:"deadline,omitempty"` // when a rebalance goes on without who is missing
	Members    []GroupMember `json:"members"`
	Rebalances []Rebalance   `json:"rebalances"` // those that are remembered, the latest first
}

// GroupMember is a member as an explanation shows it.
type GroupMember struct {
	journal.Member
	SessionTimeout   journal.Millis  `json:"session_timeout_ms"`
	RebalanceTimeout journal.Millis  `json:"rebalance_timeout_ms"`
	Joined           bool            `json:"joined"`             // waits for the rebalance to end
	Silent           *journal.Millis `json:"silent_ms,omitzero"` // for how long it wasn't heard of; absent while that doesn't count
}

// Rebalance is one rebalance from its cause to its assignment.
type Rebalance struct {
	At         time.Time       `json:"at"`
	Cause      journal.Cause   `json:"cause"`
	By         journal.Member  `json:"by,omitzero"`
	PutOut     []journal.Entry `json:"put_out"` // who left or was put out, from the cause on
	Ended      bool            `json:"ended"`
	Generation int32           `json:"generation,omitempty"` // the one that came of it
	Took       journal.Millis  `json:"took_ms,omitempty"`    // until the generation began
	TimedOut   bool            `json:"timed_out"`
	Last       journal.Member  `json:"last,omitzero"` // who joined last
	LastAfter  journal.Millis  `json:"last_after_ms,omitempty"`
	Assigning  *journal.Millis `json:"assigning_ms,omitempty"` // how long the leader took to assign; absent while it hasn't
	began      journal.RebalanceBegan
	ended      journal.RebalanceEnded
}

// Group explains what a group does, who caused its last rebalances, which timeout passed, and who was late.
func Group(f GroupFacts) Explanation {
	e := begin(journal.OfGroup(f.Group), f.Broker, f.Now, f.Events)
	if done := elsewhere(&e, f); done {
		return e
	}
	rebalances := rebalancesOf(f.Events)
	e.State = groupState(f, rebalances)
	switch f.Status.State {
	case group.Dead:
		e.Summary = fmt.Sprintf("broker %d coordinates the group, and there is no such group: nobody joined it, and nothing is committed in it", f.Broker)
	case group.Empty:
		e.Summary = "the group has no members" + sinceText(f)
	case group.PreparingRebalance:
		preparing(&e, f)
	case group.CompletingRebalance:
		completing(&e, f)
	case group.Stable:
		e.Summary = fmt.Sprintf("the group is stable: generation %d with %s%s", f.Status.Generation, count(len(f.Status.Members), "member"), sinceText(f))
		quiet(&e, f)
	}
	for i, r := range rebalances {
		if i == 3 {
			break
		}
		e.find("rebalance", "%s", r.text(f.Now))
	}
	repeated(&e, rebalances)
	return e
}

// elsewhere explains a group that this broker can't speak for.
func elsewhere(e *Explanation, f GroupFacts) bool {
	switch {
	case f.Loading:
		e.Summary = fmt.Sprintf("this broker coordinates the group since a moment ago, and is reading shard %d: clients are told to try again", f.Shard)
		for _, ev := range f.ShardEvents {
			if failed, ok := ev.Event.(journal.ShardFailed); ok {
				e.find("shard-failed", "%s ago %s", ago(f.Now, ev.At), failed)
			}
		}
	case f.Shard < 0:
		e.Summary = "no group exists yet: the topic that they are kept in hasn't been created"
	case f.Coordinator < 0:
		e.Summary = fmt.Sprintf("nobody coordinates the group: partition %d of the topic that groups are kept in has no leader", f.Shard)
		e.find("no-coordinator", "clients can't find a coordinator until it has; `explain partition` tells why it hasn't")
	case f.Coordinator != f.Broker:
		e.Summary = fmt.Sprintf("broker %d coordinates the group, not this one", f.Coordinator)
		e.ask(f.Coordinator, "it coordinates the group")
	default:
		return false
	}
	return true
}

func groupState(f GroupFacts, rebalances []Rebalance) GroupState {
	s := GroupState{State: string(f.Status.State), Generation: f.Status.Generation, Leader: f.Status.Leader, Members: []GroupMember{}, Rebalances: rebalances}
	if !f.Status.Since.IsZero() {
		s.Since = &f.Status.Since
	}
	if !f.Status.Deadline.IsZero() {
		s.Deadline = &f.Status.Deadline
	}
	for _, m := range f.Status.Members {
		out := GroupMember{Member: m.Member, SessionTimeout: journal.Millis(m.Session), RebalanceTimeout: journal.Millis(m.Rebalance), Joined: m.Joined}
		if d, ok := silent(m, f.Now); ok {
			ms := journal.Millis(d)
			out.Silent = &ms
		}
		s.Members = append(s.Members, out)
	}
	return s
}

// silent is for how long a member hasn't been heard of, if that counts.
func silent(m group.MemberStatus, now time.Time) (time.Duration, bool) {
	if m.Deadline.IsZero() || m.New {
		return 0, false
	}
	return max(now.Sub(m.Deadline.Add(-m.Session)), 0), true
}

func sinceText(f GroupFacts) string {
	if f.Status.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf(", for %s by now", ago(f.Now, f.Status.Since))
}

// preparing explains a rebalance that waits for members to join.
func preparing(e *Explanation, f GroupFacts) {
	s := f.Status
	var missing []group.MemberStatus
	for _, m := range s.Members {
		if !m.Joined {
			missing = append(missing, m)
		}
	}
	e.Summary = fmt.Sprintf("the group rebalances%s: %d of %s joined", sinceText(f), len(s.Members)-len(missing), count(len(s.Members), "member"))
	if s.Initial {
		e.find("initial-delay", "its first members have come, and it waits a little for more (group.initial.rebalance.delay.ms), for another %s", round(s.Deadline.Sub(f.Now)))
	}
	for _, m := range missing {
		e.find("waits-for-member", "it waits for %s, %s", m.Member, awaited(m, f.Now))
	}
	for _, p := range s.Pending {
		e.find("waits-for-id", "it waits for a client that was given the member id %s and hasn't joined with it; the id holds for another %s", p.ID, round(p.Until.Sub(f.Now)))
	}
	if !s.Initial && len(missing)+len(s.Pending) > 0 {
		e.find("deadline", "in %s it goes on without those who are missing: that is the longest rebalance timeout of its members (max.poll.interval.ms of a consumer)", round(s.Deadline.Sub(f.Now)))
	}
}

func awaited(m group.MemberStatus, now time.Time) string {
	d, ok := silent(m, now)
	switch {
	case !ok:
		return "which has not joined again"
	case d > m.Session/2:
		return fmt.Sprintf("which was last heard of %s ago: it may be dead, and is put out after %s (session.timeout.ms)", round(d), m.Session)
	}
	return fmt.Sprintf("which sends heartbeats, the last one %s ago, but has not joined again: it is busy with what it polled", round(d))
}

// completing explains a generation that waits for its assignment.
func completing(e *Explanation, f GroupFacts) {
	s := f.Status
	e.Summary = fmt.Sprintf("generation %d with %s waits for its assignment%s", s.Generation, count(len(s.Members), "member"), sinceText(f))
	for _, m := range s.Members {
		switch {
		case m.ID == s.Leader && !m.Synced:
			e.find("waits-for-leader", "its leader, %s, has not brought the assignment", m.Member)
		case !m.Synced:
			e.find("waits-for-sync", "%s has not asked for its assignment; who hasn't in %s is put out", m.Member, round(s.Deadline.Sub(f.Now)))
		}
	}
}

// quiet finds members of a stable group whose sessions are about to end.
func quiet(e *Explanation, f GroupFacts) {
	for _, m := range f.Status.Members {
		if d, ok := silent(m, f.Now); ok && d > m.Session/2 {
			e.find("silent-member", "%s was last heard of %s ago; after %s (session.timeout.ms) it is put out", m.Member, round(d), m.Session)
		}
	}
}

// rebalancesOf puts a group's events together, the latest rebalance first.
func rebalancesOf(events []journal.Entry) []Rebalance {
	list := []Rebalance{}
	var out []journal.Entry // who left, and isn't part of a rebalance yet
	for _, entry := range events {
		var now *Rebalance
		if len(list) > 0 {
			now = &list[len(list)-1]
		}
		switch ev := entry.Event.(type) {
		case journal.MemberOut:
			if now != nil && !now.Ended {
				now.PutOut = append(now.PutOut, entry)
			} else {
				out = append(out, entry)
			}
		case journal.RebalanceBegan:
			list = append(list, Rebalance{At: entry.At, Cause: ev.Cause, By: ev.Member, PutOut: append([]journal.Entry{}, out...), began: ev})
			out = nil
		case journal.RebalanceEnded:
			if now != nil && !now.Ended {
				now.Ended, now.ended = true, ev
				now.Generation, now.Took, now.TimedOut, now.Last, now.LastAfter = ev.Generation, ev.Took, ev.TimedOut, ev.Last, ev.LastAfter
			}
		case journal.Assigned:
			if now != nil && now.Generation == ev.Generation {
				took := ev.Took
				now.Assigning = &took
			}
		}
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// text tells a rebalance in a sentence or two.
func (r *Rebalance) text(now time.Time) string {
	parts := []string{fmt.Sprintf("%s ago a %s", ago(now, r.At), r.began)}
	for _, entry := range r.PutOut {
		if out := entry.Event.(journal.MemberOut); out.Cause != journal.Left || out.Member != r.By {
			parts = append(parts, out.String())
		}
	}
	if r.Ended {
		parts = append(parts, "the "+r.ended.String())
	}
	return strings.Join(parts, "; ")
}

// often is how many rebalances of one client, for one cause, are worth a finding of their own.
const often = 3

// repeated finds the client that causes one rebalance after the other. That many members join when a group starts is no finding.
func repeated(e *Explanation, rebalances []Rebalance) {
	type culprit struct {
		name  string
		cause journal.Cause
	}
	times := map[culprit]int{}
	var worst culprit
	blame := func(m journal.Member, cause journal.Cause) {
		c := culprit{client(m), cause}
		if c.name == "" || cause == journal.Joined {
			return
		}
		if times[c]++; times[c] > times[worst] {
			worst = c
		}
	}
	for _, r := range rebalances {
		blame(r.By, r.Cause)
		for _, entry := range r.PutOut {
			if out := entry.Event.(journal.MemberOut); out.Cause == journal.RebalanceTimeout {
				blame(out.Member, out.Cause)
			}
		}
	}
	if n := times[worst]; n >= often {
		e.find("repeated", "in %d of the last %s it was %s: %s", n, count(len(rebalances), "rebalance"), worst.name, advice(worst.cause))
	}
}

// client names what outlives a member's id.
func client(m journal.Member) string {
	switch {
	case m.Instance != "":
		return "static member " + m.Instance
	case m.ClientID != "" && m.Host != "":
		return "client " + m.ClientID + " at " + strings.TrimPrefix(m.Host, "/")
	case m.ClientID != "":
		return "client " + m.ClientID
	}
	return ""
}

func advice(c journal.Cause) string {
	switch c {
	case journal.SessionTimeout:
		return "it dies, or stops for longer than its session.timeout.ms"
	case journal.RebalanceTimeout:
		return "it takes longer to handle what it polls than max.poll.interval.ms allows"
	case journal.Left:
		return "it is closed again and again, or leaves by itself because it takes longer between polls than its max.poll.interval.ms"
	case journal.LeaderRejoined:
		return "the topics that the group reads change, or the group's leader is restarted"
	case journal.Rejoined:
		return "its subscription changes"
	}
	return string(c)
}
