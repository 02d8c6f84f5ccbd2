package history

import (
	"fmt"
	"time"
)

// view judges what one reader saw.
type view struct {
	*partition
	*View
	index int

	places [][]int64          // by producer and sequence: the offset that it was shown at, -1 when it wasn't
	there  map[int64]struct{} // the offsets that were shown
}

func (v *view) check() {
	v.there = make(map[int64]struct{}, len(v.Seen))
	v.places = make([][]int64, len(v.Writes))
	for producer, writes := range v.Writes {
		v.places[producer] = make([]int64, len(writes))
		for sequence := range writes {
			v.places[producer][sequence] = -1
		}
	}
	latest := make([]int32, len(v.Writes)) // each producer's highest sequence so far, plus one
	last := v.From - 1
	for i := range v.Seen {
		s := &v.Seen[i]
		if s.Offset <= last {
			v.fault(Backwards, v.Name, s.Offset, nil, func() string {
				return fmt.Sprintf("offset %d was shown after %d", s.Offset, last)
			})
		}
		last = max(last, s.Offset)
		v.there[s.Offset] = struct{}{}
		v.one(s, latest)
	}
	v.passedOver()
	if v.Final {
		v.complete()
		v.vanished()
	}
	if v.Final && v.Committed {
		v.visible = map[int32]int{}
		v.countVisible()
	}
}

// one judges one thing that was shown.
func (v *view) one(s *Seen, latest []int32) {
	if before := v.first[s.Offset]; before.content != s.content() {
		v.fault(Changed, v.Name, s.Offset, nil, func() string {
			return fmt.Sprintf("offset %d was %v to %s at %v, and %v at %v", s.Offset, before.content, v.Views[before.view].Name, round(before.at), s.content(), round(s.At))
		})
	}
	switch s.What {
	case Garbled:
		v.fault(Corrupt, v.Name, s.Offset, nil, func() string { return fmt.Sprintf("offset %d has bytes that nobody sent", s.Offset) })
		return
	case Others:
		if !v.history.Shared {
			v.fault(Foreign, v.Name, s.Offset, nil, func() string {
				return fmt.Sprintf("offset %d has a record of others, and nobody else writes to this topic", s.Offset)
			})
		}
		return
	case Marker:
		return
	}
	n := name{s.Producer, s.Sequence}
	w := v.write(n)
	if w == nil || s.At < w.Sent {
		v.fault(Corrupt, v.Name, s.Offset, nil, func() string { return fmt.Sprintf("offset %d has %v, which was not sent yet", s.Offset, n) })
		return
	}
	v.place(n, w, s.Offset, latest)
	if v.Committed {
		v.transactional(n, w, s)
	}
}

// place judges where a record stands.
func (v *view) place(n name, w *Write, offset int64, latest []int32) {
	if w.Acknowledged && w.Offset != offset {
		v.fault(Misplaced, v.Name, w.Offset, &n, func() string {
			return fmt.Sprintf("%v was acknowledged at offset %d and is at %d", n, w.Offset, offset)
		})
	}
	place := &v.places[n.producer][n.sequence]
	if *place >= 0 {
		if *place != offset {
			first := *place
			v.fault(Duplicate, v.Name, -1, &n, func() string { return fmt.Sprintf("%v is at offset %d and at %d", n, first, offset) })
		}
		return
	}
	*place = offset
	if n.sequence < latest[n.producer]-1 {
		v.fault(Reordered, v.Name, -1, &n, func() string {
			return fmt.Sprintf("%v is at offset %d, behind that producer's record %d", n, offset, latest[n.producer]-1)
		})
	}
	latest[n.producer] = max(latest[n.producer], n.sequence+1)
}

// transactional judges a record that was shown as committed.
func (v *view) transactional(n name, w *Write, s *Seen) {
	t := v.transaction(w)
	switch {
	case t == nil:
	case t.Outcome == WasAborted || t.Abort && t.Outcome == Unknown:
		v.fault(Aborted, v.Name, s.Offset, &n, func() string {
			return fmt.Sprintf("%v was shown as committed at offset %d, but its transaction was aborted", n, s.Offset)
		})
	case t.Ending == 0 || s.At < t.Ending:
		v.fault(Dirty, v.Name, s.Offset, &n, func() string {
			return fmt.Sprintf("%v was shown as committed at %v, before anybody asked to commit its transaction", n, round(s.At))
		})
	}
}

