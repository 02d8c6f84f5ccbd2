// Package offsetstest is the suite that every offsets store passes, in this repository or another:
//
//	func TestSuite(t *testing.T) {
//		offsetstest.Run(t, func(t *testing.T) offsetstest.World {
//			data := …
//			return offsetstest.World{Keeps: true, Store: func() offsets.Store { return mystore.New(data) }}
//		})
//	}
//
// Its sub-tests are named by the clauses of core/offsets. [Log] is a host's log for stores that need one.
package offsetstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// World is one set of stored data.
type World struct {
	// Store makes a store over the data, not started. At most one of those made is in use at a time.
	Store func() offsets.Store
	// Keeps says that the data outlives a store's Stop.
	Keeps bool
}

// TB is what the suite needs of a *testing.T; the suite's own tests give it another to see it fail.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// A Clause is one sub-test of the suite.
type Clause struct {
	Name  string
	Check func(t TB, w World)
}

// Run makes a world for each clause and checks it.
func Run(t *testing.T, make func(t *testing.T) World) {
	for _, c := range Clauses() {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, make(t)) })
	}
}

// Clauses lists the sub-tests.
func Clauses() []Clause {
	return []Clause{
		{"1.1 the topic's name is known before the start", checkTopic},
		{"2.1 prepare may be repeated", checkPrepare},
		{"3.1 a group's shard never changes", checkShard},
		{"4.1 what was written comes back, every field", checkRoundTrip},
		{"4.1 the last entry of a key wins", checkLastWins},
		{"4.1 random histories", checkRandom},
		{"4.1 pending offsets count from the commit", checkTransactions},
		{"4.2 earlier epochs' writes are there", checkEpochs},
		{"4.3 an error of visit ends the load", checkVisitError},
		{"4.4 a failed load owns nothing", checkFailedLoad},
		{"4.4 a load ends with its context", checkLoadContext},
		{"4.6 old epochs are refused", checkOldEpochs},
		{"4.7 events are the caller's", checkEventsOwned},
		{"5.1 no writes after unload", checkUnload},
		{"5.2 unload of another epoch changes nothing", checkUnloadOther},
		{"6.1 writes survive a restart", checkRestart},
		{"6.3 no writes without a load", checkNotLoaded},
		{"6.4 a batch is the caller's again", checkBatchOwned},
		{"6.5 no write after its context", checkWriteContext},
		{"6.6 an empty batch", checkEmptyBatch},
		{"6.7 strings that don't fit", checkTooLong},
		{"shards are apart", checkShardsApart},
		{"many goroutines at once", checkConcurrent},
		{"life cycle", checkLifeCycle},
	}
}

const timeout = 20 * time.Second

