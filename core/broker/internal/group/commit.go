package group

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// Commit is a request to store offsets. Members name themselves and their generation; whoever uses no membership gives
// generation -1 and no ids, which is right as long as the group has no members.
type Commit struct {
	Member
	Offsets map[TopicPartition]offsets.Offset
}

// Commit checks a commit and, when it is in order, asks for it to be written: then the answer comes under the ticket.
// A commit that is refused changes nothing.
func (g *Group) Commit(now time.Time, t Ticket, r Commit) (Effects, error) {
	g.begin(now)
	err := g.commit(t, r)
	return g.end(), err
}

func (g *Group) commit(t Ticket, r Commit) error {
	switch {
	case g.state == Dead:
		return ErrUnavailable
	case r.Generation < 0 && g.state == Empty:
	case r.Generation < 0 && r.ID == "" && r.InstanceID == nil:
		return ErrUnknownMember
	default:
		m, err := g.checkGeneration(r.Member)
		if err != nil {
			return err
		}
		g.touch(m)
		// It has joined this generation but doesn't know yet what it owns, so it can't speak for it.
		if g.state == CompletingRebalance {
			return ErrRebalance
		}
	}
	entries := make([]offsets.Entry, 0, len(r.Offsets))
	for _, tp := range slices.SortedFunc(maps.Keys(r.Offsets), compareTP) {
		o := r.Offsets[tp]
		entries = append(entries, offsets.Entry{Key: offsets.OffsetKey(g.id, tp.Topic, tp.Partition), Offset: &o})
		if g.inFlight == nil {
			g.inFlight = map[TopicPartition]int{}
		}
		g.inFlight[tp]++
	}
	g.write(Write{kind: writeCommit, ticket: t}, entries)
	return nil
}

func compareTP(a, b TopicPartition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

func partitionOf(k offsets.Key) TopicPartition { return TopicPartition{k.Topic, k.Partition} }

func (g *Group) committed(w Write, err error) {
	for _, e := range w.Entries {
		tp := partitionOf(e.Key)
		if g.inFlight[tp]--; g.inFlight[tp] <= 0 {
			delete(g.inFlight, tp)
		}
		if err == nil {
			g.offsets[tp] = *e.Offset
		}
	}
	g.answer(w.ticket, commitError(err))
}

// Fetched is a committed offset, or None where there is none.
type Fetched struct {
	TopicPartition
	offsets.Offset
	Err error // ErrUnstable
}

// Fetch gives the committed offsets of partitions, in order, or of all that have one, sorted, when partitions is nil. With stable,
// partitions that an open transaction commits to give ErrUnstable (KIP-447).
func (g *Group) Fetch(partitions []TopicPartition, stable bool) []Fetched {
	if partitions == nil {
		partitions = slices.SortedFunc(maps.Keys(g.offsets), compareTP)
	}
	fetched := make([]Fetched, 0, len(partitions))
	for _, tp := range partitions {
		f := Fetched{TopicPartition: tp, Offset: noOffset}
		o, ok := g.offsets[tp]
		switch {
		case g.state == Dead:
		case stable && g.inTransaction(tp):
			f.Err = ErrUnstable
		case ok:
			f.Offset = o
		}
		fetched = append(fetched, f)
	}
	return fetched
}

// noOffset is what a partition without a committed offset has.
var noOffset = offsets.Offset{Offset: offsets.None, LeaderEpoch: offsets.None}

// DeleteOffsets removes committed offsets of a group that does not consume those topics. When something is removed, the
// answer comes under the ticket. Otherwise, done is true. Partitions that the group is subscribed to are listed in
// refused.
func (g *Group) DeleteOffsets(now time.Time, t Ticket, partitions []TopicPartition) (refused map[TopicPartition]bool, done bool, fx Effects, err error) {
	g.begin(now)
	switch {
	case g.state == Dead:
		err = ErrGroupNotFound
	case g.state != Empty && g.protocolType != consumerProtocol:
		err = ErrNonEmpty
	}
	if err != nil {
		return nil, true, g.end(), err
	}
	var entries []offsets.Entry
	refused = map[TopicPartition]bool{}
	for _, tp := range partitions {
		_, subscribed := g.subscribed[tp.Topic]
		_, known := g.offsets[tp]
		switch {
		case g.state != Empty && subscribed:
			refused[tp] = true
		case known:
			entries = append(entries, g.tombstone(tp))
		}
	}
	if len(entries) > 0 {
		g.write(Write{kind: writeRemoval, ticket: t}, entries)
	}
	return refused, len(entries) == 0, g.end(), nil
}

// DropTopic removes what was committed for a topic that is deleted, whatever the group does; also what is being committed.
func (g *Group) DropTopic(now time.Time, topic string) Effects {
	g.begin(now)
	var entries []offsets.Entry
	drop := func(tp TopicPartition) {
		if tp.Topic == topic && g.state != Dead {
			entries = append(entries, g.tombstone(tp))
		}
	}
	for tp := range g.offsets {
		drop(tp)
	}
	for tp := range g.inFlight {
		if _, twice := g.offsets[tp]; !twice {
			drop(tp)
		}
	}
	if len(entries) > 0 {
		g.write(Write{kind: writeRemoval}, entries)
	}
	return g.end()
}

func (g *Group) tombstone(tp TopicPartition) offsets.Entry {
	return offsets.Entry{Key: offsets.OffsetKey(g.id, tp.Topic, tp.Partition)}
}

func (g *Group) removed(w Write, err error) {
	if err == nil {
		g.forget(w)
	}
	g.answer(w.ticket, commitError(err))
}

// forget takes away the offsets that a write has removed. Offsets committed later are behind it in the order of writes.
func (g *Group) forget(w Write) {
	for _, e := range w.Entries {
		if e.Kind == offsets.KindOffset {
			delete(g.offsets, partitionOf(e.Key))
		}
	}
}
