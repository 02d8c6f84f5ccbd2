package partition

import (
	"maps"
	"sync/atomic"
)

// Traffic is what went in and out of replicas on this broker. Bytes are those of record batches as they are sent; records those of
// batches by their offsets, so that on a compacted topic the ones that are gone count as sent, too.
type Traffic struct {
	BytesIn, RecordsIn     uint64 // from producers
	BytesOut, RecordsOut   uint64 // to consumers
	ReplicatedIn           uint64 // bytes from the leader, as a follower
	ReplicatedOut          uint64 // bytes to followers
	Appends, AppendsFailed uint64 // producers' batches, and those of them that were refused
	Fetches, FetchesFailed uint64 // consumers' and followers' reads that were answered, and those of them with an error
	Shrinks, Expands       uint64 // changes of the in-sync set that this broker brought about as the leader
}

// add adds what others have.
func (t *Traffic) add(o Traffic) {
	t.BytesIn += o.BytesIn
	t.RecordsIn += o.RecordsIn
	t.BytesOut += o.BytesOut
	t.RecordsOut += o.RecordsOut
	t.ReplicatedIn += o.ReplicatedIn
	t.ReplicatedOut += o.ReplicatedOut
	t.Appends += o.Appends
	t.AppendsFailed += o.AppendsFailed
	t.Fetches += o.Fetches
	t.FetchesFailed += o.FetchesFailed
	t.Shrinks += o.Shrinks
	t.Expands += o.Expands
}

// traffic counts for one replica.
type traffic struct {
	bytesIn, recordsIn, bytesOut, recordsOut, replicatedIn, replicatedOut atomic.Uint64
	appends, appendsFailed, fetches, fetchesFailed, shrinks, expands      atomic.Uint64
}

// Traffic is what went in and out of this replica since this broker hosts it.
func (p *Partition) Traffic() Traffic {
	t := &p.traffic
	return Traffic{
		BytesIn: t.bytesIn.Load(), RecordsIn: t.recordsIn.Load(),
		BytesOut: t.bytesOut.Load(), RecordsOut: t.recordsOut.Load(),
		ReplicatedIn: t.replicatedIn.Load(), ReplicatedOut: t.replicatedOut.Load(),
		Appends: t.appends.Load(), AppendsFailed: t.appendsFailed.Load(),
		Fetches: t.fetches.Load(), FetchesFailed: t.fetchesFailed.Load(),
		Shrinks: t.shrinks.Load(), Expands: t.expands.Load(),
	}
}

// produced counts an append of a producer's.
func (p *Partition) produced(bytes int, done Appended, err error) {
	p.traffic.appends.Add(1)
	switch {
	case err != nil:
		p.traffic.appendsFailed.Add(1)
	case !done.Duplicate && done.BaseOffset >= 0:
		p.traffic.bytesIn.Add(uint64(bytes))
		p.traffic.recordsIn.Add(uint64(done.LastOffset - done.BaseOffset + 1))
	}
}

// Answered counts a read that is going to be answered. Whoever reads says so, for what is read is not always sent.
func (p *Partition) Answered(replica int32, bytes, records int64, failed bool) {
	p.traffic.fetches.Add(1)
	switch {
	case failed:
		p.traffic.fetchesFailed.Add(1)
	case replica >= 0:
		p.traffic.replicatedOut.Add(uint64(max(bytes, 0)))
	default:
		p.traffic.bytesOut.Add(uint64(max(bytes, 0)))
		p.traffic.recordsOut.Add(uint64(max(records, 0)))
	}
}

// Traffic is what went in and out of all replicas that this broker has, or had, since it started; and by topic, of those that it has
// replicas of. Neither ever falls while a topic is there.
func (m *Manager) Traffic() (all Traffic, byTopic map[string]Traffic) {
	m.trafficMu.Lock()
	defer m.trafficMu.Unlock()
	byTopic = maps.Clone(m.left)
	if byTopic == nil {
		byTopic = map[string]Traffic{}
	}
	all = m.gone
	for p := range m.All() {
		t := p.Traffic()
		all.add(t)
		sum := byTopic[p.id.Topic]
		sum.add(t)
		byTopic[p.id.Topic] = sum
	}
	for _, t := range m.left {
		all.add(t)
	}
	return all, byTopic
}

// leave takes replicas out of the snapshot, and remembers what went in and out of them: for their topic, as long as there are other
// replicas of it, and for the broker. Called with mu held.
func (m *Manager) leave(ids []ID, change func(h *hosted)) {
	m.trafficMu.Lock()
	defer m.trafficMu.Unlock()
	for _, id := range ids {
		if p, err := m.Get(id); err == nil {
			if m.left == nil {
				m.left = map[string]Traffic{}
			}
			sum := m.left[id.Topic]
			sum.add(p.Traffic())
			m.left[id.Topic] = sum
		}
	}
	m.update(change)
	here := map[string]bool{}
	for p := range m.All() {
		here[p.id.Topic] = true
	}
	for topic, t := range m.left {
		if !here[topic] {
			m.gone.add(t)
			delete(m.left, topic)
		}
	}
}
