package history

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFaultlessHistoriesHaveNoFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Check(play(t))
		if !r.OK() {
			t.Fatalf("%v", r.Faults)
		}
	})
}

// small is a history in which everything happens once, and nothing wrong:
//
//	offset  0    1    2    3    4    5    6       7    8       9
//	        0/0  1/0  0/1  1/1  2/0  2/1  commit  2/2  abort   0/2
//
// Producer 2's writes are two transactions. Each record is sent at ten times its offset in milliseconds and acknowledged one
// millisecond later; the live readers see it two later, those of what is committed when it is.
func small() *History {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	p := Partition{Writes: make([][]Write, 3)}
	h := &History{Transactions: []Transaction{
		{Producer: 2, Ending: ms(60), Outcome: WasCommitted}, {Producer: 2, Ending: ms(80), Abort: true, Outcome: WasAborted},
	}}
	transactions := map[int64]int32{4: 0, 5: 0, 7: 1}
	live, committed := View{Name: "live", To: 10}, View{Name: "live committed", Committed: true, To: 10}
	for offset, producer := range []int32{0, 1, 0, 1, 2, 2, -1, 2, -1, 0} {
		offset := int64(offset)
		s := Seen{Offset: offset, At: ms(10*offset + 2), What: Marker, Sum: uint32(offset)}
		if producer >= 0 {
			s = Seen{Offset: offset, At: s.At, Producer: producer, Sequence: int32(len(p.Writes[producer]))}
			w := Write{Sent: ms(10 * offset), Told: ms(10*offset + 1), Acknowledged: true, Offset: offset, Transaction: -1}
			if t, ok := transactions[offset]; ok {
				w.Transaction = t
			}
			p.Writes[producer] = append(p.Writes[producer], w)
			if w.Transaction != 1 {
				c := s
				c.At = max(c.At, h.endOf(w.Transaction)+ms(1))
				committed.Seen = append(committed.Seen, c)
			}
		}
		live.Seen = append(live.Seen, s)
	}
	p.Ends = []End{{ms(5), ms(6), 1}, {ms(35), ms(36), 4}, {ms(95), ms(96), 10}}
	p.Views = []View{live, committed, final("replica 1", live), final("replica 2", live), final("committed", committed)}
	h.Partitions = []Partition{p}
	return h
}

func (h *History) endOf(transaction int32) time.Duration {
	if transaction < 0 {
		return 0
	}
	return h.Transactions[transaction].Ending
}

func final(name string, like View) View {
	v := like
	v.Name, v.Final, v.Begin, v.Seen = name, true, time.Second, slices.Clone(like.Seen)
	for i := range v.Seen {
		v.Seen[i].At = time.Second + time.Millisecond
	}
	return v
}

// without takes an offset out of a view.
func (v *View) without(offset int64) {
	v.Seen = slices.DeleteFunc(v.Seen, func(s Seen) bool { return s.Offset == offset })
}

// cut lets a view end at an offset.
func (v *View) cut(offset int64) {
	v.To = offset
	v.Seen = slices.DeleteFunc(v.Seen, func(s Seen) bool { return s.Offset >= offset })
}

const (
	live = iota
	liveCommitted
	replica1
	replica2
	committed
)

