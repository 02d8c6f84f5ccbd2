package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// teller is raft's transport, and tells servers at once how far the log is decided. Raft itself tells them with the next entries, or
// after its CommitTimeout when there are none, and who reads at a follower would wait for that: so raft would have to say it many times a
// second, to all, all the time.
//
// What it sends is what raft's leader would send: no entries, behind one that the server has acknowledged in the same term. It says of no
// more than was acknowledged that it is decided, so that nothing which the server has beyond that is meant.
type teller struct {
	*raft.NetworkTransport
	// state gives raft, nil while it isn't open yet.
	state    func() *raft.Raft
	contacts *contacts
	gate     gate

	mu        sync.Mutex
	closed    bool
	followers map[raft.ServerID]*follower
	running   sync.WaitGroup
}

// follower is what a server has acknowledged to this leader.
type follower struct {
	target      raft.ServerAddress
	request     raft.AppendEntriesRequest // its header and term are those of the term
	index, term uint64                    // of the last entry that it has, for sure
	told        uint64                    // how far it knows the log to be decided
	telling     bool                      // a goroutine does
}

func newTeller(t *raft.NetworkTransport, state func() *raft.Raft, c *contacts) *teller {
	return &teller{NetworkTransport: t, state: state, contacts: c, followers: map[raft.ServerID]*follower{}}
}

// SetHeartbeatHandler implements raft.Transport.
func (t *teller) SetHeartbeatHandler(handle func(raft.RPC)) {
	t.NetworkTransport.SetHeartbeatHandler(t.gate.guard(handle))
}

// AppendEntries implements raft.Transport.
func (t *teller) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	sent := time.Now()
	err := t.NetworkTransport.AppendEntries(id, target, args, resp)
	if err != nil || !resp.Success || resp.Term != args.Term {
		return err
	}
	t.contacts.answered(id, args.Term, sent)
	index, term := args.PrevLogEntry, args.PrevLogTerm
	if n := len(args.Entries); n > 0 {
		index, term = args.Entries[n-1].Index, args.Entries[n-1].Term
	}
	if index > 0 { // else it is a heartbeat
		t.acknowledged(id, target, args, index, term)
	}
	return nil
}

// acknowledged remembers what a server has.
func (t *teller) acknowledged(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, index, term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.followers[id]
	if f == nil || f.request.Term < args.Term {
		f = &follower{request: raft.AppendEntriesRequest{RPCHeader: args.RPCHeader, Term: args.Term}}
		t.followers[id] = f
	}
	if f.request.Term > args.Term || index < f.index {
		return // it was overtaken
	}
	f.target, f.index, f.term, f.told = target, index, term, max(f.told, min(args.LeaderCommitIndex, index))
	t.begin(id, f)
}

// decided is called when this server has learnt that more is decided.
func (t *teller) decided() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.followers) == 0 {
		return
	}
	if r := t.state(); r == nil || r.State() != raft.Leader {
		clear(t.followers)
		return
	}
	for id, f := range t.followers {
		t.begin(id, f)
	}
}

// due says how far a server is to be told that the log is decided, or 0. One to which entries are on their way learns it with them. The caller
// holds the lock.
func (t *teller) due(f *follower) uint64 {
	r := t.state()
	if r == nil || t.closed || r.LastIndex() > f.index {
		return 0
	}
	if index := min(r.CommitIndex(), f.index); index > f.told {
		return index
	}
	return 0
}

// begin tells a server what it has to know, in the background. The caller holds the lock.
func (t *teller) begin(id raft.ServerID, f *follower) {
	if f.telling || t.due(f) == 0 {
		return
	}
	f.telling = true
	t.running.Go(func() { t.tell(id, f) })
}

// tell goes on until the server knows. When it can't be told raft goes on trying, and says it again.
func (t *teller) tell(id raft.ServerID, f *follower) {
	for {
		t.mu.Lock()
		index := t.due(f)
		if index == 0 || t.followers[id] != f {
			f.telling = false
			t.mu.Unlock()
			return
		}
		request, target := f.request, f.target
		request.PrevLogEntry, request.PrevLogTerm, request.LeaderCommitIndex = f.index, f.term, index
		f.told = index
		t.mu.Unlock()
		var resp raft.AppendEntriesResponse
		if err := t.NetworkTransport.AppendEntries(id, target, &request, &resp); err != nil || !resp.Success {
			t.mu.Lock()
			f.telling = false
			t.mu.Unlock()
			return
		}
	}
}

// end waits until nobody is told anything any more, and no heartbeat is dealt with. The transport is closed, or is closed soon.
func (t *teller) end() {
	t.gate.close()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.running.Wait()
}
