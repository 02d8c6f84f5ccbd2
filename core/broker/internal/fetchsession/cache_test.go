package fetchsession

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func newCache(slots int) *Cache {
	id := uint32(100)
	return NewCache(Options{Slots: slots, EvictAfter: 1000, MaxPartitions: 1 << 20, Random: func() uint32 { id++; return id }})
}

func part(n int32, offset int64) Partition {
	return Partition{Key: Key{Topic: "t", Partition: n}, Params: Params{Offset: offset, MaxBytes: 1000}}
}

func parts(ns ...int32) (ps []Partition) {
	for _, n := range ns {
		ps = append(ps, part(n, 0))
	}
	return ps
}

func numbers(ps []Partition) (ns []int32) {
	for _, p := range ps {
		ns = append(ns, p.Partition)
	}
	return ns
}

// open makes a session with the partitions, all empty.
func open(t *testing.T, c *Cache, now int64, r Request) int32 {
	t.Helper()
	x, err := c.Begin(r, now, nil)
	require.NoError(t, err)
	require.False(t, x.Incremental())
	return x.Finish(now, make([]Answer, len(x.Partitions)))
}

func TestFullFetches(t *testing.T) {
	c := newCache(10)
	x, err := c.Begin(Request{Epoch: FinalEpoch, Partitions: parts(1, 2)}, 0, nil)
	require.NoError(t, err)
	require.Equal(t, []int32{1, 2}, numbers(x.Partitions))
	require.True(t, x.Select(&x.Partitions[0], Answer{}), "all is told")
	require.Zero(t, x.Finish(0, make([]Answer, 2)))
	require.Zero(t, c.Len())

	first := open(t, c, 0, Request{Partitions: parts(1)})
	require.Positive(t, first)
	second := open(t, c, 0, Request{SessionID: first, Partitions: parts(2)})
	require.NotEqual(t, first, second)
	_, err = c.Begin(Request{SessionID: first, Epoch: 1}, 0, nil)
	require.ErrorIs(t, err, ErrNotFound, "it was replaced")

	x, err = c.Begin(Request{SessionID: second, Epoch: FinalEpoch, Partitions: parts(3)}, 0, nil)
	require.NoError(t, err)
	require.Zero(t, x.Finish(0, make([]Answer, 1)))
	require.Zero(t, c.Len())
	require.Positive(t, open(t, c, 0, Request{SessionID: 4711, Partitions: parts(1)}), "an unknown session is replaced like a known one")
	require.Positive(t, open(t, c, 0, Request{}), "a session may begin empty")
}

func TestPartitionsGivenTwice(t *testing.T) {
	c := newCache(10)
	for _, more := range [][]int32{nil, make([]int32, 40)} {
		for i := range more {
			more[i] = int32(i + 10)
		}
		x, err := c.Begin(Request{Epoch: FinalEpoch, Partitions: append([]Partition{part(1, 5), part(2, 6), part(1, 7)}, parts(more...)...)}, 0, nil)
		require.NoError(t, err)
		require.Equal(t, []Partition{part(1, 7), part(2, 6)}, x.Partitions[:2])
		require.Len(t, x.Partitions, 2+len(more))
	}
}