// TestEachFaultIsFound plants one fault and wants just the kinds that it is.
func TestEachFaultIsFound(t *testing.T) {
	type counts map[Kind]int
	none := counts{}
	for what, k := range map[string]struct {
		plant func(h *History, p *Partition)
		want  counts
		say   string
	}{
		"nothing": {func(*History, *Partition) {}, none, ""},
		"a replica has lost its end": {func(_ *History, p *Partition) { p.Views[replica2].cut(9) },
			counts{Lost: 1}, "lost: partition 0: record 2 of producer 0 was acknowledged at offset 9 at 91ms, and isn't there: the partition ends at 9 (replica 2)"},
		"all have lost their end": {func(_ *History, p *Partition) {
			for i := replica1; i <= committed; i++ {
				p.Views[i].cut(9)
			}
		}, counts{Lost: 1}, "(replica 1, replica 2, committed)"},
		"the end is lost and overwritten": {func(_ *History, p *Partition) {
			p.Writes[1] = append(p.Writes[1], Write{Sent: 200 * time.Millisecond, Transaction: -1})
			for i := replica1; i <= committed; i++ {
				p.Views[i].Seen[len(p.Views[i].Seen)-1].Producer = 1
			}
		}, counts{Lost: 1, Changed: 1}, "changed: partition 0: offset 9 was record 2 of producer 0 to live at 92ms, and record 2 of producer 1 at 1.001s"},
		"a record of the middle is lost": {func(_ *History, p *Partition) { p.Views[replica1].without(2) },
			counts{Lost: 1, Gap: 1}, "offset 2 was passed over; live saw record 1 of producer 0 there (replica 1)"},
		"an unacknowledged record of the middle is lost": {func(_ *History, p *Partition) {
			p.Writes[0][1].Acknowledged = false
			p.Views[replica1].without(2)
		}, counts{Hole: 1, Gap: 1, Vanished: 1}, "hole: partition 0: record 1 of producer 0 isn't there, but that producer's record 2 is (replica 1)"},
		"what nobody was told of may be missing": {func(_ *History, p *Partition) {
			p.Writes[0][2].Acknowledged = false
			p.Ends = p.Ends[:2]
			for i := range p.Views {
				p.Views[i].cut(9)
			}
		}, none, ""},
		"a reader saw what is not there any more": {func(_ *History, p *Partition) {
			p.Writes[0][2].Acknowledged = false
			for i := replica1; i <= committed; i++ {
				p.Views[i].cut(9)
			}
		}, counts{Vanished: 1}, "offset 9 had record 2 of producer 0 when live read it at 92ms, and is empty now"},
		"a client was told of a loss": {func(_ *History, p *Partition) { p.Losses = []Loss{{"live", 5, 7, 4, 2}} },
			counts{Vanished: 1}, "a reader that had come to offset 7 (leader epoch 2) was told to go on from 4"},
		"a record is there twice": {func(_ *History, p *Partition) {
			p.Writes[0] = p.Writes[0][:2]
			for i := range p.Views {
				v := &p.Views[i]
				v.Seen[len(v.Seen)-1].Sequence = 1
			}
		}, counts{Duplicate: 1, Misplaced: 1}, "duplicate: partition 0: record 1 of producer 0 is at offset 2 and at 9"},
		"an acknowledged one is there twice": {func(_ *History, p *Partition) {
			p.Writes[0] = append(p.Writes[0][:2:2], Write{Acknowledged: true, Offset: 10, Told: 101 * time.Millisecond, Sent: 0, Transaction: -1})
			for i := range p.Views {
				v := &p.Views[i]
				next := v.Seen[len(v.Seen)-1]
				v.Seen[len(v.Seen)-1].Sequence = 1
				next.Offset, v.To, next.At = 10, 11, next.At+10*time.Millisecond
				v.Seen = append(v.Seen, next)
			}
		}, counts{Duplicate: 1, Misplaced: 1}, "(live, live committed, replica 1, replica 2, committed)"},
		"two are exchanged": {func(_ *History, p *Partition) {
			p.Writes[0][0].Acknowledged, p.Writes[0][1].Acknowledged = false, false
			p.Writes[0][1].Sent = 0
			for i := range p.Views {
				v := &p.Views[i]
				v.Seen[0].Sequence, v.Seen[2].Sequence = 1, 0
			}
		}, counts{Reordered: 1}, "record 0 of producer 0 is at offset 2, behind that producer's record 1"},
		"a wrong offset is told": {func(_ *History, p *Partition) { p.Writes[0][2].Offset = 11 },
			counts{Misplaced: 1, Stale: 1}, "record 2 of producer 0 was acknowledged at offset 11 and is at 9"},
		"one offset is told twice": {func(_ *History, p *Partition) { p.Writes[0][2].Offset = 1 },
			counts{Changed: 1, Misplaced: 1}, "offset 1 was acknowledged for record 2 of producer 0 and for record 0 of producer 1"},
		"a value changes": {func(_ *History, p *Partition) {
			p.Views[replica1].Seen[3] = Seen{Offset: 3, What: Garbled, Sum: 5, At: time.Second}
		}, counts{Changed: 1, Corrupt: 1, Lost: 1}, "corrupt: partition 0: offset 3 has bytes that nobody sent (replica 1)"},
		"a record comes from nowhere": {func(_ *History, p *Partition) {
			for i := range p.Views {
				p.Views[i].Seen[0].Producer = 7
			}
		}, counts{Corrupt: 1, Lost: 1}, "offset 0 has record 0 of producer 7, which was not sent yet"},
		"somebody else writes": {func(_ *History, p *Partition) {
			p.Writes[0] = p.Writes[0][:2]
			for i := range p.Views {
				v := &p.Views[i]
				v.Seen[len(v.Seen)-1] = Seen{Offset: 9, What: Others, At: v.Seen[len(v.Seen)-1].At}
			}
		}, counts{Foreign: 1}, "nobody else writes to this topic"},
		"somebody else may write": {func(h *History, p *Partition) {
			h.Shared = true
			p.Writes[0] = p.Writes[0][:2]
			for i := range p.Views {
				v := &p.Views[i]
				v.Seen[len(v.Seen)-1] = Seen{Offset: 9, What: Others, At: v.Seen[len(v.Seen)-1].At}
			}
		}, none, ""},
		"a reader is shown too much": {func(_ *History, p *Partition) {
			p.Writes[0][2].Acknowledged = false
			p.Views[live].Seen[9].Early = true
			p.Ends[2].Offset = 9
		}, counts{Uncommitted: 1}, "asked at 95ms, the end was told as 9, though offset 9 had been shown to live, above the end told with it, before"},
		"an end moves while a reader reads": {func(_ *History, p *Partition) { p.Views[live].Seen[9].Early = true }, none, ""},
		"an aborted record is shown": {func(_ *History, p *Partition) {
			v := &p.Views[liveCommitted]
			v.Seen = slices.Insert(v.Seen, 6, Seen{Offset: 7, At: 83 * time.Millisecond, Producer: 2, Sequence: 2})
		}, counts{Aborted: 1}, "record 2 of producer 2 was shown as committed at offset 7, but its transaction was aborted (live committed)"},
		"an open transaction is shown": {func(_ *History, p *Partition) { p.Views[liveCommitted].Seen[4].At = 45 * time.Millisecond },
			counts{Dirty: 1}, "record 0 of producer 2 was shown as committed at 45ms"},
		"a commit is torn": {func(_ *History, p *Partition) { p.Views[committed].without(5) },
			counts{Lost: 1, Gap: 1}, "record 1 of producer 2 was acknowledged at offset 5"},
		"a transaction of unknown outcome is torn": {func(h *History, p *Partition) {
			h.Transactions[0].Outcome = Unknown
			p.Views[liveCommitted].without(5)
			p.Views[committed].without(5)
		}, counts{Torn: 1}, "of transaction 0 of producer 2, 1 records are there and 1 acknowledged ones are not"},
		"a live reader leaves one out": {func(_ *History, p *Partition) { p.Views[live].without(3) },
			counts{Gap: 1}, "offset 3 was passed over; live committed saw record 1 of producer 1 there (live)"},
		"an offset stays empty for everybody": {func(_ *History, p *Partition) {
			p.Writes[1] = p.Writes[1][:1]
			p.Ends = nil
			for i := range p.Views {
				p.Views[i].without(3)
			}
		}, counts{Gap: 1}, "offset 3 was passed over; nobody saw it elsewhere (live, replica 1, replica 2)"},
		"a reader goes back": {func(_ *History, p *Partition) {
			v := &p.Views[live]
			v.Seen = slices.Insert(v.Seen, 4, v.Seen[1])
		}, counts{Backwards: 1}, "offset 1 was shown after 3 (live)"},
		"an end is too low": {func(_ *History, p *Partition) { p.Ends[1].Offset = 3 },
			counts{Stale: 1}, "asked at 35ms, the end was told as 3, though offset 3 had been acknowledged before"},
		"an end goes back": {func(_ *History, p *Partition) {
			p.Ends = append(p.Ends, End{Asked: 5 * time.Second, Told: 5 * time.Second, Offset: 12}, End{Asked: 6 * time.Second, Told: 6 * time.Second, Offset: 11})
		}, counts{Stale: 1}, "though 12 had been told as the end before"},
	} {
		t.Run(what, func(t *testing.T) {
			h := small()
			k.plant(h, &h.Partitions[0])
			r := Check(h)
			assert.Equal(t, k.want, counts(r.Counts), "%v", r.Faults)
			assert.Equal(t, len(k.want) == 0, r.OK())
			said := ""
			for _, fault := range r.Faults {
				said += fault.String() + "\n"
			}
			assert.Contains(t, said, k.say)
		})
	}
}