func background(t TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// started gives a started store whose shards exist.
func started(t TB, w World) offsets.Store {
	t.Helper()
	s := w.Store()
	require.NoError(t, s.Start(background(t)))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	require.NoError(t, s.Prepare(background(t)))
	return s
}

// loaded is started, and loads the shard of a group under epoch 1.
func loaded(t TB, w World, group string) (offsets.Store, int32) {
	t.Helper()
	s := started(t, w)
	shard, err := s.Shard(group)
	require.NoError(t, err)
	load(t, s, shard, 1)
	return s, shard
}

// content is a shard's content, as events tell it.
type content struct {
	entries map[offsets.Key]offsets.Entry
	pending map[int64]map[offsets.Key]offsets.Entry
}

func newContent() *content {
	return &content{entries: map[offsets.Key]offsets.Entry{}, pending: map[int64]map[offsets.Key]offsets.Entry{}}
}

func (c *content) apply(e offsets.Event) {
	switch {
	case e.Ended != offsets.NotEnded:
		for _, p := range c.pending[e.Producer] {
			if e.Ended == offsets.Committed {
				c.set(p)
			}
		}
		delete(c.pending, e.Producer)
	case e.Producer != offsets.None:
		if c.pending[e.Producer] == nil {
			c.pending[e.Producer] = map[offsets.Key]offsets.Entry{}
		}
		c.pending[e.Producer][e.Entry.Key] = e.Entry
	default:
		c.set(e.Entry)
	}
}

func (c *content) set(e offsets.Entry) {
	if e.Tombstone() {
		delete(c.entries, e.Key)
		return
	}
	c.entries[e.Key] = e
}

// offset is the offset committed under a key.
func (c *content) offset(t TB, k offsets.Key) int64 {
	t.Helper()
	require.NotNil(t, c.entries[k].Offset, "no offset under %v", k)
	return c.entries[k].Offset.Offset
}

// meta is a group's own record.
func (c *content) meta(t TB, group string) *offsets.Group {
	t.Helper()
	require.NotNil(t, c.entries[offsets.GroupKey(group)].Meta, "no record of group %s", group)
	return c.entries[offsets.GroupKey(group)].Meta
}

func load(t TB, s offsets.Store, shard, epoch int32) *content {
	t.Helper()
	c := newContent()
	require.NoError(t, s.Load(background(t), shard, epoch, func(e offsets.Event) error {
		c.apply(e)
		return nil
	}))
	return c
}

func write(t TB, s offsets.Store, shard, epoch int32, entries ...offsets.Entry) {
	t.Helper()
	require.NoError(t, s.Write(background(t), shard, epoch, offsets.Batch{Timestamp: now, Entries: entries}))
}

const now = int64(1_700_000_000_000)

func offset(group, topic string, partition int32, at int64) offsets.Entry {
	return offsets.Entry{Key: offsets.OffsetKey(group, topic, partition), Offset: &offsets.Offset{
		Offset: at, LeaderEpoch: offsets.None, CommitTimestamp: now, ExpireTimestamp: offsets.None}}
}

func tombstone(k offsets.Key) offsets.Entry { return offsets.Entry{Key: k} }

func meta(group string, generation int32, members ...offsets.Member) offsets.Entry {
	protocol := "range"
	g := &offsets.Group{ProtocolType: "consumer", Generation: generation, Protocol: &protocol, StateTimestamp: now, Members: members}
	if len(members) > 0 {
		g.Leader = &members[0].ID
	}
	return offsets.Entry{Key: offsets.GroupKey(group), Meta: g}
}

func member(id string) offsets.Member {
	return offsets.Member{ID: id, ClientID: "client", ClientHost: "/127.0.0.1", RebalanceTimeout: 60000, SessionTimeout: 45000,
		Subscription: []byte("subscription of " + id), Assignment: []byte("assignment of " + id)}
}

func entries(list ...offsets.Entry) map[offsets.Key]offsets.Entry {
	m := map[offsets.Key]offsets.Entry{}
	for _, e := range list {
		m[e.Key] = e
	}
	return m
}

func checkTopic(t TB, w World) {
	s := w.Store()
	name := s.Topic()
	require.NoError(t, s.Start(background(t)))
	require.Equal(t, name, s.Topic())
	require.NoError(t, s.Stop(background(t)))
	require.Equal(t, name, s.Topic())
}

func checkPrepare(t TB, w World) {
	s := started(t, w)
	require.NoError(t, s.Prepare(background(t)))
	require.NoError(t, s.Prepare(background(t)))
}

// names are groups of every kind.
var names = []string{"", "g", "orders", "a b/ü", "…", "\U0001f600\U0001f600", "\x00", "\xff\xfe", "polygenelubricants", strings.Repeat("n", 249)}

func checkShard(t TB, w World) {
	s := started(t, w)
	shards := map[string]int32{}
	for range 2 {
		for _, n := range names {
			shard, err := s.Shard(n)
			require.NoError(t, err, "shard of %q", n)
			require.GreaterOrEqual(t, shard, int32(0))
			if before, seen := shards[n]; seen {
				require.Equal(t, before, shard, "shard of %q changed", n)
			}
			shards[n] = shard
			if s.Topic() == "" {
				require.Zero(t, shard, "a store without a topic has one shard")
			}
		}
	}
}

func checkRoundTrip(t TB, w World) {
	s, shard := loaded(t, w, "g")
	instance, empty := "i1", ""
	static := member("m2")
	static.InstanceID = &instance
	odd := member("")
	odd.InstanceID, odd.Subscription, odd.Assignment, odd.ClientHost = &empty, []byte{}, []byte{0, 0xff}, ""
	plain := offset("g", "t", 0, 42)
	rich := offset("g", "t", 1, 1<<62)
	rich.Offset.LeaderEpoch, rich.Offset.Metadata = 7, strings.Repeat("ü", 2000)
	expiring := offset("g", "t", 2, 0)
	expiring.Offset.ExpireTimestamp = now + 5
	negative := offset("g", "", -3, -5)
	empties := offsets.Entry{Key: offsets.GroupKey("empty"), Meta: &offsets.Group{Generation: 3, StateTimestamp: offsets.None}}
	written := []offsets.Entry{plain, rich, expiring, negative, offset("", "a b", 0, 1), meta("g", 5, member("m1"), static, odd), empties}
	write(t, s, shard, 1, written...)
	got := load(t, s, shard, 2).entries
	require.Len(t, got, len(written))
	for _, want := range written {
		e, ok := got[want.Key]
		require.True(t, ok, "%v is missing", want.Key)
		require.Equal(t, want.Offset, e.Offset, "%v", want.Key)
		if want.Meta != nil {
			require.NotNil(t, e.Meta)
			require.Len(t, e.Meta.Members, len(want.Meta.Members))
			for i, m := range want.Meta.Members {
				require.Equal(t, m, e.Meta.Members[i])
			}
			a, b := *want.Meta, *e.Meta
			a.Members, b.Members = nil, nil
			require.Equal(t, a, b)
		}
	}
}

func checkLastWins(t TB, w World) {
	s, shard := loaded(t, w, "g")
	key := offsets.OffsetKey("g", "t", 0)
	write(t, s, shard, 1, offset("g", "t", 0, 1), offset("g", "t", 0, 2))
	write(t, s, shard, 1, offset("g", "t", 0, 3), offset("g", "t", 1, 9), meta("g", 1, member("m")))
	require.Equal(t, int64(3), load(t, s, shard, 2).offset(t, key))
	write(t, s, shard, 2, tombstone(key), tombstone(offsets.GroupKey("g")))
	require.Equal(t, entries(offset("g", "t", 1, 9)), load(t, s, shard, 3).entries)
	write(t, s, shard, 3, tombstone(key), offset("g", "t", 0, 4))
	require.Equal(t, int64(4), load(t, s, shard, 4).offset(t, key))
}

func checkTransactions(t TB, w World) {
	s, shard := loaded(t, w, "g")
	a, b := &offsets.Producer{ID: 10, Epoch: 1}, &offsets.Producer{ID: 11}
	pending := func(p *offsets.Producer, es ...offsets.Entry) {
		require.NoError(t, s.Write(background(t), shard, 1, offsets.Batch{Timestamp: now, Entries: es, Producer: p}))
	}
	write(t, s, shard, 1, offset("g", "t", 0, 1), offset("g", "t", 1, 1))
	pending(a, offset("g", "t", 0, 2), offset("g", "t", 2, 2))
	pending(b, offset("g", "t", 1, 3))
	c := load(t, s, shard, 2)
	require.Equal(t, entries(offset("g", "t", 0, 1), offset("g", "t", 1, 1)), c.entries, "open transactions count already")
	require.Equal(t, map[int64]map[offsets.Key]offsets.Entry{
		10: entries(offset("g", "t", 0, 2), offset("g", "t", 2, 2)), 11: entries(offset("g", "t", 1, 3))}, c.pending)
	s.Unload(shard, 2)
	load(t, s, shard, 3)
	end := func(p *offsets.Producer, how offsets.End) {
		require.NoError(t, s.Write(background(t), shard, 3, offsets.Batch{Timestamp: now, Producer: p, Ended: how, CoordinatorEpoch: 3}))
	}
	end(b, offsets.Aborted)
	end(a, offsets.Committed)
	c = load(t, s, shard, 4)
	require.Equal(t, entries(offset("g", "t", 0, 2), offset("g", "t", 2, 2), offset("g", "t", 1, 1)), c.entries)
	require.Empty(t, c.pending)
}

func checkEpochs(t TB, w World) {
	s, shard := loaded(t, w, "g")
	write(t, s, shard, 1, offset("g", "t", 0, 1))
	s.Unload(shard, 1)
	load(t, s, shard, 5)
	write(t, s, shard, 5, offset("g", "t", 1, 2))
	require.Len(t, load(t, s, shard, 6).entries, 2)
}

func checkVisitError(t TB, w World) {
	s, shard := loaded(t, w, "g")
	write(t, s, shard, 1, offset("g", "t", 0, 1), offset("g", "t", 1, 1))
	boom := errors.New("boom")
	calls := 0
	err := s.Load(background(t), shard, 2, func(offsets.Event) error { calls++; return boom })
	require.ErrorIs(t, err, boom)
	require.Equal(t, 1, calls, "visit was called again after its error")
}

func checkFailedLoad(t TB, w World) {
	s, shard := loaded(t, w, "g")
	write(t, s, shard, 1, offset("g", "t", 0, 1))
	require.Error(t, s.Load(background(t), shard, 2, func(offsets.Event) error { return errors.New("boom") }))
	for epoch := int32(1); epoch <= 2; epoch++ {
		require.ErrorIs(t, s.Write(background(t), shard, epoch, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}}),
			offsets.ErrNotOwner, "write under epoch %d", epoch)
	}
	require.Equal(t, int64(1), load(t, s, shard, 2).offset(t, offsets.OffsetKey("g", "t", 0)))
}

