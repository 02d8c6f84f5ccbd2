package group

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// Expire asks for the removal of offsets that are too old, and of a group that has nothing left (KIP-211):
//
//   - an explicit expiry time, of old commits, counts by itself;
//   - offsets of a group without members age from when it lost the last one;
//   - offsets of a stable group age from their commit, if nobody in it reads the topic;
//   - offsets of a group that never had members age from their commit;
//   - groups in a rebalance, and those of which it isn't known what they read, keep all.
func (g *Group) Expire(now time.Time) Effects {
	g.begin(now)
	var entries []offsets.Entry
	for tp, o := range g.offsets {
		if g.inFlight[tp] == 0 && g.expired(tp, o) {
			entries = append(entries, g.tombstone(tp))
		}
	}
	switch {
	case g.state == Empty && len(g.inFlight) == 0 && len(g.txn) == 0 && len(g.txnWrites) == 0 && len(g.pending) == 0 && len(entries) == len(g.offsets):
		g.die(0, entries)
	case len(entries) > 0:
		g.write(Write{kind: writeRemoval}, entries)
	}
	return g.end()
}

func (g *Group) expired(tp TopicPartition, o offsets.Offset) bool {
	from := o.CommitTimestamp
	switch {
	case g.protocolType == "" && g.state == Empty:
	case g.state == Empty:
		if g.since != offsets.None {
			from = g.since
		}
	case g.state == Stable && g.protocolType == consumerProtocol && g.subscribed != nil:
		if _, read := g.subscribed[tp.Topic]; read {
			return false
		}
	default:
		return false
	}
	if o.ExpireTimestamp != offsets.None {
		return g.now.UnixMilli() >= o.ExpireTimestamp
	}
	return g.now.UnixMilli()-from >= g.cfg.Retention.Milliseconds()
}

// Delete removes a group without members, with its offsets. When err is nil the answer comes under the ticket.
func (g *Group) Delete(now time.Time, t Ticket) (Effects, error) {
	g.begin(now)
	switch g.state {
	case Dead:
		return g.end(), ErrGroupNotFound
	case Empty:
	default:
		return g.end(), ErrNonEmpty
	}
	entries := make([]offsets.Entry, 0, len(g.offsets)+1)
	for tp := range g.offsets {
		entries = append(entries, g.tombstone(tp))
	}
	// Commits that are being written come before the tombstones, and so have to go as well.
	for tp := range g.inFlight {
		if _, known := g.offsets[tp]; !known {
			entries = append(entries, g.tombstone(tp))
		}
	}
	g.die(t, entries)
	return g.end(), nil
}

// die ends the group: nothing is accepted any more while the tombstones are written.
func (g *Group) die(t Ticket, entries []offsets.Entry) {
	since := g.since
	g.become(Dead)
	g.since = since
	if g.generation > 0 { // else there never was a record of the group itself
		entries = append(entries, offsets.Entry{Key: offsets.GroupKey(g.id)})
	}
	g.write(Write{kind: writeDeath, ticket: t}, entries)
}

// buried ends the removal. A group that could not be removed is there again.
func (g *Group) buried(w Write, err error) {
	if err != nil {
		g.state = Empty
	} else {
		g.forget(w)
		g.pending = nil
	}
	g.answer(w.ticket, writeError(err))
}
