package group

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// player is a client in a random history: it does what it likes, and remembers what it was told.
type player struct {
	*client
	waitsJoin, waitsSync bool
	joinedAt             time.Time // when the join that waits was sent
}

// TestHistories plays random histories against what must hold at every moment:
//
//   - a stable or completing group has exactly one leader, who is a member;
//   - generations only rise, in memory and in what is stored;
//   - nobody is a member and pending, and every instance id belongs to a member that bears it;
//   - a group has the members that its state says, and a deadline whenever somebody waits;
//   - every join is answered before the largest rebalance timeout, the initial delay or the new members' time-out is over;
//   - offsets change by accepted commits alone;
//   - what is stored makes the same group again.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		for range rapid.IntRange(1, 120).Draw(rt, "events") {
			h.step(rt)
			h.check(rt)
		}
		h.settle(rt)
	})
}

type history struct {
	*sim
	players   []*player
	committed map[string]int64
	lastGen   int32
	lastSaved int32
	saved     int // stored entries looked at
}

func newHistory(rt *rapid.T) *history {
	h := &history{sim: newSim(rt), committed: map[string]int64{}}
	if rapid.Bool().Draw(rt, "initial delay") {
		h.cfg.InitialDelay = 3 * time.Second
	}
	if rapid.Bool().Draw(rt, "small") {
		h.cfg.MaxSize = 3
	}
	for i := range 5 {
		c := h.client()
		if i < 2 {
			c = h.static([]string{"i0", "i1"}[i])
		}
		c.version = rapid.SampledFrom([]int{0, 3, 4, 8, 9}).Draw(rt, "version")
		c.session = time.Duration(rapid.IntRange(6, 30).Draw(rt, "session")) * time.Second
		c.rebal = time.Duration(rapid.IntRange(0, 40).Draw(rt, "rebalance")) * time.Second
		h.players = append(h.players, &player{client: c})
	}
	return h
}

func (h *history) step(rt *rapid.T) {
	p := rapid.SampledFrom(h.players).Draw(rt, "who")
	switch rapid.SampledFrom([]string{"join", "join", "join", "sync", "sync", "sync", "beat", "beat", "commit", "simple commit", "leave", "time",
		"time", "restart", "hold", "store", "fail", "protocols", "expire"}).Draw(rt, "event") {
	case "join":
		p.tryJoin()
		p.waitsJoin, p.joinedAt = true, h.now
	case "sync":
		var everybody []*client
		for _, o := range h.players {
			everybody = append(everybody, o.client)
		}
		p.trySync(everybody...)
		p.waitsSync = true
	case "beat":
		_ = p.heartbeat()
	case "commit":
		h.tryCommit(p.who())
	case "simple commit":
		h.tryCommit(nobody)
	case "leave":
		_ = p.leave()
	case "time":
		h.pass(time.Duration(rapid.IntRange(1, 20000).Draw(rt, "ms")) * time.Millisecond)
	case "restart":
		p.id, p.gen = "", -1
	case "hold":
		h.hold = true
	case "store":
		h.hold = false
		h.store(nil)
	case "fail":
		h.hold = false
		h.store(rapid.SampledFrom([]error{offsets.ErrTimedOut, offsets.ErrUnavailable, offsets.ErrTooLarge}).Draw(rt, "error"))
	case "protocols":
		p.protos = append(subscribe("range", rapid.SampledFrom([]string{"t", "u"}).Draw(rt, "topic")), subscribe("roundrobin", "t")...)
	case "expire":
		h.expire()
	}
	for _, o := range h.players {
		if o.waitsJoin && o.joinAnswer() != nil {
			o.waitsJoin = false
		}
		if o.waitsSync && o.syncAnswer() != nil {
			o.waitsSync = false
		}
	}
}

func (h *history) tryCommit(who Member) {
	at := int64(h.seq)
	h.seq++
	state, gen := h.g.State(), h.g.generation
	err := h.commit(who, "t", at)
	if h.hold && errors.Is(err, errWaiting) {
		h.hold = false
		h.store(nil)
		err = nil
	}
	switch {
	case err == nil && who.Generation < 0:
		require.Equal(h, Empty, state)
	case err == nil:
		require.Equal(h, gen, who.Generation)
		require.Contains(h, []State{Stable, PreparingRebalance}, state)
	}
	if err == nil {
		h.committed["t"] = at
	}
}

func (h *history) check(rt *rapid.T) {
	g := h.g
	require.GreaterOrEqual(rt, g.generation, h.lastGen)
	h.lastGen = g.generation
	for ; h.saved < len(h.stored); h.saved++ {
		if m := h.stored[h.saved].Meta; m != nil {
			require.GreaterOrEqual(rt, m.Generation, h.lastSaved)
			h.lastSaved = m.Generation
		}
	}
	require.Len(rt, g.byID, len(g.members))
	waiting, joining := 0, 0
	offers := map[string]int{}
	for _, m := range g.members {
		require.Same(rt, m, g.byID[m.id])
		require.False(rt, g.isPending(m.id), "both member and pending")
		if m.join != 0 {
			joining++
		}
		for _, p := range m.protocols {
			offers[p.Name]++
		}
		if m.instance != nil {
			require.Equal(rt, m.id, g.instances[*m.instance])
		}
		if m.join != 0 || m.sync != 0 {
			waiting++
		}
		if m.sync != 0 {
			require.Equal(rt, CompletingRebalance, g.state)
		}
		require.True(rt, m.join != 0 || m.sync != 0 || !m.deadline.IsZero() || g.state == PreparingRebalance, "a member that can't expire")
	}
	require.Equal(rt, joining, g.joining)
	require.Equal(rt, offers, g.offers)
	for _, id := range g.instances {
		require.NotNil(rt, g.byID[id], "an instance without a member")
	}
	switch g.state {
	case Stable, CompletingRebalance:
		require.NotNil(rt, g.byID[g.leader], "no leader")
		require.NotNil(rt, g.protocol)
	case Empty:
		require.Empty(rt, g.members)
		require.Empty(rt, g.leader)
	}
	if waiting > 0 && len(h.writes) == 0 {
		require.True(rt, !g.Next().IsZero(), "somebody waits for nothing")
	}
	want, ok := h.committed["t"]
	if !ok {
		want = -1
	}
	if g.state != Dead && len(g.offsets) > 0 {
		require.Equal(rt, want, h.offset("t"))
	}
}

// settle lets everything come to its end: all that waits is answered, and what is stored makes the same group again.
func (h *history) settle(rt *rapid.T) {
	h.hold = false
	h.store(nil)
	h.check(rt)
	if h.g.State() == Stable {
		before, generation := h.g.Describe(), h.g.generation
		live := h.g
		h.reload()
		require.Equal(rt, before, h.g.Describe())
		require.Equal(rt, generation, h.g.generation)
		h.g = live
	}
	for _, p := range h.players {
		if p.waitsJoin && p.joinAnswer() == nil {
			require.Less(rt, h.now.Sub(p.joinedAt), newMemberTimeout+time.Minute, "waits too long")
		}
	}
	h.pass(time.Hour)
	require.Contains(rt, []State{Empty, Dead}, h.g.State(), "without a sign of life nobody stays")
	for ticket := Ticket(1); ticket <= h.last; ticket++ {
		_, answered := h.answers[ticket]
		require.True(rt, answered, "ticket %d is never answered", ticket)
	}
}