func checkLoadContext(t TB, w World) {
	s, shard := loaded(t, w, "g")
	for i := range int32(100) {
		write(t, s, shard, 1, offset("g", "t", i, 1))
	}
	ctx, cancel := context.WithCancel(background(t))
	err := s.Load(ctx, shard, 2, func(offsets.Event) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Write(background(t), shard, 2, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}}), offsets.ErrNotOwner)
}

func checkOldEpochs(t TB, w World) {
	s, shard := loaded(t, w, "g")
	load(t, s, shard, 7)
	none := func(offsets.Event) error { return nil }
	require.ErrorIs(t, s.Load(background(t), shard, 6, none), offsets.ErrNotOwner)
	require.ErrorIs(t, s.Load(background(t), shard, 7, none), offsets.ErrNotOwner)
	require.ErrorIs(t, s.Write(background(t), shard, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}}), offsets.ErrNotOwner)
	write(t, s, shard, 7, offset("g", "t", 0, 1))
}

func checkEventsOwned(t TB, w World) {
	s, shard := loaded(t, w, "g")
	write(t, s, shard, 1, meta("g", 1, member("m1")), offset("g", "t", 0, 1), meta("h", 1, member("m2")))
	var kept []offsets.Event
	require.NoError(t, s.Load(background(t), shard, 2, func(e offsets.Event) error {
		kept = append(kept, e)
		return nil
	}))
	c := newContent()
	for _, e := range kept {
		c.apply(e)
	}
	require.Equal(t, meta("g", 1, member("m1")).Meta, c.meta(t, "g"))
	for _, e := range c.entries { // what the caller does to them is nobody's business
		if e.Meta != nil {
			e.Meta.Members[0].Assignment[0] = 'X'
			e.Meta.Generation = 99
		} else {
			e.Offset.Offset = 99
		}
	}
	again := load(t, s, shard, 3)
	require.Equal(t, meta("g", 1, member("m1")).Meta, again.meta(t, "g"))
	require.Equal(t, int64(1), again.offset(t, offsets.OffsetKey("g", "t", 0)))
}

