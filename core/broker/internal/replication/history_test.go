package replication_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// history plays random events on a cluster of three with one partition.
type history struct {
	*cluster
	t   *testing.T
	r   *rand.Rand
	all []int32

	unclean bool
	deleted int64
	sent    int

	ackMu sync.Mutex
	acked []string // values that were acknowledged with acks=all
}

// TestRandomHistories: whatever brokers, links and leaders do, what was acknowledged with acks=all stays, once, as long as leaders come from
// the in-sync set; and in the end all replicas are the same byte for byte.
func TestRandomHistories(t *testing.T) {
	for _, unclean := range []bool{false, true} {
		for range 6 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("unclean=%v/%d", unclean, seed), func(t *testing.T) { playHistory(t, seed, unclean) })
		}
	}
}

func playHistory(t *testing.T, seed uint64, unclean bool) {
	h := &history{t: t, r: rand.New(rand.NewPCG(seed, 0)), all: []int32{1, 2, 3}, unclean: unclean}
	h.cluster = newCluster(t, func(c *cluster) {
		c.lag = 150 * time.Millisecond
		c.minISR = 1 + h.r.IntN(2)
		c.mapped = h.r.IntN(2) == 0
		c.config.SegmentBytes = 400
		if h.r.IntN(3) == 0 {
			c.config.FlushMessages = 1
		}
	})
	h.start(h.all...)
	h.assign(0, h.all...)
	for range 60 {
		h.step()
	}
	h.settle()
}

func (h *history) word() word {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *h.parts[0]
}

func (h *history) lives(id int32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[id] != nil && !h.cut[id]
}

func (h *history) step() {
	id := h.all[h.r.IntN(3)]
	h.mu.Lock()
	running, cut := h.nodes[id] != nil, h.cut[id]
	h.mu.Unlock()
	switch what := h.r.IntN(20); {
	case what < 9:
		h.send()
	case what < 11:
		time.Sleep(time.Duration(h.r.IntN(60)) * time.Millisecond)
	case what == 11:
		if running {
			h.stop(id, h.r.IntN(2) == 0)
			h.choose()
		}
	case what < 14:
		if !running {
			h.start(id)
			h.choose()
		}
	case what == 14:
		if running && !cut {
			h.isolate(id)
			h.choose()
		}
	case what < 17:
		if cut {
			h.join(id)
			if h.r.IntN(4) > 0 { // or it hears of it later
				h.choose()
			}
		}
	case what == 17:
		if w := h.word(); h.lives(id) && slices.Contains(w.isr, id) {
			h.electOf(id, w)
		}
	case what == 18:
		if running {
			h.nodes[id].fetch.SetFetchers(1 + h.r.IntN(3))
		}
	case what == 19:
		h.deleteSome()
	}
}

// send appends at whoever believes to lead, also one that has been cut off.
func (h *history) send() {
	for _, id := range h.all {
		h.mu.Lock()
		n := h.nodes[id]
		h.mu.Unlock()
		if n == nil {
			continue
		}
		p, err := n.parts.Get(partition.ID{Topic: "t"})
		if err != nil || !p.IsLeader() {
			continue
		}
		h.sent++
		value := fmt.Sprintf("v%d", h.sent)
		acks := int16(1 - 2*h.r.IntN(2))
		got, err := p.Append(partition.Append{Batches: batch(h.t, value, value+"'"), Acks: acks})
		if err != nil {
			require.True(h.t, acks == -1 || !p.IsLeader(), "%v", err)
			continue
		}
		ack := func(err error) {
			if err == nil && acks == -1 {
				h.ackMu.Lock()
				h.acked = append(h.acked, value)
				h.ackMu.Unlock()
			}
		}
		if done, err, _ := p.Committed(got, acks, ack); done {
			ack(err)
		}
	}
}

// deleteSome moves the log start up.
func (h *history) deleteSome() {
	w := h.word()
	if !h.lives(w.leader) {
		return
	}
	p, err := h.nodes[w.leader].parts.Get(partition.ID{Topic: "t"})
	if err != nil { // it hasn't been told anything yet
		return
	}
	to := p.Log().StartOffset() + int64(h.r.IntN(4))
	if to > p.Log().HighWatermark() {
		return
	}
	if _, err := p.DeleteRecords(to); err == nil {
		h.deleted = max(h.deleted, to)
	}
}

// choose is the controller's answer to a change: a living leader out of the in-sync set, or none; it tells who can be reached.
func (h *history) choose() {
	w := h.word()
	leader := w.leader
	if !h.lives(leader) {
		leader = -1
		for _, id := range w.isr {
			if h.lives(id) {
				leader = id
				break
			}
		}
		for _, id := range h.all {
			if leader < 0 && h.unclean && h.lives(id) {
				leader, w.isr = id, []int32{id}
			}
		}
	}
	h.electOf(leader, w)
}

func (h *history) electOf(leader int32, w word) {
	isr := slices.DeleteFunc(slices.Clone(w.isr), func(id int32) bool { return !h.lives(id) })
	if len(isr) == 0 {
		isr = w.isr // the last ones stay, to be waited for
	}
	h.mu.Lock()
	now := h.parts[0]
	now.leader, now.isr = leader, isr
	now.epoch++
	now.partitionEpoch++
	h.mu.Unlock()
	for _, id := range h.all {
		if h.lives(id) && h.r.IntN(8) > 0 { // some pushes come later
			h.tell(0, id)
		}
	}
}

// settle lets everything work again, and checks what must hold then.
func (h *history) settle() {
	for _, id := range h.all {
		h.join(id)
		if h.nodes[id] == nil {
			h.start(id)
		}
	}
	w := h.word()
	leader := w.leader
	if leader < 0 {
		leader = w.isr[0]
	}
	h.elect(0, leader, w.isr...)
	h.isrIs(0, 1, 2, 3)
	h.produce(leader, 0, "last")
	h.same(0, leader, others(leader)...)

	values := strings.Split(h.values(leader, 0), " ")
	seen := map[string]string{}
	for _, v := range values {
		offset, value, _ := strings.Cut(v, ":")
		require.Empty(h.t, seen[value], "%s is there twice", value)
		seen[value] = offset
	}
	if h.unclean {
		return
	}
	h.ackMu.Lock()
	defer h.ackMu.Unlock()
	lost := 0
	for _, v := range h.acked {
		if seen[v] == "" {
			lost++
		}
	}
	// Two records a batch, and a start within one: only what was deleted on purpose is missing.
	require.LessOrEqual(h.t, int64(lost), (h.deleted+1)/2, "acknowledged records were lost: of %v there is %v", h.acked, values)
}

func others(leader int32) []int32 {
	return slices.DeleteFunc([]int32{1, 2, 3}, func(id int32) bool { return id == leader })
}
