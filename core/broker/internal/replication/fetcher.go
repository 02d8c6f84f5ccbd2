package replication

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// fetcher fetches some of the partitions that one broker leads. It ends when it has none left.
type fetcher struct {
	m   *Manager
	id  fetcherID
	log *slog.Logger

	// news are partitions that come (again) or, with nil, go; guarded by the manager's mu.
	news map[partition.ID]*partition.Partition
	wake chan struct{} // has something when there are news

	// The rest belongs to the goroutine.
	machine *machine
	client  *wire.Client // nil when there is no connection
	unwatch func() bool  // lets the connection be when the manager stops
	failed  int          // connections or requests that failed since the last answer
	lookAt  time.Time    // when the log start offsets are looked at again

	request  fetchRequest
	response fetchResponse
	call     wire.Call // the Fetch request, made once
	all      iter.Seq[*follower]
	asked    []*follower
	gone     []sessionKey
	topErr   int16
}

func newFetcher(m *Manager, id fetcherID) *fetcher {
	f := &fetcher{m: m, id: id, wake: make(chan struct{}, 1), news: map[partition.ID]*partition.Partition{},
		log: m.o.Logger.With("leader", id.leader, "fetcher", id.number)}
	f.machine = newMachine(m.o.Backoff, f.owes)
	f.request = fetchRequest{replica: m.o.BrokerID,
		minBytes: int32(m.o.MinBytes), maxBytes: int32(m.o.MaxBytes), perPart: int32(m.o.PartitionMaxBytes)}
	f.call = wire.Call{Key: fetchKey, Flexible: true, Timeout: m.o.Timeout, Request: f.appendRequest, Response: f.readResponse}
	f.all = maps.Values(f.machine.parts)
	return f
}

// change tells the fetcher of a partition that comes, or goes when p is nil. Called with the manager's mu held.
func (f *fetcher) change(id partition.ID, p *partition.Partition) {
	f.news[id] = p
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run fetches until there is nothing left to fetch, or the manager stops.
func (f *fetcher) run() {
	defer f.disconnect()
	for f.takeNews() {
		switch todo := f.machine.next(f.m.o.Now()); {
		case todo.phase == cutting:
			f.cut(todo.parts)
		case todo.phase == comparing:
			f.ask(func(c *wire.Client) error { return f.compare(c, todo.parts) })
		case todo.phase == lost:
			f.ask(func(c *wire.Client) error { return f.find(c, todo.parts) })
		case todo.fetch:
			f.request.maxWaitMs = f.maxWait(todo.until)
			f.ask(f.fetch)
		default:
			f.wait(todo.until)
		}
	}
}

// takeNews takes the partitions that have come and gone. It reports false, and has given the fetcher up, when it is to end.
func (f *fetcher) takeNews() bool {
	select {
	case <-f.wake:
	default:
		if len(f.machine.parts) > 0 && f.m.ctx.Err() == nil {
			return true
		}
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	for id, p := range f.news {
		f.take(id, p)
	}
	clear(f.news)
	if len(f.machine.parts) > 0 && f.m.ctx.Err() == nil {
		return true
	}
	delete(f.m.fetchers, f.id)
	return false
}

func (f *fetcher) take(id partition.ID, p *partition.Partition) {
	f.machine.remove(id)
	if p == nil {
		return
	}
	leader, at, err := p.Following()
	if err != nil || leader != f.id.leader {
		return // it has changed again, and so there are more news to come
	}
	f.machine.add(p, id, p.TopicID(), at, p.Log().HighWatermark(), f.m.o.Now())
}

// wait waits until a time, or for news when that is zero; news end it in any case.
func (f *fetcher) wait(until time.Time) {
	var c <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(until.Sub(f.m.o.Now()))
		defer t.Stop()
		c = t.C
	}
	select {
	case <-c:
	case <-f.m.ctx.Done():
	case <-f.wake:
		f.wakeUp()
	}
}

// wakeUp puts back what was taken from wake.
func (f *fetcher) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// worthTelling is after how many failures in a row somebody is told: a first one may just be a leader that restarts.
const worthTelling = 2

// ask puts a question to the leader. When it can't be asked, or its answer makes no sense, that is tried again after a pause.
func (f *fetcher) ask(question func(*wire.Client) error) {
	err := f.connect()
	if err == nil {
		err = question(f.client)
	}
	if err == nil {
		if f.failed >= worthTelling {
			f.m.o.Journal.Record(journal.Reached{Broker: f.id.leader})
		}
		f.failed = 0
		return
	}
	f.disconnect()
	f.machine.session.reset(0)
	if f.m.ctx.Err() != nil {
		return
	}
	if f.failed++; f.failed == worthTelling {
		f.m.o.Journal.Record(journal.Unreachable{Broker: f.id.leader, Err: err.Error()})
		f.log.Warn("can't fetch from the leader, trying on", "partitions", len(f.machine.parts), "err", err)
	}
	t := time.NewTimer(pauseAfter(f.failed-1, f.m.o.Backoff))
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.m.ctx.Done():
	}
}