// TestPlantedInRandomHistories plants faults into random histories.
func TestPlantedInRandomHistories(t *testing.T) {
	acknowledged := func(t *rapid.T, h *History) int64 {
		var all []int64
		for producer, writes := range h.Partitions[0].Writes {
			for _, w := range writes {
				if w.Acknowledged && producer < modelProducers-1 {
					all = append(all, w.Offset)
				}
			}
		}
		if len(all) == 0 {
			t.Skip("nothing was acknowledged")
		}
		return rapid.SampledFrom(all).Draw(t, "offset")
	}
	for kind, plant := range map[Kind]func(t *rapid.T, h *History){
		Lost: func(t *rapid.T, h *History) {
			offset := acknowledged(t, h)
			for i := range h.Partitions[0].Views {
				h.Partitions[0].Views[i].without(offset)
			}
		},
		Changed: func(t *rapid.T, h *History) {
			v := &h.Partitions[0].Views[replica2]
			v.Seen[acknowledged(t, h)] = Seen{Offset: acknowledged(t, h), What: Others, At: v.Begin}
		},
		Gap: func(t *rapid.T, h *History) { h.Partitions[0].Views[replica1].without(acknowledged(t, h)) },
		Stale: func(t *rapid.T, h *History) {
			h.Partitions[0].Ends = append(h.Partitions[0].Ends, End{Asked: time.Hour, Told: time.Hour, Offset: acknowledged(t, h)})
		},
		Backwards: func(t *rapid.T, h *History) {
			v := &h.Partitions[0].Views[replica1]
			v.Seen = append(v.Seen, v.Seen[acknowledged(t, h)])
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := play(t)
				plant(t, h)
				if Check(h).Counts[kind] == 0 {
					t.Fatal("not found")
				}
			})
		})
	}
}

func TestAllAreCountedAndSomeDescribed(t *testing.T) {
	h := small()
	for i := range 3 * PerKind {
		h.Partitions[0].Losses = append(h.Partitions[0].Losses, Loss{Name: "live", ResetTo: int64(i)})
	}
	r := Check(h)
	require.Equal(t, 3*PerKind, r.Counts[Vanished])
	require.Len(t, r.Faults, PerKind)
	require.Zero(t, r.Faults[0].Offset)
	require.False(t, r.OK(Lost))
	require.True(t, r.OK(Vanished))
}