func checkUnload(t TB, w World) {
	s, shard := loaded(t, w, "g")
	write(t, s, shard, 1, offset("g", "t", 0, 1))
	s.Unload(shard, 1)
	s.Unload(shard, 1)
	require.ErrorIs(t, s.Write(background(t), shard, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}}), offsets.ErrNotOwner)
	require.Equal(t, entries(offset("g", "t", 0, 1)), load(t, s, shard, 2).entries)
}

func checkUnloadOther(t TB, w World) {
	s, shard := loaded(t, w, "g")
	load(t, s, shard, 3)
	s.Unload(shard, 1)
	s.Unload(shard, 4)
	s.Unload(shard+1000, 3)
	write(t, s, shard, 3, offset("g", "t", 0, 1))
}

func checkRestart(t TB, w World) {
	s := w.Store()
	require.NoError(t, s.Start(background(t)))
	require.NoError(t, s.Prepare(background(t)))
	shard, err := s.Shard("g")
	require.NoError(t, err)
	load(t, s, shard, 1)
	write(t, s, shard, 1, offset("g", "t", 0, 1), meta("g", 2, member("m")))
	require.NoError(t, s.Stop(background(t)))
	again := started(t, w)
	want := 2
	if !w.Keeps {
		want = 0
	}
	require.Len(t, load(t, again, shard, 2).entries, want)
}