func (f *fetcher) connect() error {
	if f.client != nil {
		return nil
	}
	c, err := f.m.o.Dial(f.m.ctx, f.id.leader)
	if err != nil {
		return err
	}
	f.client = c
	f.unwatch = context.AfterFunc(f.m.ctx, func() { c.Close() })
	return nil
}

func (f *fetcher) disconnect() {
	if f.client != nil {
		f.unwatch()
		f.client.Close()
		f.client = nil
	}
}

// fetch sends one Fetch request and takes what it brings.
func (f *fetcher) fetch(c *wire.Client) error {
	s := &f.machine.session
	f.lookAtStarts()
	q := &f.request
	q.version = f.m.o.Versions.Fetch
	if s.nameless > 0 {
		q.version = min(q.version, fetchByName)
	}
	f.asked, f.gone = s.prepare(q.version >= fetchByID, f.all, logStart)
	q.session, q.epoch, q.brokerEpoch = s.id, s.epoch, f.m.o.BrokerEpoch()
	f.call.Version = q.version
	if err := c.Exchange(&f.call); err != nil {
		return err
	}
	if f.topErr != 0 {
		return f.sessionFailed(f.topErr)
	}
	return nil
}

// maxWait is how long the leader may let a fetch wait: not until after the time when the next partition that pauses may be tried again.
func (f *fetcher) maxWait(until time.Time) int32 {
	wait := f.m.o.MaxWait
	if !until.IsZero() {
		wait = min(wait, until.Sub(f.m.o.Now()))
	}
	return int32(max(wait.Milliseconds(), 1))
}

func logStart(f *follower) int64 { return f.p.Log().StartOffset() }

// startInterval is how often the leader is told of log starts that have moved by this broker's own retention.
const startInterval = 10 * time.Second

func (f *fetcher) lookAtStarts() {
	now := f.m.o.Now()
	if now.Before(f.lookAt) {
		return
	}
	f.lookAt = now.Add(startInterval)
	s := &f.machine.session
	for _, one := range s.members {
		if one.told.start != logStart(one) {
			s.want(one)
		}
	}
}

// sessionFailed takes an error for the whole request.
func (f *fetcher) sessionFailed(code int16) error {
	s := &f.machine.session
	switch code {
	case kerr.FetchSessionIDNotFound.Code:
		s.reset(0)
		return nil
	case kerr.InvalidFetchSessionEpoch.Code, kerr.FetchSessionTopicIDError.Code:
		s.reset(s.id)
		return nil
	}
	return fmt.Errorf("fetch: %w", kerr.ErrorForCode(code))
}

func (f *fetcher) appendRequest(dst []byte) []byte {
	dst = f.request.append(dst, f.asked, f.gone)
	f.asked, f.gone = nil, nil
	return dst
}

// readResponse takes the answers in it one by one, while they lie in the connection's buffer.
func (f *fetcher) readResponse(body []byte) error {
	r := &f.response
	if err := r.read(f.request.version, body); err != nil {
		return err
	}
	if f.topErr = r.code; f.topErr != 0 {
		return nil
	}
	f.machine.session.answered(r.session)
	var p fetchResult
	var refused refusals
	defer func() { refused.tell(f.log) }()
	for {
		ok, err := r.next(&p)
		if err != nil || !ok {
			return err
		}
		// No string is made of the name.
		if one := f.machine.session.members[sessionKey{topic: string(p.topic), id: p.id, partition: p.partition}]; one != nil {
			f.result(one, &p, &refused)
		}
	}
}

// manyTries is how often a leader may refuse to serve a replica before that is worth telling: at first it may not know yet that it leads.
const manyTries = 5

// refusals are the replicas that a leader has refused to serve too often, of those in one answer: there may be thousands.
type refusals struct {
	partitions int
	first      string
	err        error
}

