package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/fetchsession"
	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// Fetch (key 1): v0-18
//
// Behaviour:
//   - Answers at once when there are min_bytes, when there is an error or a diverging epoch to tell, when nothing can be read,
//     or when max_wait is not positive; else when that has become so, or after max_wait with what there is. Only a change of
//     one of its partitions wakes a waiting fetch.
//   - Partitions are read in order: the first that has anything gives at least one whole batch, whatever the limits say; the
//     limits hold for the rest (KIP-74). Up to version 2 they hold for all, and cut a message off if need be.
//   - Consumers see what is below the high watermark, with isolation 1 what is below the last stable offset; followers see all.
//   - Followers come through the listener of brokers, else the connection is closed.
//   - With replica.selector.class set to Kafka's RackAwareReplicaSelector, a leader sends consumers that say their rack to the
//     in-sync follower there, if it has none itself, at once and without records (KIP-392). Followers serve consumers from version
//     11 on, up to the high watermark that they know of.
//   - Sessions (KIP-227): package fetchsession decides, see there.
//   - Partitions that nobody knows come last in the answer, as in Kafka, and do not keep the others from waiting.
//   - Records go out as they lie in the log, as views. Versions 0 to 3 get them converted to message format 0 or 1, unless
//     message.downconversion.enable forbids it (UNSUPPORTED_VERSION). Below version 10 topics with compression.type=zstd are
//     refused (UNSUPPORTED_COMPRESSION_TYPE).
//   - An isolation level that doesn't exist is an UNKNOWN_SERVER_ERROR for all, and so is a negative size limit.
//
// Versions:
//
//	v1: throttle time; v2: message format 1 (KIP-32)
//	v3: limit for the whole response (KIP-74)
//	v4: message format 2, isolation level, last stable offset, aborted transactions (KIP-98)
//	v5: log start offsets (KIP-107); v6: KAFKA_STORAGE_ERROR instead of NOT_LEADER_OR_FOLLOWER (KIP-112)
//	v7: sessions (KIP-227); v8: answered before throttling (KIP-219)
//	v9: current leader epoch (KIP-320); v10: zstd (KIP-110)
//	v11: rack, preferred read replica (KIP-392)
//	v12: flexible; last fetched and diverging epoch (KIP-595)
//	v13: topic ids instead of names (KIP-516)
//	v14: OFFSET_MOVED_TO_TIERED_STORAGE may come (KIP-405); v15: replica state (KIP-903)
//	v16: current leader and where it is (KIP-951)
//	v17: directory id of followers (KIP-853); v18: high watermark of followers (KIP-1166)
func (h *handlers) fetch(ctx context.Context, r *Request) Reply {
	x, ok := h.fetchCalls.Get().(*fetchCall)
	if !ok {
		x = &fetchCall{h: h}
	}
	defer x.recycle()
	q := &x.request
	if err := q.decode(r.Version(), r.wire.Body); err != nil {
		return wire.Close(fmt.Errorf("Fetch version %d: %w", r.Version(), err))
	}
	if reply, ok := h.mayReplicate(r, q.replicaID); !ok {
		return reply
	}
	x.r = r
	r.wire.CountAs(x.kind())
	if q.version >= 4 && q.isolation != 0 && q.isolation != 1 {
		return x.refuse(unknownError)
	}
	session, err := x.begin()
	if err != nil {
		return x.failSession(err)
	}
	if x.parts = session.Partitions; session.Incremental() {
		x.memory = x.parts
	}
	x.find()
	x.readOrWait(ctx)
	return x.answer(&session)
}

// kind is what the request counts as.
func (x *fetchCall) kind() meter.Kind {
	if x.request.replicaID >= 0 {
		return meter.FetchFollower
	}
	return meter.Kind(kmsg.Fetch)
}

// fetchCall is one Fetch request under way. It is used again.
type fetchCall struct {
	h       *handlers
	r       *Request
	request fetchRequest

	wanted  []fetchsession.Partition // as the request has them
	gone    []fetchsession.Key
	memory  []fetchsession.Partition // for those of a session
	parts   []fetchsession.Partition // what to read: all wanted, or the session's
	targets []fetchTarget            // one for each of parts
	answers []fetchsession.Answer
	order   []int // of targets, as they are answered
	leaders leaders
	scratch []byte

	wait *fetchWait
}

// fetchTarget is one partition to read, and what was read.
type fetchTarget struct {
	p         *partition.Partition // nil when nobody knows the partition here
	changes   uint64               // of p, as it was read
	unknown   error                // why p is nil
	err       error
	read      partition.ReadResult
	preferred int32 // the replica that the consumer should read from instead, -1 for this one
	result    fetchResult
}

