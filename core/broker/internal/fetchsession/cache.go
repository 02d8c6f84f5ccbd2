package fetchsession

import (
	"cmp"
	"sync"
)

// Options bound a [Cache].
type Options struct {
	// Slots is the most sessions at a time: max.incremental.fetch.session.cache.slots.
	Slots int
	// EvictAfter is how many milliseconds a session is left alone: then it may be given up when unused, and may be replaced by
	// a larger one otherwise.
	EvictAfter int64
	// MaxPartitions is the most partitions that all sessions may have together. A full fetch that would exceed it is served,
	// and gets no session; a session that would grow beyond it ends with ErrNotFound.
	MaxPartitions int
	// Random gives a random number, for the session ids: they should be hard to guess.
	Random func() uint32
}

// DefaultEvictAfter is Kafka's: two minutes.
const DefaultEvictAfter int64 = 120_000

// Cache holds the sessions of a broker. Its methods may be called from any goroutine.
type Cache struct {
	o Options

	mu         sync.Mutex
	sessions   map[int32]*session
	partitions int
}

// NewCache makes an empty cache.
func NewCache(o Options) *Cache { return &Cache{o: o, sessions: map[int32]*session{}} }

// Len is the number of sessions.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Request is what a fetch request says about its session.
type Request struct {
	SessionID  int32
	Epoch      int32
	Privileged bool // from a follower
	TopicIDs   bool // partitions are named by topic id
	Partitions []Partition
	Forgotten  []Key
}

// Context is what becomes of one request. It belongs to one goroutine.
type Context struct {
	// Partitions is what to read, in order. A partition that was asked for twice is there once, as asked last. The slice is the
	// request's, or the session's into the same memory.
	Partitions []Partition

	cache   *Cache
	request Request
	session *session // of an incremental fetch
	opening bool
}

// Begin takes a request in. A session that the request ends is gone on return, and an incremental request is counted: it
// can't be sent again. into may be given for its memory.
//
// Errors: ErrNotFound, ErrEpoch, ErrTopicIDs.
func (c *Cache) Begin(r Request, now int64, into []Partition) (Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Epoch == InitialEpoch || r.Epoch == FinalEpoch {
		if s := c.sessions[r.SessionID]; s != nil {
			c.drop(s)
		}
		return Context{cache: c, request: r, opening: r.Epoch == InitialEpoch, Partitions: distinct(r.Partitions)}, nil
	}
	s := c.sessions[r.SessionID]
	switch {
	case s == nil:
		return Context{}, ErrNotFound
	case s.topicIDs != r.TopicIDs:
		return Context{}, ErrTopicIDs
	case s.epoch != r.Epoch:
		return Context{}, ErrEpoch
	}
	c.partitions -= len(s.partitions)
	for i := range r.Partitions {
		s.add(r.Partitions[i].Key, r.Partitions[i].Params, -1, -1)
	}
	for _, k := range r.Forgotten {
		s.remove(k)
	}
	c.partitions += len(s.partitions)
	switch {
	case c.partitions > c.o.MaxPartitions:
		c.drop(s)
		return Context{}, ErrNotFound
	case len(s.partitions) == 0:
		c.drop(s)
		return Context{cache: c, request: r, Partitions: distinct(r.Partitions)}, nil
	}
	s.used = now
	s.epoch = nextEpoch(s.epoch)
	into = into[:0]
	for p := s.list.next; p != &s.list; p = p.next {
		into = append(into, Partition{Key: p.key, Params: p.params, cached: p})
	}
	return Context{cache: c, request: r, session: s, Partitions: into}, nil
}

// distinct drops all but the last wish for each partition, in the place of the first.
func distinct(ps []Partition) []Partition {
	if len(ps) <= 32 {
		for i := range ps {
			for j := range i {
				if ps[i].Key == ps[j].Key {
					return merge(ps)
				}
			}
		}
		return ps
	}
	return merge(ps)
}

func merge(ps []Partition) []Partition {
	at := make(map[Key]int, len(ps))
	out := ps[:0]
	for _, p := range ps {
		if i, ok := at[p.Key]; ok {
			out[i].Params = p.Params
			continue
		}
		at[p.Key] = len(out)
		out = append(out, p)
	}
	return out
}