func (r *refusals) add(id partition.ID, err error) {
	if r.partitions++; r.partitions == 1 {
		r.first, r.err = id.String(), err
	}
}

func (r *refusals) tell(log *slog.Logger) {
	if r.partitions > 0 {
		log.Warn("the leader refuses to serve replicas, trying on", "partitions", r.partitions, "first", r.first, "err", r.err)
	}
}

// result takes the answer for one partition.
func (f *fetcher) result(one *follower, r *fetchResult, refused *refusals) {
	now := f.m.o.Now()
	s := f.machine.answered(one, r, one.p.Log().EndOffsetForEpoch, now)
	if s.do != takeRecords {
		if r.code != 0 && one.tries == manyTries {
			f.stuck(one, fmt.Errorf("the leader refuses to serve it: %w", kerr.ErrorForCode(r.code)))
			refused.add(one.id, kerr.ErrorForCode(r.code))
		}
		f.carryOut(one, s)
		return
	}
	if len(r.records) == 0 && min(r.hw, one.at.Offset) <= one.p.Log().HighWatermark() && r.logStart <= logStart(one) {
		return // nothing new
	}
	at, err := one.p.AppendAsFollower(one.at, partition.Fetched{Batches: r.records, HighWatermark: r.hw, LogStart: r.logStart})
	f.did(one, takeRecords, at, err)
	if q := f.m.o.Quota; q != nil && one.p.Throttled() {
		q.Took(now, int64(len(r.records)))
		f.machine.hold(one, now)
	}
}

// owes says until when a partition has to wait for the quota: only those that lag do.
func (f *fetcher) owes(one *follower, now time.Time) time.Time {
	if q := f.m.o.Quota; q != nil && one.p.Throttled() && one.lags() {
		return q.Owes(now)
	}
	return time.Time{}
}

// carryOut does what the machine wants done with a log.
func (f *fetcher) carryOut(one *follower, s step) {
	var at partition.Position
	var err error
	switch s.do {
	case truncate:
		if s.to < one.at.Offset {
			f.cutOff(one, s.to)
			f.log.Info("truncating a replica to what its leader has", "partition", one.id.String(), "leader_epoch", one.at.LeaderEpoch, "from", one.at.Offset, "to", s.to)
		}
		at, err = one.p.TruncateAsFollower(one.at, s.to)
	case restart:
		f.cutOff(one, s.to)
		f.log.Warn("a replica's log ends before its leader's begins, beginning it anew", "partition", one.id.String(), "end", one.at.Offset, "start", s.to)
		at, err = one.p.RestartAsFollower(one.at, s.to)
	default:
		return
	}
	f.did(one, s.do, at, err)
}

// cutOff has it remembered that a replica throws its records away from an offset on, or, when that is beyond its end, all.
func (f *fetcher) cutOff(one *follower, to int64) {
	f.m.o.Journal.Record(journal.CutOff{Topic: one.id.Topic, Partition: one.id.Partition, Leader: f.id.leader, LeaderEpoch: one.at.LeaderEpoch,
		End: one.at.Offset, To: to})
}

// stuck has it remembered that a replica can't follow its leader.
func (f *fetcher) stuck(one *follower, err error) {
	f.m.o.Journal.Record(journal.Stuck{Topic: one.id.Topic, Partition: one.id.Partition, Leader: f.id.leader, End: one.at.Offset, Err: err.Error()})
}

// did tells the machine what became of a step.
func (f *fetcher) did(one *follower, do deed, at partition.Position, err error) {
	if errors.Is(err, partition.ErrMoved) {
		// Another fetcher had it a moment ago, under the same leader epoch.
		epoch := one.at.LeaderEpoch
		if _, at, err = one.p.Following(); err == nil && at.LeaderEpoch != epoch {
			err = partition.ErrNotFollower
		}
	}
	f.machine.did(one, do, at, err, f.m.o.Now())
	if err != nil && one.phase != idle && one.tries == 1 {
		f.stuck(one, err)
		f.log.Error("a replica can't take what its leader has, trying on", "partition", one.id.String(), "end", at.Offset, "err", err)
	}
}

// cut truncates partitions whose logs know no leader epoch to their high watermarks.
func (f *fetcher) cut(parts []*follower) {
	for _, one := range parts {
		f.carryOut(one, step{do: truncate, to: one.p.Log().HighWatermark()})
	}
}