func checkNotLoaded(t TB, w World) {
	s := started(t, w)
	shard, err := s.Shard("g")
	require.NoError(t, err)
	require.ErrorIs(t, s.Write(background(t), shard, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}}), offsets.ErrNotOwner)
	load(t, s, shard, 1)
	require.ErrorIs(t, s.Write(background(t), shard, 2, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}}), offsets.ErrNotOwner)
	require.Empty(t, load(t, s, shard, 2).entries)
}

func checkBatchOwned(t TB, w World) {
	s, shard := loaded(t, w, "g")
	e := meta("g", 1, member("m"))
	o := offset("g", "t", 0, 1)
	write(t, s, shard, 1, e, o)
	e.Meta.Members[0].Assignment[0] = 'X'
	e.Meta.Members[0].ID = "changed"
	o.Offset.Offset = 99
	got := load(t, s, shard, 2)
	require.Equal(t, meta("g", 1, member("m")).Meta, got.meta(t, "g"))
	require.Equal(t, int64(1), got.offset(t, o.Key))
}

func checkWriteContext(t TB, w World) {
	s, shard := loaded(t, w, "g")
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	err := s.Write(ctx, shard, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}})
	require.Error(t, err)
	require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, offsets.ErrTimedOut), "got %v", err)
}

func checkEmptyBatch(t TB, w World) {
	s, shard := loaded(t, w, "g")
	write(t, s, shard, 1)
	require.Empty(t, load(t, s, shard, 2).entries)
}

func checkTooLong(t TB, w World) {
	s, shard := loaded(t, w, "g")
	long := strings.Repeat("x", 1<<15)
	bad := []offsets.Entry{offset(long, "t", 0, 1), offset("g", long, 0, 1), {Key: offsets.OffsetKey("g", "t", 0), Offset: &offsets.Offset{Metadata: long}},
		{Key: offsets.GroupKey(long)}, meta("g", 1, member(long))}
	for i, e := range bad {
		err := s.Write(background(t), shard, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "first", 0, 1), e}})
		require.ErrorIs(t, err, offsets.ErrTooLarge, "entry %d", i)
	}
	require.Empty(t, load(t, s, shard, 2).entries, "part of a refused batch is stored")
}

func checkShardsApart(t TB, w World) {
	s := started(t, w)
	if s.Topic() == "" {
		return // one shard
	}
	byShard := map[int32]string{}
	for i := range 200 {
		g := fmt.Sprintf("group-%d", i)
		shard, err := s.Shard(g)
		require.NoError(t, err)
		byShard[shard] = g
	}
	for shard, g := range byShard {
		load(t, s, shard, 1)
		write(t, s, shard, 1, offset(g, "t", 0, 1))
	}
	for shard, g := range byShard {
		require.Equal(t, entries(offset(g, "t", 0, 1)), load(t, s, shard, 2).entries)
	}
}
