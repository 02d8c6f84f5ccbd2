package group

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

type writeKind int8

const (
	writeEmpty      writeKind = iota // an empty generation
	writeAssignment                  // the leader's assignment
	writeStatic                      // a static member under its new id
	writeCommit                      // offsets
	writeRemoval                     // tombstones of offsets
	writeDeath                       // tombstones of all that there is
	writeTxnCommit                   // offsets, in a producer's transaction
)

// Write is something to store. The loop stores the entries, in the order in which the group asked for writes, and then
// gives the outcome back with Written, in that order too.
type Write struct {
	Entries []offsets.Entry
	// Producer is whose transaction the entries are part of, nil for none.
	Producer *offsets.Producer

	kind        writeKind
	ticket      Ticket // who waits for it
	generation  int32
	assignments map[string][]byte
	member      *member // writeStatic: and what it was
	before      member
	leader      string
	canSkip     bool
}

func (g *Group) write(w Write, entries []offsets.Entry) {
	w.Entries = entries
	g.out.Writes = append(g.out.Writes, w)
}

// Written tells the outcome of a write: nil, or the store's error.
func (g *Group) Written(now time.Time, w Write, err error) Effects {
	g.begin(now)
	switch w.kind {
	case writeAssignment:
		g.assignmentStored(w, err)
	case writeStatic:
		g.staticStored(w, err)
	case writeCommit:
		g.committed(w, err)
	case writeRemoval:
		g.removed(w, err)
	case writeDeath:
		g.buried(w, err)
	case writeTxnCommit:
		g.txnCommitted(w, err)
	}
	return g.end()
}

func (g *Group) answer(t Ticket, err error) {
	if t != 0 {
		g.out.Answers = append(g.out.Answers, Answer{Ticket: t, Err: err})
	}
}