func TestIncrementalFetches(t *testing.T) {
	c := newCache(10)
	id := open(t, c, 0, Request{Partitions: parts(1, 2, 3)})
	begin := func(epoch int32, change []Partition, forgotten ...Key) (Context, error) {
		return c.Begin(Request{SessionID: id, Epoch: epoch, Partitions: change, Forgotten: forgotten}, 0, nil)
	}
	next := int32(0)
	step := func(change []Partition, forgotten ...Key) Context {
		t.Helper()
		next++
		x, err := begin(next, change, forgotten...)
		require.NoError(t, err)
		return x
	}
	x := step(nil)
	require.Equal(t, id, x.SessionID())
	require.Equal(t, []int32{1, 2, 3}, numbers(x.Partitions))
	for i := range x.Partitions {
		require.False(t, x.Select(&x.Partitions[i], Answer{}), "nothing has changed")
	}
	x = step([]Partition{part(2, 9)})
	require.Equal(t, int64(9), x.Partitions[1].Offset)
	require.True(t, x.Select(&x.Partitions[0], Answer{Data: true}))
	require.False(t, x.Select(&x.Partitions[1], Answer{}))
	require.True(t, x.Select(&x.Partitions[2], Answer{HighWatermark: 4}))

	x = step(nil)
	require.Equal(t, []int32{2, 3, 1}, numbers(x.Partitions), "who had data comes last")
	require.False(t, x.Select(&x.Partitions[1], Answer{HighWatermark: 4}))
	require.True(t, x.Select(&x.Partitions[1], Answer{HighWatermark: 4, LogStart: 1}))
	require.True(t, x.Select(&x.Partitions[1], Answer{HighWatermark: 4, LogStart: 1, Told: true}))

	_, err := begin(next, nil)
	require.ErrorIs(t, err, ErrEpoch, "the same again")
	_, err = begin(next+2, nil)
	require.ErrorIs(t, err, ErrEpoch, "one left out")

	x = step([]Partition{part(4, 0)}, Key{Topic: "t", Partition: 2}, Key{Topic: "t", Partition: 99})
	require.Equal(t, []int32{3, 1, 4}, numbers(x.Partitions))
	require.True(t, x.Select(&x.Partitions[2], Answer{}), "a new one is told about")
	require.True(t, x.Select(&x.Partitions[2], Answer{HighWatermark: -1, LogStart: -1, Failed: true}))
	require.True(t, x.Select(&x.Partitions[2], Answer{HighWatermark: -1, LogStart: -1, Failed: true}), "an error is told each time")
	require.True(t, x.Select(&x.Partitions[2], Answer{}), "and that it is over")
	require.False(t, x.Select(&x.Partitions[2], Answer{}))

	x = step(nil, Key{Topic: "t", Partition: 1}, Key{Topic: "t", Partition: 3}, Key{Topic: "t", Partition: 4})
	require.False(t, x.Incremental())
	require.Zero(t, x.SessionID())
	require.Empty(t, x.Partitions)
	_, err = begin(next+1, nil)
	require.ErrorIs(t, err, ErrNotFound, "a session without partitions is over")
}

func TestErrors(t *testing.T) {
	c := newCache(10)
	byName := open(t, c, 0, Request{Partitions: parts(1)})
	byID := open(t, c, 0, Request{TopicIDs: true, Partitions: []Partition{{Key: Key{ID: [16]byte{1}}}}})
	for _, tc := range []struct {
		r    Request
		want error
	}{
		{Request{SessionID: 0, Epoch: 5}, ErrNotFound},
		{Request{SessionID: 0, Epoch: -2}, ErrNotFound},
		{Request{SessionID: 4711, Epoch: 1}, ErrNotFound},
		{Request{SessionID: byName, Epoch: 1, TopicIDs: true}, ErrTopicIDs},
		{Request{SessionID: byID, Epoch: 1}, ErrTopicIDs},
		{Request{SessionID: byName, Epoch: 2}, ErrEpoch},
		{Request{SessionID: byName, Epoch: -2}, ErrEpoch},
	} {
		_, err := c.Begin(tc.r, 0, nil)
		require.ErrorIs(t, err, tc.want, "%+v", tc.r)
	}
	_, err := c.Begin(Request{SessionID: byName, Epoch: 1}, 0, nil)
	require.NoError(t, err, "none of these counted")
}

func TestEpochWraps(t *testing.T) {
	c := newCache(10)
	id := open(t, c, 0, Request{Partitions: parts(1)})
	c.sessions[id].epoch = math.MaxInt32
	_, err := c.Begin(Request{SessionID: id, Epoch: math.MaxInt32}, 0, nil)
	require.NoError(t, err)
	_, err = c.Begin(Request{SessionID: id, Epoch: 1}, 0, nil)
	require.NoError(t, err)
}

func TestEviction(t *testing.T) {
	small, large := Request{Partitions: parts(1)}, Request{Partitions: parts(1, 2, 3)}
	follower := Request{Privileged: true, Partitions: parts(1)}
	for _, tc := range []struct {
		name   string
		first  Request // in the only slot, opened at 0
		usedAt int64
		now    int64
		second Request
		room   bool
	}{
		{"young, same", small, 0, 999, small, false},
		{"young, larger", small, 0, 999, large, false},
		{"unused for long", large, 0, 1001, small, true},
		{"unused for long, of a follower", follower, 0, 1001, small, true},
		{"old, but used", small, 900, 1500, small, true},
		{"old, but used, larger", small, 900, 1500, large, true},
		{"old, but used, smaller", large, 900, 1500, small, false},
		{"old, but used, follower's", follower, 900, 1500, large, false},
		{"young, for a follower", large, 0, 10, follower, true},
		{"young follower's, for a follower", follower, 0, 10, follower, false},
		{"old follower's in use, for a follower", follower, 900, 1500, follower, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCache(1)
			tc.first.Partitions, tc.second.Partitions = slices.Clone(tc.first.Partitions), slices.Clone(tc.second.Partitions)
			first := open(t, c, 0, tc.first)
			require.Positive(t, first)
			if tc.usedAt > 0 {
				_, err := c.Begin(Request{SessionID: first, Epoch: 1}, tc.usedAt, nil)
				require.NoError(t, err)
			}
			second := open(t, c, tc.now, tc.second)
			require.Equal(t, tc.room, second > 0)
			require.Equal(t, 1, c.Len())
			_, err := c.Begin(Request{SessionID: first, Epoch: 2 - b2i(tc.usedAt == 0)}, tc.now, nil)
			require.Equal(t, tc.room, err != nil)
		})
	}
	require.Zero(t, open(t, newCache(0), 0, small), "no slots, no sessions")
}

