package journal

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"
)

// Kind says what sort of thing a subject is.
type Kind string

// The kinds of subjects.
const (
	Group     Kind = "group"
	Partition Kind = "partition"
	Broker    Kind = "broker"
	Shard     Kind = "shard" // a partition of the topic that groups are kept in
	Plugin    Kind = "plugin"
)

// Subject is what events are about. It can be compared.
type Subject struct {
	Kind   Kind
	Name   string // of a group, a plug-in (role/name), or a partition's topic
	Number int32  // of a partition, a broker or a shard
}

// OfGroup is a consumer group as a subject.
func OfGroup(id string) Subject { return Subject{Kind: Group, Name: id} }

// OfPartition is a partition as a subject.
func OfPartition(topic string, number int32) Subject {
	return Subject{Kind: Partition, Name: topic, Number: number}
}

// OfBroker is a broker as a subject.
func OfBroker(id int32) Subject { return Subject{Kind: Broker, Number: id} }

// OfShard is a shard of groups as a subject.
func OfShard(id int32) Subject { return Subject{Kind: Shard, Number: id} }

// OfPlugin is a plug-in as a subject.
func OfPlugin(role, name string) Subject { return Subject{Kind: Plugin, Name: role + "/" + name} }

// String names the subject: "group audit", "partition orders-3", "broker 2".
func (s Subject) String() string {
	switch s.Kind {
	case Partition:
		return string(s.Kind) + " " + s.Name + "-" + strconv.Itoa(int(s.Number))
	case Broker, Shard:
		return string(s.Kind) + " " + strconv.Itoa(int(s.Number))
	}
	return string(s.Kind) + " " + s.Name
}

// Event is something that happened. Its type is a struct of this package whose exported fields are the facts, as JSON shows them. It is
// not changed once it is recorded, nor is anything that it points to.
type Event interface {
	// Kind names the type, for programs: "rebalance-began".
	Kind() string
	// About is what it happened to.
	About() Subject
	// String says it in a sentence, without the time.
	String() string
}

// Entry is an event in a journal.
type Entry struct {
	// Seq rises by one with every event that was recorded, from 1: a gap says that something was forgotten.
	Seq   uint64
	At    time.Time
	Event Event
}

// MarshalJSON writes seq, at (RFC 3339), kind, about, text and the event's own facts.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Seq   uint64    `json:"seq"`
		At    time.Time `json:"at"`
		Kind  string    `json:"kind"`
		About string    `json:"about"`
		Text  string    `json:"text"`
		Facts Event     `json:"facts"`
	}{e.Seq, e.At, e.Event.Kind(), e.Event.About().String(), e.Event.String(), e.Event})
}

// The bounds of a journal that is made with New: about 4 MB when it is full, nothing before.
const (
	DefaultEvents     = 16384
	DefaultPerSubject = 32
)

// Journal keeps the latest events. Its methods may be called from any goroutine, and return at once. A nil Journal records nothing and
// remembers nothing.
type Journal struct {
	now             func() time.Time
	max, perSubject int

	mu       sync.Mutex
	seq      uint64
	slots    []slot
	free     int32 // the first of the free slots, by next; none: there is none
	oldest   int32
	newest   int32
	kept     int
	subjects map[Subject]queue
}

// none is the index of no slot.
const none int32 = -1

// slot has one entry. Slots are linked by their index: all in order of time, and those of one subject.
type slot struct {
	entry      Entry
	subject    Subject
	prev, next int32
	later      int32 // the subject's next one
}

// queue is what there is of a subject. What is oldest of all is the oldest of its subject, too.
type queue struct {
	first, last int32
	kept        int
}

// New makes an empty journal that keeps at most max events, and at most perSubject of each subject; both at least 1.
func New(max, perSubject int, now func() time.Time) *Journal {
	return &Journal{now: now, max: max, perSubject: perSubject, free: none, oldest: none, newest: none, subjects: map[Subject]queue{}}
}

// Record keeps an event, as of now, in place of the oldest where a bound is reached.
func (j *Journal) Record(e Event) {
	if j == nil {
		return
	}
	about := e.About()
	j.mu.Lock()
	defer j.mu.Unlock()
	if q := j.subjects[about]; q.kept >= j.perSubject {
		j.forget(q.first)
	}
	if j.kept >= j.max {
		j.forget(j.oldest)
	}
	j.seq++
	at := j.take()
	j.slots[at] = slot{entry: Entry{Seq: j.seq, At: j.now(), Event: e}, subject: about, prev: j.newest, next: none, later: none}
	if j.newest != none {
		j.slots[j.newest].next = at
	} else {
		j.oldest = at
	}
	j.newest = at
	j.kept++

	q, known := j.subjects[about]
	if known {
		j.slots[q.last].later = at
	} else {
		q.first = at
	}
	q.last = at
	q.kept++
	j.subjects[about] = q
}

// take gives a slot that is free.
func (j *Journal) take() int32 {
	if at := j.free; at != none {
		j.free = j.slots[at].next
		return at
	}
	j.slots = append(j.slots, slot{})
	return int32(len(j.slots) - 1)
}

// forget frees the slot of a subject's oldest event.
func (j *Journal) forget(at int32) {
	s := &j.slots[at]
	if s.prev != none {
		j.slots[s.prev].next = s.next
	} else {
		j.oldest = s.next
	}
	if s.next != none {
		j.slots[s.next].prev = s.prev
	} else {
		j.newest = s.prev
	}
	j.kept--
	q := j.subjects[s.subject]
	q.first = s.later
	if q.kept--; q.kept == 0 {
		delete(j.subjects, s.subject)
	} else {
		j.subjects[s.subject] = q
	}
	*s = slot{next: j.free}
	j.free = at
}

// About lists what is remembered of a subject, the oldest first.
func (j *Journal) About(s Subject) []Entry {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	q, ok := j.subjects[s]
	if !ok {
		return nil
	}
	list := make([]Entry, 0, q.kept)
	for at := q.first; at != none; at = j.slots[at].later {
		list = append(list, j.slots[at].entry)
	}
	return list
}

// Latest lists the latest n events of all subjects, the oldest first; all for n <= 0.
func (j *Journal) Latest(n int) []Entry {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if n <= 0 || n > j.kept {
		n = j.kept
	}
	list := make([]Entry, n)
	at := j.newest
	for i := n - 1; i >= 0; i-- {
		list[i] = j.slots[at].entry
		at = j.slots[at].prev
	}
	return list
}