// fetchWait is what a waiting fetch needs; it is kept for the next.
type fetchWait struct {
	watch *partition.Watch
	timer *time.Timer
}

func (x *fetchCall) recycle() {
	x.request.forget()
	clear(x.wanted)
	clear(x.gone)
	clear(x.memory)
	clear(x.targets)
	x.r, x.parts = nil, nil
	x.wanted, x.gone, x.memory, x.targets = x.wanted[:0], x.gone[:0], x.memory[:0], x.targets[:0]
	x.answers, x.order, x.leaders.nodes = x.answers[:0], x.order[:0], x.leaders.nodes[:0]
	if cap(x.targets) <= 4096 && cap(x.wanted) <= 4096 {
		x.h.fetchCalls.Put(x)
	}
}

// begin asks the session cache what to read.
func (x *fetchCall) begin() (fetchsession.Context, error) {
	q := &x.request
	byID := q.version >= fetchTopicIDs
	for i := range q.topics {
		t := &q.topics[i]
		for j := range q.partitions[t.from:t.to] {
			p := &q.partitions[t.from+j]
			x.wanted = append(x.wanted, fetchsession.Partition{
				Key:    x.key(t.name, t.id, byID, p.partition),
				Params: fetchsession.Params{Offset: p.offset, MaxBytes: p.maxBytes, LeaderEpoch: p.leaderEpoch, LastFetchedEpoch: p.lastFetchedEpoch, LogStart: p.logStart},
			})
		}
	}
	for _, f := range q.forgotten {
		x.gone = append(x.gone, fetchsession.Key{Topic: borrow(f.name), ID: f.id, Partition: f.partition})
	}
	return x.h.sessions.Begin(fetchsession.Request{SessionID: q.sessionID, Epoch: q.sessionEpoch, Privileged: q.replicaID >= 0,
		TopicIDs: byID, Partitions: x.wanted, Forgotten: x.gone}, x.h.Now().UnixMilli(), x.memory)
}

// key names a partition, with a name that outlives the frame: a session may keep it.
func (x *fetchCall) key(name []byte, id [16]byte, byID bool, number int32) fetchsession.Key {
	if byID {
		return fetchsession.Key{ID: id, Partition: number}
	}
	if n := len(x.wanted); n > 0 && x.wanted[n-1].Topic == borrow(name) {
		return fetchsession.Key{Topic: x.wanted[n-1].Topic, Partition: number}
	}
	if p, err := x.h.Partitions.Get(partition.ID{Topic: borrow(name), Partition: number}); err == nil {
		return fetchsession.Key{Topic: p.ID().Topic, Partition: number}
	}
	return fetchsession.Key{Topic: string(name), Partition: number}
}

// find looks the partitions up.
func (x *fetchCall) find() {
	byID := x.request.version >= fetchTopicIDs
	x.targets = slices.Grow(x.targets, len(x.parts))[:len(x.parts)]
	for i := range x.parts {
		t, key := &x.targets[i], &x.parts[i].Key
		*t = fetchTarget{preferred: -1}
		t.p, t.unknown = x.h.find(key.Topic, key.ID, byID, key.Partition)
		if t.unknown == partition.ErrNotLeader {
			t.unknown, t.err = nil, t.unknown // known, only not here
		}
	}
}