func b2i(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func TestPartitionsAreBounded(t *testing.T) {
	c := newCache(10)
	c.o.MaxPartitions = 3
	id := open(t, c, 0, Request{Partitions: parts(1, 2)})
	require.Positive(t, id)
	require.Zero(t, open(t, c, 0, Request{Partitions: parts(1, 2)}))
	_, err := c.Begin(Request{SessionID: id, Epoch: 1, Partitions: parts(3)}, 0, nil)
	require.NoError(t, err)
	_, err = c.Begin(Request{SessionID: id, Epoch: 2, Partitions: parts(4)}, 0, nil)
	require.ErrorIs(t, err, ErrNotFound)
	require.Zero(t, c.partitions)
}

// TestTheClientKnowsWhatIsTrue lets a client with a session and the partitions' high watermarks move at random: after each
// answer the client must know the truth about every partition of its session.
func TestTheClientKnowsWhatIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(2)
		truth := map[int32]Answer{}
		for n := range int32(6) {
			truth[n] = Answer{HighWatermark: int64(n)}
		}
		known := map[int32]Answer{} // the client's session
		var id, epoch int32
		now := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, 700).Draw(t, "pause")
			for n := range truth {
				switch rapid.IntRange(0, 5).Draw(t, fmt.Sprint("change of ", n)) {
				case 0:
					truth[n] = Answer{HighWatermark: truth[n].HighWatermark + 1, LogStart: truth[n].LogStart}
				case 1:
					truth[n] = Answer{HighWatermark: truth[n].HighWatermark, LogStart: truth[n].LogStart + 1}
				case 2:
					truth[n] = Answer{HighWatermark: -1, LogStart: -1, Failed: true}
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "another client") == 0 {
				x, err := c.Begin(Request{Partitions: parts(0, 1)}, now, nil)
				require.NoError(t, err)
				x.Finish(now, make([]Answer, 2))
			}
			r := Request{SessionID: id, Epoch: epoch}
			for n := range int32(6) {
				_, has := known[n]
				switch rapid.IntRange(0, 3).Draw(t, fmt.Sprint("wish ", n)) {
				case 0:
					r.Partitions = append(r.Partitions, part(n, now))
				case 1:
					if has && epoch > 0 {
						r.Forgotten = append(r.Forgotten, Key{Topic: "t", Partition: n})
						delete(known, n)
					}
				}
			}
			if epoch == 0 {
				clear(known)
			}
			x, err := c.Begin(r, now, nil)
			if err != nil {
				require.ErrorIs(t, err, ErrNotFound, "evicted")
				id, epoch = 0, 0
				continue
			}
			if x.Incremental() {
				want := map[int32]bool{}
				for n := range known {
					want[n] = true
				}
				for _, p := range r.Partitions {
					if !slices.Contains(r.Forgotten, p.Key) {
						want[p.Partition] = true
					}
				}
				require.Len(t, x.Partitions, len(want))
			}
			var answers []Answer
			for i := range x.Partitions {
				n := x.Partitions[i].Partition
				answers = append(answers, truth[n])
				if x.Select(&x.Partitions[i], truth[n]) {
					known[n] = truth[n]
				}
				require.Equal(t, truth[n], known[n])
			}
			sum := 0
			for _, s := range c.sessions {
				sum += len(s.partitions)
			}
			require.Equal(t, sum, c.partitions)
			switch sid := x.Finish(now, answers); {
			case sid == 0:
				id, epoch = 0, 0
			case epoch == 0:
				id, epoch = sid, 1
			default:
				require.Equal(t, id, sid)
				epoch++
			}
		}
	})
}
