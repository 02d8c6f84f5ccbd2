package txn

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

var errLost = errors.New("lost")

// at is a time of the tests, in ms.
func at(ms int64) time.Time { return time.UnixMilli(ms) }

func parts(topic string, numbers ...int32) (list []partition.ID) {
	for _, n := range numbers {
		list = append(list, partition.ID{Topic: topic, Partition: n})
	}
	return list
}

// in makes a transaction in a state, of producer 7 with epoch 2, with partition t-0, begun at 1000 with a timeout of 60 s.
func in(s State) *Transaction {
	r := Record{ProducerID: 7, Epoch: 2, Timeout: time.Minute, State: s, Updated: 2000, Started: 1000}
	if s == Ongoing || s == PrepareCommit || s == PrepareAbort {
		r.Partitions = parts("t", 0)
	}
	return Restore("id", r)
}

func producer(id int64, epoch int16) Producer { return Producer{ID: id, Epoch: epoch} }

// TestStates has for each event and state what comes of it.
func TestStates(t *testing.T) {
	current := producer(7, 2)
	add := func(p Producer, parts []partition.ID) func(*Transaction) (*Change, error) {
		return func(t *Transaction) (*Change, error) { return t.Add(at(5000), p, parts) }
	}
	end := func(p Producer, commit bool) func(*Transaction) (*Change, error) {
		return func(t *Transaction) (*Change, error) { return t.End(at(5000), p, commit) }
	}
	begin := func(expected *Producer, fresh int64) func(*Transaction) (*Change, error) {
		return func(t *Transaction) (*Change, error) {
			return t.Init(at(5000), Init{Timeout: time.Second, Expected: expected, FreshID: fresh})
		}
	}
	const unchanged = State(-1)
	for _, tc := range []struct {
		name  string
		from  State
		event func(*Transaction) (*Change, error)
		to    State
		err   error
		check func(*testing.T, *Change)
	}{
		{"add, empty", Empty, add(current, parts("u", 1)), Ongoing, nil, func(t *testing.T, c *Change) {
			require.Equal(t, parts("u", 1), c.Partitions)
			require.EqualValues(t, 5000, c.Started)
		}},
		{"add, committed", CompleteCommit, add(current, parts("u", 1)), Ongoing, nil, nil},
		{"add, aborted", CompleteAbort, add(current, parts("u", 1)), Ongoing, nil, nil},
		{"add, open", Ongoing, add(current, parts("a", 1)), Ongoing, nil, func(t *testing.T, c *Change) {
			require.Equal(t, append(parts("a", 1), parts("t", 0)...), c.Partitions)
			require.EqualValues(t, 1000, c.Started, "a transaction's time runs from its begin")
		}},
		{"add what is there", Ongoing, add(current, parts("t", 0)), unchanged, nil, nil},
		{"add nothing", Ongoing, add(current, nil), unchanged, nil, nil},
		{"add, committing", PrepareCommit, add(current, parts("u", 1)), unchanged, ErrConcurrent, nil},
		{"add, aborting", PrepareAbort, add(current, parts("u", 1)), unchanged, ErrConcurrent, nil},
		{"add, old epoch", Ongoing, add(producer(7, 1), parts("u", 1)), unchanged, ErrFenced, nil},
		{"add, epoch too high", Ongoing, add(producer(7, 3), parts("u", 1)), unchanged, ErrFenced, nil},
		{"add, another producer", Ongoing, add(producer(8, 2), parts("u", 1)), unchanged, ErrProducerMapping, nil},

		{"commit", Ongoing, end(current, true), PrepareCommit, nil, func(t *testing.T, c *Change) {
			require.Equal(t, parts("t", 0), c.Partitions)
			require.EqualValues(t, 2, c.Epoch)
		}},
		{"abort", Ongoing, end(current, false), PrepareAbort, nil, func(t *testing.T, c *Change) {
			require.EqualValues(t, 2, c.Epoch, "the producer goes on")
		}},
		{"commit, empty", Empty, end(current, true), unchanged, ErrState, nil},
		{"abort, empty", Empty, end(current, false), unchanged, ErrState, nil},
		{"commit, committing", PrepareCommit, end(current, true), unchanged, ErrConcurrent, nil},
		{"abort, committing", PrepareCommit, end(current, false), unchanged, ErrState, nil},
		{"commit, aborting", PrepareAbort, end(current, true), unchanged, ErrState, nil},
		{"abort, aborting", PrepareAbort, end(current, false), unchanged, ErrConcurrent, nil},
		{"commit, committed", CompleteCommit, end(current, true), unchanged, nil, nil},
		{"abort, committed", CompleteCommit, end(current, false), unchanged, ErrState, nil},
		{"commit, aborted", CompleteAbort, end(current, true), unchanged, ErrState, nil},
		{"abort, aborted", CompleteAbort, end(current, false), unchanged, nil, nil},
		{"commit, old epoch", Ongoing, end(producer(7, 1), true), unchanged, ErrFenced, nil},
		{"commit, another producer", Ongoing, end(producer(8, 2), true), unchanged, ErrProducerMapping, nil},

		{"init, empty", Empty, begin(nil, none), Empty, nil, func(t *testing.T, c *Change) {
			require.Equal(t, producer(7, 3), producer(c.ProducerID, c.Epoch))
			require.Equal(t, time.Second, c.Timeout)
			require.EqualValues(t, -1, c.Started)
		}},
		{"init, committed", CompleteCommit, begin(nil, none), Empty, nil, nil},
		{"init, open", Ongoing, begin(nil, none), PrepareAbort, ErrConcurrent, func(t *testing.T, c *Change) {
			require.EqualValues(t, 3, c.Epoch, "whoever had it open is fenced")
		}},
		{"init, committing", PrepareCommit, begin(nil, none), unchanged, ErrConcurrent, nil},
		{"init, aborting", PrepareAbort, begin(nil, none), unchanged, ErrConcurrent, nil},
		{"init by the current producer", CompleteAbort, begin(&current, none), Empty, nil, func(t *testing.T, c *Change) { require.EqualValues(t, 3, c.Epoch) }},
		{"init by an older one", Empty, begin(&Producer{ID: 7, Epoch: 1}, none), unchanged, ErrFenced, nil},
		{"init by another one", Empty, begin(&Producer{ID: 8, Epoch: 2}, none), unchanged, ErrFenced, nil},
		{"init by another one, open", Ongoing, begin(&Producer{ID: 8, Epoch: 2}, none), unchanged, ErrFenced, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := in(tc.from)
			before := x.Record()
			c, err := tc.event(x)
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, before, x.Record(), "nothing is in force before it is stored")
			if tc.to == unchanged {
				require.Nil(t, c)
				return
			}
			require.Equal(t, tc.to, c.State)
			if tc.check != nil {
				tc.check(t, c)
			}
			_, err = x.Add(at(6000), x.Producer(), parts("u", 9))
			require.ErrorIs(t, err, ErrConcurrent, "while it is being stored")
			_, err = x.Init(at(6000), Init{})
			require.ErrorIs(t, err, ErrConcurrent)
			x.Stored(nil)
			require.Equal(t, c.Record, x.Record())
		})
	}
}

