package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Check judges a history. What it demands:
//   - of every final view: each acknowledged record is there (Lost), unless its transaction wasn't committed and the view shows
//     only what was; so is every record that anybody was shown before (Vanished); no record is there twice (Duplicate), nor
//     after a later one of its producer (Reordered), nor without all earlier ones (Hole);
//   - of every view: offsets only rise (Backwards) and none is passed over that has something for this reader (Gap);
//     nothing was read that nobody sent (Corrupt, Foreign);
//   - of who reads only what is committed: nothing of aborted transactions (Aborted), nothing before the commit was asked for
//     (Dirty), and in the end all of a transaction or nothing (Torn);
//   - of all together: an offset has one value for ever (Changed), the one acknowledged for it (Misplaced);
//   - of ends: one that is asked for after a record was shown lies above it, or that was shown too early (Uncommitted; Apache Kafka
//     itself shows records together with a high watermark at or below them, which moved while it read, so that alone says nothing);
//     one that is asked for after an acknowledgement lies above that record, and none lies below one told before it was asked for (Stale). Kafka breaks this one for moments: a leader that was deposed and doesn't know it answers in good
//     faith. Whoever lets leaders be paused or cut off tolerates it.
//
// A view that is not final may end anywhere. Memory: some 30 bytes a record on top of the history's own.
func Check(h *History) *Result {
	f := &findings{}
	shown := make([]map[int32]int, 0, len(h.Partitions))
	for i := range h.Partitions {
		p := &partition{history: h, Partition: &h.Partitions[i], findings: f}
		p.check()
		shown = append(shown, p.visible)
	}
	torn(h, shown, f)
	return f.result()
}

// partition judges one partition.
type partition struct {
	*Partition
	history  *History
	findings *findings

	first   map[int64]sight // the first that anybody was shown at each offset
	acked   map[int64]name  // what was acknowledged at each offset
	visible map[int32]int   // of each transaction, the records that a final view of what is committed shows; nil without such a view
}

type name struct{ producer, sequence int32 }

func (n name) String() string { return fmt.Sprintf("record %d of producer %d", n.sequence, n.producer) }

// sight is the first time that an offset was shown.
type sight struct {
	content
	at   time.Duration
	view int
}

func (c content) String() string {
	switch c.what {
	case Record:
		return name{c.producer, c.sequence}.String()
	case Marker:
		return "a marker"
	case Others:
		return "a record of others"
	default:
		return "a record that nobody sent"
	}
}

func (p *partition) check() {
	p.acknowledgements()
	p.firstSights()
	for i := range p.Views {
		(&view{partition: p, View: &p.Views[i], index: i}).check()
	}
	p.ends()
	for _, loss := range p.Losses {
		p.fault(Vanished, loss.Name, loss.ResetTo, nil, func() string {
			return fmt.Sprintf("a reader that had come to offset %d (leader epoch %d) was told to go on from %d: what it had read is gone", loss.ReadTo, loss.LastSeen, loss.ResetTo)
		})
	}
}

// fault adds a finding. who may be nil.
func (p *partition) fault(kind Kind, view string, offset int64, who *name, detail func() string) {
	k := key{kind: kind, partition: p.Number, offset: offset, producer: -1, sequence: -1}
	if who != nil {
		k.producer, k.sequence = who.producer, who.sequence
	}
	p.findings.add(k, view, detail)
}

// write is the write with a name, nil when nobody sent such a record.
func (p *partition) write(n name) *Write {
	if n.producer < 0 || int(n.producer) >= len(p.Writes) || n.sequence < 0 || int(n.sequence) >= len(p.Writes[n.producer]) {
		return nil
	}
	return &p.Writes[n.producer][n.sequence]
}

// transaction is the transaction of a write, nil when it is in none.
func (p *partition) transaction(w *Write) *Transaction {
	if w == nil || w.Transaction < 0 {
		return nil
	}
	return &p.history.Transactions[w.Transaction]
}

func (p *partition) acknowledgements() {
	p.acked = map[int64]name{}
	for producer, writes := range p.Writes {
		for sequence, w := range writes {
			if !w.Acknowledged {
				continue
			}
			n := name{int32(producer), int32(sequence)}
			if other, twice := p.acked[w.Offset]; twice {
				p.fault(Changed, "", w.Offset, nil, func() string {
					return fmt.Sprintf("offset %d was acknowledged for %v and for %v", w.Offset, other, n)
				})
				continue
			}
			p.acked[w.Offset] = n
		}
	}
}

// firstSights notes what was shown first at each offset, whoever saw it.
func (p *partition) firstSights() {
	p.first = map[int64]sight{}
	for i := range p.Views {
		for j := range p.Views[i].Seen {
			s := &p.Views[i].Seen[j]
			old, ok := p.first[s.Offset]
			if !ok || s.At < old.at {
				p.first[s.Offset] = sight{s.content(), s.At, i}
			}
		}
	}
}

// known is that a partition went up to somewhere at some time.
type known struct {
	at   time.Duration
	end  int64
	kind Kind // of the fault, when a lower end is told later
	why  string
}

// ends holds the ends that were told against what was known before they were asked for.
func (p *partition) ends() {
	var all []known
	for offset, n := range p.acked {
		all = append(all, known{p.write(n).Told, offset + 1, Stale, fmt.Sprintf("offset %d had been acknowledged", offset)})
	}
	for _, e := range p.Ends {
		all = append(all, known{e.Told, e.Offset, Stale, fmt.Sprintf("%d had been told as the end", e.Offset)})
	}
	for i := range p.Views {
		for _, s := range p.Views[i].Seen {
			if s.Early {
				all = append(all, known{s.At, s.Offset + 1, Uncommitted, fmt.Sprintf("offset %d had been shown to %s, above the end told with it,", s.Offset, p.Views[i].Name)})
			}
		}
	}
	slices.SortFunc(all, func(a, b known) int { return cmp.Compare(a.at, b.at) })
	// For each kind, the highest so far.
	highest := map[Kind][]known{}
	for _, k := range all {
		if so := highest[k.kind]; len(so) == 0 || so[len(so)-1].end < k.end {
			highest[k.kind] = append(so, k)
		}
	}
	for _, e := range p.Ends {
		for kind, so := range highest {
			before, _ := slices.BinarySearchFunc(so, e.Asked, func(k known, at time.Duration) int { return cmp.Compare(k.at, at) })
			if before == 0 || so[before-1].end <= e.Offset {
				continue
			}
			p.fault(kind, "", e.Offset, nil, func() string {
				return fmt.Sprintf("asked at %v, the end was told as %d, though %s before", round(e.Asked), e.Offset, so[before-1].why)
			})
		}
	}
}
