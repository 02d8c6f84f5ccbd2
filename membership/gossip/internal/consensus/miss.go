package consensus

import (
	"time"

	"github.com/hashicorp/raft"
)

// This file has a server miss the leader on time. Raft (v1.8.0, runFollower) looks whether it still hears from the leader only at moments that are one
// to two heartbeat timeouts apart, by chance, so that a death may be noticed as late as after three; sessions hardly last that long without a leader,
// and those of brokers that live would be over.

// miss has raft look whether it still hears from a leader as soon as that is due, until Close. While there is nothing to miss it wakes
// about as often as the heartbeat timeout passes.
func (n *Node) miss() {
	heartbeat := n.c.Timings.Heartbeat
	wait := heartbeat
	timer := time.NewTimer(wait)
	defer timer.Stop()
	stands := stands(n.raft.Load())
	var last stood
	for {
		planned := time.Now().Add(wait)
		select {
		case <-timer.C:
		case o := <-stands:
			if r, ok := o.Data.(raft.RequestPreVoteRequest); ok {
				last = stood{server: string(r.ID), at: time.Now()}
			}
		case <-n.ctx.Done():
			return
		}
		now := time.Now()
		if now.Sub(planned) > heartbeat/4 {
			wait = heartbeat / 4 // this process didn't run, and what it was sent meanwhile may lie unread
		} else {
			wait = n.missed(now, last)
		}
		timer.Reset(wait)
	}
}

// stands gives those who ask this server for its vote, with raft.RequestPreVoteRequest as Data; not all of them, when nobody takes them for long.
func stands(r *raft.Raft) <-chan raft.Observation {
	asked := make(chan raft.Observation, 8)
	r.RegisterObserver(raft.NewObserver(asked, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.RequestPreVoteRequest)
		return ok
	}))
	return asked
}

// stood is who has asked this server for its vote last.
type stood struct {
	server string
	at     time.Time
}

// missed has raft look if this server's turn to miss the leader has come, and says when to call it again.
func (n *Node) missed(now time.Time, asked stood) time.Duration {
	r, heartbeat := n.raft.Load(), n.c.Timings.Heartbeat
	_, leader := r.LeaderWithID()
	last := r.LastContact()
	if r.State() != raft.Follower || leader == "" || last.IsZero() {
		return heartbeat // it leads, or stands for election, or has missed the leader already
	}
	silence, patience := now.Sub(last), heartbeat
	if silence >= patience {
		if asked.at.Before(last) {
			asked = stood{} // that was about a leader before
		}
		servers, _ := n.Servers()
		patience = turn(heartbeat, before(servers, n.c.ID, string(leader), asked.server))
	}
	if silence < patience {
		return patience - silence
	}
	if err := look(r); err != nil {
		n.c.Logger.Debug("raft was not told to look for its leader", "err", err)
	}
	return heartbeat
}

// before is how many look before a server. Voters do it one after the other, in the same order at all of them: of those who stand for election at
// the same time each may get its own vote only, and they try again only after an election timeout. Those before fail, as long as too few have
// missed the leader: one that still has it doesn't vote. Of three voters the second is elected. Whoever was asked for its vote by the one before it,
// and still had the leader, is next, and the others know that, too. Those that don't vote come last.
func before(servers []Server, self, leader, asked string) (n int) {
	for _, s := range servers {
		switch {
		case s.ID == self && s.Voter:
			return n
		case !s.Voter || s.ID == leader:
		case s.ID == asked:
			n = 0
		default:
			n++
		}
	}
	return n
}

// turn is after how much silence of the leader a server looks that has so many before it, from one to three heartbeat timeouts. It may take that long
// until a busy machine has asked for a vote over a connection that has to be made; nobody waits so long who is asked.
func turn(heartbeat time.Duration, before int) time.Duration {
	return heartbeat + heartbeat*time.Duration(min(before, 4))/2
}

// look has raft look now whether it heard from a leader within the heartbeat timeout, as it does when that timeout is shortened: it is lengthened
// before, by next to nothing. Only raft decides what comes of it: a server that has heard from a leader meanwhile goes on following.
func look(r *raft.Raft) error {
	c := r.ReloadableConfig()
	longer := c
	longer.HeartbeatTimeout, longer.ElectionTimeout = c.HeartbeatTimeout+1, c.ElectionTimeout+1
	if err := r.ReloadConfig(longer); err != nil {
		return err
	}
	return r.ReloadConfig(c)
}