// initialize goes through Init and has it stored.
func initialize(t require.TestingT, x *Transaction, expected *Producer, fresh int64) Producer {
	c, err := x.Init(at(1), Init{Timeout: time.Minute, Expected: expected, FreshID: fresh})
	require.NoError(t, err)
	x.Stored(nil)
	return producer(c.ProducerID, c.Epoch)
}

func TestNewTransactionalID(t *testing.T) {
	x := NewTransaction("id", 5)
	require.True(t, x.Unborn())
	_, err := x.Add(at(1), producer(5, -1), nil)
	require.ErrorIs(t, err, ErrProducerMapping, "nobody has it yet")
	_, err = x.Init(at(1), Init{})
	require.NoError(t, err)
	x.Stored(errLost)
	require.True(t, x.Unborn())
	require.Equal(t, producer(5, 0), initialize(t, x, &Producer{ID: 99, Epoch: 3}, none), "an id that was forgotten since")
	require.False(t, x.Unborn())
}

// TestRetriedInit: a producer that bumped its own epoch and lost the answer asks again and is given the same one; but not after
// another producer came (KIP-360).
func TestRetriedInit(t *testing.T) {
	x := NewTransaction("id", 5)
	first := initialize(t, x, nil, none)
	second := initialize(t, x, &first, none)
	require.Equal(t, producer(5, 1), second)
	require.Equal(t, second, initialize(t, x, &first, none))
	require.Equal(t, producer(5, 2), initialize(t, x, nil, none), "another producer")
	_, err := x.Init(at(1), Init{Expected: &first, FreshID: none})
	require.ErrorIs(t, err, ErrFenced)
	_, err = x.Init(at(1), Init{Expected: &second, FreshID: none})
	require.ErrorIs(t, err, ErrFenced)
}