// readOrWait reads all partitions, again and again until there is something to answer.
func (x *fetchCall) readOrWait(ctx context.Context) {
	if x.read(false) || x.request.maxWaitMs <= 0 {
		return
	}
	w := x.wait
	if w == nil {
		w = &fetchWait{watch: partition.NewWatch(), timer: time.NewTimer(time.Hour)}
		x.wait = w
	}
	select { // what the last wait left
	case <-w.watch.C():
	default:
	}
	w.timer.Reset(time.Duration(x.request.maxWaitMs) * time.Millisecond)
	defer w.timer.Stop()
	for i := range x.targets {
		if p := x.targets[i].p; p != nil {
			p.Watch(w.watch, x.request.replicaID >= 0)
		}
	}
	defer x.unwatch()
	x.r.Waiting()
	defer x.r.Resume()
	for !x.read(true) {
		select {
		case <-w.watch.C():
		case <-w.timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (x *fetchCall) unwatch() {
	for i := range x.targets {
		if p := x.targets[i].p; p != nil {
			p.Unwatch(x.wait.watch)
		}
	}
}

// stands says whether what was read of a partition would be read again, within a limit.
func (t *fetchTarget) stands(limit int) bool {
	return t.p != nil && t.unknown == nil && t.err == nil && !t.read.Cut && t.p.Changes() == t.changes &&
		(t.read.View == nil || int(t.read.View.Len()) <= limit)
}

// read reads all partitions, or again those that have changed, and reports whether that is worth an answer now.
func (x *fetchCall) read(again bool) bool {
	q := &x.request
	left := min(int(q.maxBytes), x.h.FetchMaxBytes)
	need := min(int(q.minBytes), left)
	oldLimits := q.version <= 2
	anything := false
	got, readable, tell := 0, 0, false
	for i := range x.targets {
		t := &x.targets[i]
		want := &x.parts[i]
		limit := min(int(want.MaxBytes), left)
		if again && t.stands(limit) {
			readable++
			if t.read.View != nil {
				n := int(t.read.View.Len())
				anything = true
				got += n
				left = max(0, left-n)
			}
			continue
		}
		if t.read.View != nil {
			t.read.View.Release()
			t.read.View = nil
		}
		if t.unknown != nil {
			continue
		}
		readable++
		if t.p == nil {
			tell = true
			continue
		}
		if limit < 0 {
			t.err, tell = errNegativeLimit, true
			continue
		}
		if t.preferred = x.nearest(t.p, want); t.preferred >= 0 {
			t.read, t.err = t.p.Offsets(want.LeaderEpoch)
			tell = true
			continue
		}
		t.changes = t.p.Changes() // before it is read
		t.read, t.err = t.p.Read(partition.Read{
			Offset:           want.Offset,
			MaxBytes:         limit,
			MinOneBatch:      !oldLimits && !anything,
			HardLimit:        oldLimits,
			Isolation:        partition.Isolation(q.isolation),
			ReplicaID:        q.replicaID,
			ReplicaStart:     want.LogStart,
			LeaderEpoch:      want.LeaderEpoch,
			LastFetchedEpoch: want.LastFetchedEpoch,
			FollowerOK:       q.version >= 11,
		})
		if t.err != nil || t.read.Diverging != nil {
			tell = true
		}
		if t.read.View != nil {
			n := int(t.read.View.Len())
			anything = anything || n > 0
			if t.read.Cut {
				// Kafka fills the limit with a part of the next batch. That is of no use to anybody, but how much the
				// partitions behind this one get must not depend on it.
				n = max(n, limit)
			}
			got += n
			left = max(0, left-n)
		}
	}
	return tell || readable == 0 || got >= need
}

// nearest is the replica that a consumer should rather read from, -1 for this one (KIP-392).
func (x *fetchCall) nearest(p *partition.Partition, want *fetchsession.Partition) int32 {
	q := &x.request
	if !x.h.RackAware || q.replicaID >= 0 || len(q.rack) == 0 {
		return -1
	}
	s := x.h.snapshot()
	if s == nil {
		return -1
	}
	broker, ok := p.Nearest(want.Offset, want.LeaderEpoch, func(broker int32) bool {
		b, alive := s.Broker(broker)
		return alive && b.Rack == borrow(q.rack)
	})
	if !ok {
		return -1
	}
	return broker
}

// answer encodes what was read.
func (x *fetchCall) answer(session *fetchsession.Context) Reply {
	x.judge()
	id := session.SessionID()
	if session.Incremental() {
		selected := x.order[:0]
		for _, i := range x.order {
			if session.Select(&session.Partitions[i], x.answers[i]) {
				selected = append(selected, i)
			}
		}
		x.order = selected
	} else {
		id = session.Finish(x.h.Now().UnixMilli(), x.answers)
	}
	return x.encode(noError, id)
}

// judge turns what was read into results, and puts them in order: unknown partitions come last.
func (x *fetchCall) judge() {
	for i := range x.targets {
		t := &x.targets[i]
		x.result(t, &x.parts[i])
		x.h.Meter.Failed(x.kind(), t.result.code)
		if t.p != nil {
			t.p.Answered(x.request.replicaID, int64(t.result.recordBytes()), t.read.Records, t.result.code != noError)
		}
		x.answers = append(x.answers, fetchsession.Answer{HighWatermark: t.result.hw, LogStart: t.result.logStart,
			Data: t.result.recordBytes() > 0, Told: t.result.diverging || t.result.preferred >= 0, Failed: t.result.code != noError})
		if t.unknown == nil {
			x.order = append(x.order, i)
		}
	}
	for i := range x.targets {
		if x.targets[i].unknown != nil {
			x.order = append(x.order, i)
		}
	}
}

// result is what is answered for one partition. The view, if any, moves from what was read to the result.
func (x *fetchCall) result(t *fetchTarget, want *fetchsession.Partition) {
	res := &t.result
	*res = fetchResult{partition: want.Partition, hw: -1, lastStable: -1, logStart: -1, preferred: -1, leader: -1, leaderEpoch: -1}
	switch {
	case t.unknown != nil:
		res.code, res.hasAborted = code(t.unknown), true
		return
	case t.err != nil:
		x.failed(t, want)
		return
	}
	res.preferred = t.preferred
	res.hw, res.lastStable, res.logStart = t.read.HighWatermark, t.read.LastStableOffset, t.read.LogStartOffset
	if d := t.read.Diverging; d != nil {
		res.diverging, res.divergeAt, res.divergeEnd = true, d.Epoch, d.End
	}
	if x.request.isolation == 1 && x.request.replicaID < 0 {
		res.hasAborted = true
		for _, a := range t.read.Aborted {
			res.aborted = append(res.aborted, abortedTransaction{a.ProducerID, a.FirstOffset})
		}
	}
	res.view, t.read.View = t.read.View, nil
	if x.request.version < 10 {
		x.forOldClients(t, want)
	}
}

// failed fills in the result of a partition that could not be read.
func (x *fetchCall) failed(t *fetchTarget, want *fetchsession.Partition) {
	res := &t.result
	res.code = code(t.err)
	switch {
	case res.code == unknownError && t.err != errNegativeLimit:
		x.h.Logger.Error("cannot read", "error", t.err)
	case res.code == kerr.KafkaStorageError.Code && x.request.version <= 5:
		res.code = kerr.NotLeaderForPartition.Code
	}
	if x.request.version >= 16 && (res.code == kerr.NotLeaderForPartition.Code || res.code == kerr.FencedLeaderEpoch.Code) {
		res.leader, res.leaderEpoch = x.leaders.of(x.h, x.r.Listener(), t.p, want.Topic, want.ID, want.Partition)
	}
}

// encode makes the reply of the results in order.
func (x *fetchCall) encode(top int16, sessionID int32) Reply {
	v := x.request.version
	resp := x.r.wire.NewResponse()
	topics := 0
	for n, i := range x.order {
		if n == 0 || !x.sameTopic(x.order[n-1], i) {
			topics++
		}
	}
	resp.B = appendFetchHead(resp.B, v, top, sessionID, topics)
	for n := 0; n < len(x.order); {
		end := n + 1
		for end < len(x.order) && x.sameTopic(x.order[n], x.order[end]) {
			end++
		}
		key := &x.parts[x.order[n]].Key
		resp.B = appendFetchTopic(resp.B, v, key.Topic, key.ID, end-n)
		for ; n < end; n++ {
			res := &x.targets[x.order[n]].result
			resp.B = appendFetchResult(resp.B, v, res)
			if res.view != nil {
				resp.AddView(res.view)
			}
			resp.B = appendFetchResultEnd(resp.B, v, res)
		}
		resp.B = appendFetchTopicEnd(resp.B, v)
	}
	resp.B = appendFetchTail(resp.B, v, x.leaders.nodes)
	return wire.Respond(resp)
}

func (x *fetchCall) sameTopic(i, j int) bool {
	a, b := &x.parts[i].Key, &x.parts[j].Key
	return a.Topic == b.Topic && a.ID == b.ID
}

// failSession is the answer to a request whose session does not allow it.
func (x *fetchCall) failSession(err error) Reply {
	x.h.Meter.Failed(x.kind(), code(err))
	return x.encode(code(err), 0)
}

// refuse is the answer to a request that makes no sense: with the error for everything in it.
func (x *fetchCall) refuse(c int16) Reply {
	q := &x.request
	x.h.Meter.Failed(x.kind(), c)
	if q.version < fetchTopicIDs {
		for i := range q.topics {
			t := &q.topics[i]
			for _, p := range q.partitions[t.from:t.to] {
				x.order = append(x.order, len(x.parts))
				x.parts = append(x.parts, fetchsession.Partition{Key: fetchsession.Key{Topic: borrow(t.name), Partition: p.partition}})
				x.targets = append(x.targets, fetchTarget{result: fetchResult{partition: p.partition, code: c, hw: -1, lastStable: -1, logStart: -1,
					hasAborted: true, preferred: -1, leader: -1, leaderEpoch: -1}})
			}
		}
	}
	return x.encode(c, q.sessionID)
}