// Incremental reports whether the request goes on with a session, so that the answer only has what [Context.Select] selects.
func (x *Context) Incremental() bool { return x.session != nil }

// SessionID is what the answer says, 0 for none. For a full fetch that opens a session, [Context.Finish] says it.
func (x *Context) SessionID() int32 {
	if x.session == nil {
		return 0
	}
	return x.session.id
}

// Answer is what was found for a partition, as far as sessions care.
type Answer struct {
	HighWatermark int64
	LogStart      int64
	Data          bool // there are records
	Told          bool // there is more that the client must be told: an error, a diverging epoch, a preferred replica
	Failed        bool // there is an error
}

// Select reports whether the answer must mention a partition of Partitions, and remembers that the client was told. A
// partition with data goes to the end of the session's order, so that none starves.
func (x *Context) Select(p *Partition, a Answer) bool {
	if x.session == nil {
		return true
	}
	x.cache.mu.Lock()
	defer x.cache.mu.Unlock()
	c := p.cached
	must := a.Data || a.Told || a.Failed
	if c.hw != a.HighWatermark {
		c.hw, must = a.HighWatermark, true
	}
	if c.logStart != a.LogStart {
		c.logStart, must = a.LogStart, true
	}
	if a.Failed {
		c.hw = -1 // so that the client is told when the error is over
	}
	if a.Data && c.next != nil {
		c.unlink()
		x.session.push(c)
	}
	return must
}

// Finish ends a full fetch: when it asked for a session and there is room for one, the session is made and its id returned,
// else 0. answers belong to Partitions.
func (x *Context) Finish(now int64, answers []Answer) int32 {
	if !x.opening {
		return x.SessionID()
	}
	c := x.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.partitions+len(x.Partitions) > c.o.MaxPartitions || !c.makeRoom(x.request.Privileged, len(x.Partitions), now) {
		return 0
	}
	s := newSession(c.newID(), x.request.Privileged, x.request.TopicIDs, now)
	for i := range x.Partitions {
		p := &x.Partitions[i]
		hw := answers[i].HighWatermark
		if answers[i].Failed {
			hw = -1
		}
		s.add(p.Key, p.Params, hw, answers[i].LogStart)
	}
	c.sessions[s.id] = s
	c.partitions += len(s.partitions)
	return s.id
}

func (c *Cache) newID() int32 {
	for {
		id := int32(c.o.Random() & 0x7fffffff)
		if _, taken := c.sessions[id]; id != 0 && !taken {
			return id
		}
	}
}

func (c *Cache) drop(s *session) {
	delete(c.sessions, s.id)
	c.partitions -= len(s.partitions)
}

// makeRoom reports whether one more session may be made, if need be by giving another one up: one that was not used for
// EvictAfter, or one that is worth less. A follower's session is worth more than a consumer's and then a larger one more
// than a smaller one; sessions that are younger than EvictAfter only make room for those of followers, unless they are
// followers' own (KIP-227).
func (c *Cache) makeRoom(privileged bool, size int, now int64) bool {
	if len(c.sessions) < c.o.Slots {
		return true
	}
	var oldest, least *session
	for _, s := range c.sessions {
		if oldest == nil || s.used < oldest.used {
			oldest = s
		}
		old := now-s.created > c.o.EvictAfter
		evictable := old || privileged && !s.privileged
		if evictable && (least == nil || s.worth(least.privileged, len(least.partitions)) < 0) {
			least = s
		}
	}
	switch {
	case oldest == nil:
		return false
	case now-oldest.used > c.o.EvictAfter:
		c.drop(oldest)
		return true
	case least == nil || least.worth(privileged, size) > 0:
		return false
	}
	c.drop(least)
	return true
}

// worth compares a session with one of that kind and size.
func (s *session) worth(privileged bool, size int) int {
	if s.privileged != privileged {
		if s.privileged {
			return 1
		}
		return -1
	}
	return cmp.Compare(len(s.partitions), size)
}