func TestExhaustedEpochs(t *testing.T) {
	exhausted := func(epoch int16) *Transaction {
		return Restore("id", Record{ProducerID: 5, Epoch: epoch, Timeout: time.Minute, State: CompleteCommit})
	}
	require.False(t, exhausted(lastEpoch-1).NeedsID())
	require.Equal(t, producer(5, lastEpoch), initialize(t, exhausted(lastEpoch-1), nil, none))
	for _, epoch := range []int16{lastEpoch, lastEpoch + 1} {
		x := exhausted(epoch)
		require.True(t, x.NeedsID())
		_, err := x.Init(at(1), Init{FreshID: none})
		require.ErrorIs(t, err, ErrUnavailable)
		require.Equal(t, producer(6, 0), initialize(t, x, nil, 6))
	}
	x := exhausted(lastEpoch)
	was := x.Producer()
	require.Equal(t, producer(6, 0), initialize(t, x, &was, 6))
	require.Equal(t, producer(6, 0), initialize(t, x, &was, 7), "asked again")
	open := Restore("id", Record{ProducerID: 5, Epoch: lastEpoch, Timeout: time.Minute, State: Ongoing, Partitions: parts("t", 0)})
	require.False(t, open.NeedsID())
	c, err := open.Init(at(1), Init{FreshID: none})
	require.ErrorIs(t, err, ErrConcurrent)
	require.EqualValues(t, lastEpoch+1, c.Epoch, "the one that is kept for fencing")
}

func TestTimeOut(t *testing.T) {
	x := in(Ongoing)
	require.Equal(t, at(61000), x.Due())
	require.Nil(t, x.TimeOut(at(60999)))
	c := x.TimeOut(at(61000))
	require.Equal(t, PrepareAbort, c.State)
	require.EqualValues(t, 3, c.Epoch)
	require.True(t, x.Due().IsZero())
	x.Stored(errLost)
	require.Equal(t, Ongoing, x.Record().State)
	_, err := x.End(at(61001), producer(7, 2), true)
	require.ErrorIs(t, err, ErrFenced, "the abort may be in the log")
	c = x.TimeOut(at(61001))
	require.EqualValues(t, 3, c.Epoch, "raised once")
	x.Stored(nil)
	c = x.Complete(at(62000))
	require.Equal(t, CompleteAbort, c.State)
	x.Stored(nil)
	require.Equal(t, producer(7, 4), initialize(t, x, nil, none))
	for _, s := range []State{Empty, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort} {
		require.True(t, in(s).Due().IsZero(), s)
		require.Nil(t, in(s).TimeOut(at(1<<40)), s)
	}
}

func TestExpire(t *testing.T) {
	for _, s := range []State{Empty, CompleteCommit, CompleteAbort} {
		require.Nil(t, in(s).Expire(at(2999), time.Second))
		c := in(s).Expire(at(3000), time.Second)
		require.Equal(t, Dead, c.State)
	}
	for _, s := range []State{Ongoing, PrepareCommit, PrepareAbort} {
		require.Nil(t, in(s).Expire(at(1<<40), time.Second), s)
	}
	require.Nil(t, NewTransaction("id", 1).Expire(at(1<<40), time.Second))
}

func TestVerify(t *testing.T) {
	to := partition.ID{Topic: "t"}
	require.NoError(t, in(Ongoing).Verify(producer(7, 2), to))
	require.ErrorIs(t, in(Ongoing).Verify(producer(7, 2), partition.ID{Topic: "t", Partition: 1}), ErrNotAdded)
	require.ErrorIs(t, in(Ongoing).Verify(producer(7, 1), to), ErrFenced)
	require.ErrorIs(t, in(Ongoing).Verify(producer(7, 3), to), ErrFenced)
	require.ErrorIs(t, in(Ongoing).Verify(producer(8, 2), to), ErrProducerMapping)
	require.ErrorIs(t, in(PrepareCommit).Verify(producer(7, 2), to), ErrConcurrent)
	require.ErrorIs(t, in(CompleteCommit).Verify(producer(7, 2), to), ErrNotAdded)
	x := in(Ongoing)
	_, err := x.Add(at(1), producer(7, 2), parts("t", 1))
	require.NoError(t, err)
	require.NoError(t, x.Verify(producer(7, 2), to), "while more is added")
	require.ErrorIs(t, x.Verify(producer(7, 2), partition.ID{Topic: "t", Partition: 1}), ErrNotAdded, "not stored yet")
	x.Stored(nil)
	_, err = x.End(at(1), producer(7, 2), true)
	require.NoError(t, err)
	require.ErrorIs(t, x.Verify(producer(7, 2), to), ErrConcurrent, "from the moment that the end is being decided")
}