// empty says whether an offset has nothing for this reader.
func (v *view) empty(offset int64) bool {
	if !v.Committed {
		return false
	}
	first, known := v.first[offset]
	if !known {
		n, acked := v.acked[offset]
		if !acked { // a marker, perhaps, or what nobody was told about
			return len(v.history.Transactions) > 0
		}
		first.content = content{what: Record, producer: n.producer, sequence: n.sequence}
	}
	switch first.what {
	case Marker:
		return true
	case Record:
		t := v.transaction(v.write(name{first.producer, first.sequence}))
		return t != nil && t.Outcome != WasCommitted
	default:
		return v.history.Shared // others may have transactions, too
	}
}

// passedOver looks for offsets that are not there within what was shown.
func (v *view) passedOver() {
	for offset := v.From; offset < v.To; offset++ {
		if _, ok := v.there[offset]; ok || v.empty(offset) {
			continue
		}
		v.fault(Gap, v.Name, offset, nil, func() string {
			what := "nobody saw it elsewhere"
			if first, ok := v.first[offset]; ok {
				what = fmt.Sprintf("%s saw %v there", v.Views[first.view].Name, first.content)
			} else if n, ok := v.acked[offset]; ok {
				what = fmt.Sprintf("%v was acknowledged there", n)
			}
			return fmt.Sprintf("offset %d was passed over; %s", offset, what)
		})
	}
}

// complete holds a final view against what was acknowledged.
func (v *view) complete() {
	for producer, places := range v.places {
		later := -1 // the highest sequence that is there
		for sequence := len(places) - 1; sequence >= 0; sequence-- {
			if places[sequence] >= 0 {
				later = max(later, sequence)
				continue
			}
			n := name{int32(producer), int32(sequence)}
			w := v.write(n)
			t := v.transaction(w)
			switch hidden := v.Committed && t != nil && t.Outcome != WasCommitted; {
			case hidden:
			case w.Acknowledged:
				v.fault(Lost, v.Name, w.Offset, &n, func() string {
					why := fmt.Sprintf("the partition is shown from %d to %d", v.From, v.To)
					if w.Offset >= v.To {
						why = fmt.Sprintf("the partition ends at %d", v.To)
					}
					return fmt.Sprintf("%v was acknowledged at offset %d at %v, and isn't there: %s", n, w.Offset, round(w.Told), why)
				})
			case later > sequence:
				v.fault(Hole, v.Name, -1, &n, func() string {
					return fmt.Sprintf("%v isn't there, but that producer's record %d is", n, later)
				})
			}
		}
	}
}

// vanished looks for what was shown to somebody before this view began and is not there now. What was acknowledged as well is
// Lost, and no news.
func (v *view) vanished() {
	for offset, first := range v.first {
		if _, ok := v.there[offset]; ok || first.at >= v.Begin || offset < v.From || v.empty(offset) {
			continue
		}
		if n, ok := v.acked[offset]; ok && first.what == Record && n == (name{first.producer, first.sequence}) {
			continue
		}
		v.fault(Vanished, v.Name, offset, nil, func() string {
			return fmt.Sprintf("offset %d had %v when %s read it at %v, and is empty now", offset, first.content, v.Views[first.view].Name, round(first.at))
		})
	}
}

// countVisible counts the records of transactions that are shown.
func (v *view) countVisible() {
	for producer, places := range v.places {
		for sequence, place := range places {
			if t := v.Writes[producer][sequence].Transaction; t >= 0 && place >= 0 {
				v.visible[t]++
			}
		}
	}
}

// torn looks for transactions of which some records are shown and others, that were acknowledged, aren't. Those that were
// committed are left out: what they lack is Lost.
func torn(h *History, visible []map[int32]int, f *findings) {
	missing, there := map[int32]int{}, map[int32]int{}
	for i := range h.Partitions {
		if visible[i] == nil {
			return // not everything was read
		}
		acknowledged := map[int32]int{}
		for _, writes := range h.Partitions[i].Writes {
			for _, w := range writes {
				if w.Transaction >= 0 && w.Acknowledged {
					acknowledged[w.Transaction]++
				}
			}
		}
		for t, n := range acknowledged {
			missing[t] += max(0, n-visible[i][t])
		}
		for t, n := range visible[i] {
			there[t] += n
		}
	}
	for t, n := range there {
		if missing[t] == 0 || h.Transactions[t].Outcome != Unknown {
			continue
		}
		f.add(key{kind: Torn, partition: -1, offset: -1, producer: h.Transactions[t].Producer, sequence: t}, "", func() string {
			return fmt.Sprintf("of transaction %d of producer %d, %d records are there and %d acknowledged ones are not", t, h.Transactions[t].Producer, n, missing[t])
		})
	}
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
