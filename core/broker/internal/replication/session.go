package replication

import "slices"

// sessionKey names a partition in a fetch session: by topic name or by topic id, never both.
type sessionKey struct {
	topic     string
	id        [16]byte
	partition int32
}

// params are what the leader was told of a partition, and what holds until it is told otherwise.
type params struct {
	offset      int64
	start       int64 // our log start offset
	leaderEpoch int32
	lastEpoch   int32
}

// member is what a session keeps of a partition.
type member struct {
	wanted  bool // to be fetched
	changed bool // on the list of those that the leader may have to be told of
	key     sessionKey
	told    params
}

// session is the follower's half of an incremental fetch session (KIP-227): only what has changed goes out. A new one, and one that broke,
// begins with a request that has everything.
type session struct {
	id, epoch int32 // as the next request has them; epoch 0 asks for a new session

	byID     bool                     // topics go by id
	nameless int                      // wanted partitions whose topic has no id: while there are any, topics go by name
	members  map[sessionKey]*follower // those that the leader knows of
	changed  []*follower
	gone     []sessionKey // the leader knows of them, and they aren't wanted any more
	wanted   int

	all []*follower // scratch: those of a request that has everything
}

func newSession() session { return session{members: map[sessionKey]*follower{}} }

// want has a partition fetched from where it stands.
func (s *session) want(f *follower) {
	if !f.until.IsZero() {
		return // when its time has come
	}
	if !f.wanted {
		f.wanted = true
		s.wanted++
		s.count(f, 1)
	}
	if !f.changed {
		f.changed = true
		s.changed = append(s.changed, f)
	}
}

// drop has a partition no longer fetched.
func (s *session) drop(f *follower) {
	if !f.wanted {
		return
	}
	f.wanted = false
	s.wanted--
	s.count(f, -1)
	if s.members[f.key] == f {
		delete(s.members, f.key)
		s.gone = append(s.gone, f.key)
	}
}

func (s *session) count(f *follower, n int) {
	if f.topicID == ([16]byte{}) {
		s.nameless += n
	}
}

// reset makes the next request one that has everything. With the id of a session that the leader may still have, that one is closed.
func (s *session) reset(id int32) { s.id, s.epoch = id, 0 }

// prepare puts a request together: which partitions it names, and which are forgotten. Both are valid until the next call. start gives a
// partition's log start offset.
func (s *session) prepare(byID bool, parts func(yield func(*follower) bool), start func(*follower) int64) (asked []*follower, gone []sessionKey) {
	if byID != s.byID && s.epoch != 0 {
		s.reset(s.id) // a session goes by one of the two
	}
	s.byID = byID
	if s.epoch == 0 {
		clear(s.members)
		s.gone = s.gone[:0]
		s.clearChanged()
		s.all = s.all[:0]
		for f := range parts {
			if f.wanted {
				s.tell(f, start(f))
				s.all = append(s.all, f)
			}
		}
		slices.SortFunc(s.all, func(a, b *follower) int { // partitions of a topic side by side
			if a.id.Topic != b.id.Topic {
				if a.id.Topic < b.id.Topic {
					return -1
				}
				return 1
			}
			return int(a.id.Partition) - int(b.id.Partition)
		})
		return s.all, nil
	}
	asked = s.changed[:0]
	for _, f := range s.changed {
		f.changed = false
		if f.wanted && (s.members[f.key] != f || f.told != f.params(start(f))) {
			s.tell(f, start(f))
			asked = append(asked, f)
		}
	}
	clear(s.changed[len(asked):])
	gone = slices.DeleteFunc(s.gone, func(k sessionKey) bool { return s.members[k] != nil })
	// They stay in place until the request is encoded; the next change comes only after that.
	s.changed, s.gone = s.changed[:0], s.gone[:0]
	return asked, gone
}

func (s *session) clearChanged() {
	for _, f := range s.changed {
		f.changed = false
	}
	clear(s.changed)
	s.changed = s.changed[:0]
}

// tell makes a partition part of the session as it is told to the leader now.
func (s *session) tell(f *follower, start int64) {
	f.key = sessionKey{partition: f.id.Partition}
	if s.byID {
		f.key.id = f.topicID
	} else {
		f.key.topic = f.id.Topic
	}
	f.told = f.params(start)
	s.members[f.key] = f
}

func (f *follower) params(start int64) params {
	return params{offset: f.at.Offset, start: start, leaderEpoch: f.at.LeaderEpoch, lastEpoch: f.at.LastEpoch}
}

// answered takes what the leader answered to the request: without error, the id of the session that goes on, or 0 when there is none.
func (s *session) answered(id int32) {
	clear(s.all)
	switch {
	case id == 0:
		s.reset(0)
	case s.epoch == 0:
		s.id, s.epoch = id, 1
	case s.epoch == 1<<31-1:
		s.epoch = 1
	default:
		s.epoch++
	}
}