// TestHistories plays random histories with two producers, lost writes, crashes and timeouts, and holds on to what must be
// true in each: nothing is committed but by a commit of the current producer that was stored, epochs only rise, a fenced
// producer changes nothing, and what was begun ends.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := NewTransaction("id", 1)
		log := Record{Epoch: none} // the last record that was stored, as a load would find it
		known := noProducer()      // the last one that a client can have been told of
		now := int64(1000)
		var next int64 = 2
		clients := []Producer{noProducer(), noProducer()}
		asked := false // the current producer asked for a commit, since the transaction began
		store := func(c *Change) error {
			outcome := rapid.SampledFrom([]string{"stored", "stored", "stored", "lost", "stored without word"}).Draw(rt, "store")
			before := x.Record()
			if outcome != "lost" {
				if c.State == PrepareCommit || c.State == CompleteCommit {
					require.True(rt, asked, "committed without a commit")
				}
				require.True(rt, c.ProducerID > known.ID || c.Epoch >= known.Epoch, "epoch falls from %d to %d", known.Epoch, c.Epoch)
				log = c.Record
			}
			if outcome == "stored" {
				x.Stored(nil)
				known = x.Producer()
				return nil
			}
			x.Stored(errLost)
			require.Equal(rt, before.State, x.Record().State)
			return errLost
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += rapid.Int64Range(0, 30000).Draw(rt, "ms")
			who := rapid.IntRange(0, 1).Draw(rt, "who")
			p := clients[who]
			fenced := p != x.Producer()
			switch rapid.SampledFrom([]string{"init", "init again", "add", "add", "add", "commit", "commit", "abort", "markers", "markers", "time", "crash"}).Draw(rt, "event") {
			case "init":
				c, err := x.Init(at(now), Init{Timeout: time.Minute, FreshID: next})
				next++
				if c != nil && store(c) == nil && err == nil {
					clients[who], asked = producer(c.ProducerID, c.Epoch), false
				}
			case "init again":
				if p == noProducer() {
					continue
				}
				c, err := x.Init(at(now), Init{Timeout: time.Minute, Expected: &p, FreshID: next})
				next++
				if c != nil && store(c) == nil && err == nil {
					clients[who], asked = producer(c.ProducerID, c.Epoch), false
				}
			case "add":
				c, err := x.Add(at(now), p, parts("t", rapid.Int32Range(0, 3).Draw(rt, "partition")))
				require.False(rt, fenced && (c != nil || err == nil), "a fenced producer adds")
				if c != nil {
					if x.Record().State != Ongoing {
						asked = false
					}
					_ = store(c)
				}
			case "commit", "abort":
				commit := rapid.Bool().Draw(rt, "commit")
				c, err := x.End(at(now), p, commit)
				require.False(rt, fenced && (c != nil || err == nil), "a fenced producer ends")
				if c != nil {
					asked = asked || commit
					_ = store(c)
				}
			case "markers":
				if c := x.Complete(at(now)); c != nil {
					_ = store(c)
				}
			case "time":
				if c := x.TimeOut(at(now)); c != nil {
					_ = store(c)
				}
			case "crash":
				if log.Epoch != none {
					x = Restore("id", log)
					known = x.Producer()
				}
			}
		}
		for range 4 { // it ends: time passes, markers are written, nothing is lost any more
			now += time.Hour.Milliseconds()
			for _, c := range []*Change{x.TimeOut(at(now)), x.Complete(at(now))} {
				if c != nil {
					x.Stored(nil)
				}
			}
		}
		s := x.Record().State
		require.True(rt, s == Empty || s == CompleteCommit || s == CompleteAbort, "still %s", s)
	})
}
