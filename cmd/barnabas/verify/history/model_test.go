package history

import (
	"time"

	"pgregory.net/rapid"
)

// model is a faultless cluster with one partition, played step by step, and the history that clients would keep of it.
type model struct {
	t   *rapid.T
	now time.Duration
	h   History
	log []Seen // what stands at each offset

	open    []int32 // of each producer, its open transaction or -1
	readers []View
}

const modelProducers = 3 // the last one uses transactions

func newModel(t *rapid.T) *model {
	m := &model{t: t, open: []int32{-1, -1, -1}}
	m.h.Partitions = []Partition{{Writes: make([][]Write, modelProducers)}}
	m.readers = []View{{Name: "live"}, {Name: "live committed", Committed: true}}
	return m
}

func (m *model) p() *Partition { return &m.h.Partitions[0] }

func (m *model) tick() time.Duration {
	m.now += time.Millisecond
	return m.now
}

func (m *model) flip(label string) bool { return rapid.Bool().Draw(m.t, label) }

// write sends a record. It may reach the log or not, and the answer may come or not, but an idempotent producer never leaves
// one out that a later one follows: what was not written ends the producer.
func (m *model) write(producer int32) {
	transaction := m.open[producer]
	if producer == modelProducers-1 && transaction < 0 {
		transaction = int32(len(m.h.Transactions))
		m.h.Transactions = append(m.h.Transactions, Transaction{Producer: producer})
		m.open[producer] = transaction
	}
	offset := int64(len(m.log))
	sequence := int32(len(m.p().Writes[producer]))
	w := Write{Sent: m.tick(), Transaction: transaction}
	m.log = append(m.log, Seen{Offset: offset, Producer: producer, Sequence: sequence})
	if m.flip("answered") {
		w.Acknowledged, w.Offset, w.Told = true, offset, m.tick()
	}
	m.p().Writes[producer] = append(m.p().Writes[producer], w)
}

func (m *model) end(producer int32) {
	i := m.open[producer]
	if i < 0 {
		return
	}
	t := &m.h.Transactions[i]
	m.open[producer] = -1
	t.Ending = m.tick()
	t.Abort = m.flip("abort")
	m.log = append(m.log, Seen{Offset: int64(len(m.log)), What: Marker, Sum: uint32(i)})
	m.tick()
	if !m.flip("answered") {
		return
	}
	t.Outcome = WasCommitted
	if t.Abort {
		t.Outcome = WasAborted
	}
}

// stable is the last stable offset.
func (m *model) stable() int64 {
	for i, s := range m.log {
		if s.What == Record && m.open[s.Producer] >= 0 && m.p().Writes[s.Producer][s.Sequence].Transaction == m.open[s.Producer] {
			return int64(i)
		}
	}
	return int64(len(m.log))
}

// read lets a reader go on to an offset.
func (m *model) read(v *View, to int64) {
	m.tick()
	for ; v.To < to; v.To++ {
		s := m.log[v.To]
		if v.Committed && !m.committed(s) {
			continue
		}
		s.At = m.now
		v.Seen = append(v.Seen, s)
	}
}

func (m *model) committed(s Seen) bool {
	if s.What != Record {
		return false
	}
	t := m.p().Writes[s.Producer][s.Sequence].Transaction
	return t < 0 || !m.h.Transactions[t].Abort
}

func (m *model) ask() {
	e := End{Asked: m.tick(), Offset: int64(len(m.log))}
	e.Told = m.tick()
	m.p().Ends = append(m.p().Ends, e)
}

// finish ends open transactions and reads everything.
func (m *model) finish() *History {
	m.end(modelProducers - 1)
	for _, v := range m.readers {
		m.read(&v, int64(len(m.log)))
		m.p().Views = append(m.p().Views, v)
	}
	for _, v := range []View{{Name: "replica 1"}, {Name: "replica 2"}, {Name: "committed", Committed: true}} {
		v.Final, v.Begin = true, m.tick()
		m.read(&v, int64(len(m.log)))
		m.p().Views = append(m.p().Views, v)
	}
	return &m.h
}

// play plays a random history.
func play(t *rapid.T) *History {
	m := newModel(t)
	for range rapid.IntRange(10, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0, 1, 2:
			m.write(0)
		case 3, 4:
			m.write(1)
		case 5, 6:
			m.write(2)
		case 7:
			m.end(2)
		case 8:
			v := &m.readers[rapid.IntRange(0, 1).Draw(t, "reader")]
			to := int64(len(m.log))
			if v.Committed {
				to = m.stable()
			}
			m.read(v, to)
		case 9:
			m.ask()
		}
	}
	return m.finish()
}
