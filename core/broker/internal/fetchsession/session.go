// Package fetchsession keeps incremental fetch sessions (KIP-227): what a client or follower asked for last time, so that it
// only has to say what has changed, and is only told what has.
//
// It decides and does nothing else: no I/O, no goroutine, no clock. Callers bring the time, and the random numbers that
// session ids are made of. Reading partitions and encoding answers is the caller's business, package api's.
//
// A request goes through [Cache.Begin], which says what to read, and [Context.Select], which says for each partition read
// whether the answer has to mention it; a full fetch that wants a session gets it from [Context.Finish].
package fetchsession

import "errors"

// What is wrong with a request's session. The answer to each has no topics.
var (
	// ErrNotFound: there is no such session (any more). The client starts over with a full fetch.
	ErrNotFound = errors.New("fetch session does not exist")
	// ErrEpoch: the request is not the next one of its session.
	ErrEpoch = errors.New("fetch session epoch is not the expected one")
	// ErrTopicIDs: the session was opened by names and the request goes by ids, or the other way round (KIP-516).
	ErrTopicIDs = errors.New("fetch session does not use topic ids as the request does")
)

// The epochs that are no number in a row.
const (
	// InitialEpoch asks for a full fetch and a new session.
	InitialEpoch int32 = 0
	// FinalEpoch asks for a full fetch without a session, and ends the one named.
	FinalEpoch int32 = -1
)

// Key names a partition in a session: by topic name or by topic id, never both.
type Key struct {
	Topic     string
	ID        [16]byte
	Partition int32
}

// Params are what is asked of a partition, and stays asked until changed.
type Params struct {
	Offset           int64
	MaxBytes         int32
	LeaderEpoch      int32
	LastFetchedEpoch int32
	LogStart         int64 // the follower's
}

// Partition is one partition of a request: what to read, in the order of the answer.
type Partition struct {
	Key
	Params
	cached *cached // nil without a session
}

// cached is a partition of a session, in the list of them.
type cached struct {
	key        Key
	params     Params
	hw         int64 // as the client was told; -1 when it must be told again
	logStart   int64
	prev, next *cached
}

// session is what is kept between requests. The cache's lock guards it.
type session struct {
	id         int32
	privileged bool // a follower's
	topicIDs   bool
	created    int64 // milliseconds
	used       int64
	epoch      int32 // of the next request

	partitions map[Key]*cached
	list       cached // the head of a ring: list.next is the first in order
}

func newSession(id int32, privileged, topicIDs bool, now int64) *session {
	s := &session{id: id, privileged: privileged, topicIDs: topicIDs, created: now, used: now, epoch: 1, partitions: map[Key]*cached{}}
	s.list.prev, s.list.next = &s.list, &s.list
	return s
}

func (s *session) add(k Key, p Params, hw, logStart int64) {
	if c := s.partitions[k]; c != nil {
		c.params = p
		return
	}
	c := &cached{key: k, params: p, hw: hw, logStart: logStart}
	s.partitions[k] = c
	s.push(c)
}

// push puts c at the end of the list.
func (s *session) push(c *cached) {
	c.prev, c.next = s.list.prev, &s.list
	c.prev.next, c.next.prev = c, c
}

func (c *cached) unlink() {
	c.prev.next, c.next.prev = c.next, c.prev
	c.prev, c.next = nil, nil
}

func (s *session) remove(k Key) {
	if c := s.partitions[k]; c != nil {
		delete(s.partitions, k)
		c.unlink()
	}
}

// nextEpoch is the epoch after e, which is never 0 again.
func nextEpoch(e int32) int32 {
	if e == 1<<31-1 {
		return 1
	}
	return e + 1
}
