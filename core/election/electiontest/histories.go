package electiontest

import (
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// checkHistories does the same random things to the subject and to a Memory, and compares what both say.
func checkHistories(t TB, s *Subject) {
	model := NewMemory()
	h := &history{t: t, s: s, rand: rand.New(rand.NewPCG(4, 5))}
	h.sides[0], h.sides[1] = s.member(), model.Member()
	require.NoError(t, h.sides[1].Start(s.ctx))
	defer func() { require.NoError(t, h.sides[1].Stop(s.ctx)) }()
	h.elect()
	for step := range 400 {
		h.step(step)
	}
	h.compare("at the end")
}

type history struct {
	t      TB
	s      *Subject
	rand   *rand.Rand
	sides  [2]election.Coordination // the subject and the model
	terms  [2]election.Term
	nextID byte
}

func (h *history) elect() {
	for i, c := range h.sides {
		h.terms[i] = h.s.elect(c)
	}
}

// epoch is the controller epoch of a side; stale now and then.
func (h *history) epoch(side int, stale bool) int32 {
	if stale {
		return h.terms[side].Epoch() - 1
	}
	return h.terms[side].Epoch()
}

func (h *history) name() string { return fmt.Sprintf("t%d", h.rand.IntN(4)) }

func (h *history) step(step int) {
	what, stale := h.rand.IntN(100), h.rand.IntN(20) == 0
	name, partition := h.name(), h.rand.Int32N(4)
	md := func(side int) election.Metadata { return h.sides[side].Metadata() }
	switch {
	case what < 15:
		h.nextID++
		in := newTopic(name, h.nextID, 1+h.rand.IntN(3))
		if h.rand.IntN(2) == 0 {
			in.Config = map[string]string{"k": fmt.Sprint(step)}
		}
		other := newTopic(h.name(), h.nextID, 0)
		h.both(step, func(side int) ([]error, error) {
			return md(side).CreateTopics(h.s.ctx, h.epoch(side, stale), []election.NewTopic{in, other, in})
		})
	case what < 30:
		n := 1 + h.rand.IntN(5)
		h.both(step, func(side int) ([]error, error) {
			var a election.TopicAssignment
			for _, t := range h.s.topics(h.sides[side], name) {
				a = election.TopicAssignment{Topic: name, ID: t.ID, Partitions: assignments(n, int32(step%7), 9)}
			}
			return md(side).SetAssignments(h.s.ctx, h.epoch(side, stale), []election.TopicAssignment{a})
		})
	case what < 65:
		off := int32(0)
		if h.rand.IntN(4) == 0 {
			off = h.rand.Int32N(3) - 1
		}
		h.both(step, func(side int) ([]error, error) {
			at := int32(-1)
			for _, t := range h.s.topics(h.sides[side], name) {
				if int(partition) < len(t.Partitions) && t.Partitions[partition].State != nil {
					at = t.Partitions[partition].State.PartitionEpoch
				}
			}
			res, err := md(side).UpdatePartitions(h.s.ctx, h.epoch(side, stale), []election.PartitionUpdate{{Topic: name, Partition: partition,
				State: election.PartitionState{Leader: int32(step), LeaderEpoch: int32(step), ISR: []int32{int32(step)}, PartitionEpoch: at + off}}})
			var errs []error
			for _, r := range res {
				errs = append(errs, r.Err)
			}
			return errs, err
		})
	case what < 72:
		h.both(step, func(side int) ([]error, error) {
			return md(side).MarkDeleted(h.s.ctx, h.epoch(side, stale), []string{name, "nothing"})
		})
	case what < 80:
		h.both(step, func(side int) ([]error, error) {
			return md(side).RemoveTopics(h.s.ctx, h.epoch(side, stale), []string{name, h.fixed(step)})
		})
	case what < 92:
		e := election.Entity{Kind: election.TopicEntity, Name: name}
		if h.rand.IntN(3) == 0 {
			e = election.Entity{Kind: election.BrokerEntity, Name: []string{"", "1"}[h.rand.IntN(2)]}
		}
		values, wrong := map[string]string{"k": fmt.Sprint(step)}, h.rand.IntN(5) == 0
		if h.rand.IntN(4) == 0 {
			values = nil
		}
		h.both(step, func(side int) ([]error, error) {
			c := election.Config{Entity: e, Values: values, Version: h.s.configs(h.sides[side], e)[0].Version}
			if wrong {
				c.Version += 1000
			}
			return md(side).SetConfigs(h.s.ctx, h.epoch(side, stale), []election.Config{c})
		})
	case what < 96:
		for _, term := range h.terms {
			require.NoError(h.t, term.Resign(h.s.ctx))
		}
		h.elect()
	default:
		h.sides[0] = h.s.again(h.sides[0])
		require.NoError(h.t, h.terms[1].Resign(h.s.ctx))
		h.elect()
	}
	if step%10 == 0 {
		h.compare(fmt.Sprintf("after step %d", step))
	}
}

func (h *history) fixed(step int) string { return fmt.Sprintf("t%d", step%4) }

// both does something to both sides and compares the outcomes.
func (h *history) both(step int, do func(side int) ([]error, error)) {
	var kinds [2]string
	for side := range h.sides {
		errs, err := do(side)
		kinds[side] = kind(err)
		for _, e := range errs {
			kinds[side] += "," + kind(e)
		}
	}
	require.Equal(h.t, kinds[1], kinds[0], "step %d: the errors that it and the model return", step)
}

// kind names an error by the sentinel in it.
func kind(err error) string {
	for _, sentinel := range []error{election.ErrStaleController, election.ErrTopicExists, election.ErrUnknownTopic,
		election.ErrUnknownPartition, election.ErrConflict, election.ErrInvalid} {
		if is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return fmt.Sprint(err)
}

// compare compares all that both sides keep, but for what each numbers as it likes.
func (h *history) compare(when string) {
	var topics [2][]election.Topic
	var configs [2]map[election.Entity]map[string]string
	for side, c := range h.sides {
		topics[side] = h.s.topics(c)
		for i := range topics[side] {
			for n := range topics[side][i].Partitions {
				p := &topics[side][i].Partitions[n]
				p.Adding, p.Removing = append([]int32{}, p.Adding...), append([]int32{}, p.Removing...)
			}
		}
		configs[side] = map[election.Entity]map[string]string{}
		for _, c := range h.s.configs(c) {
			configs[side][c.Entity] = c.Values
		}
	}
	require.Equal(h.t, topics[1], topics[0], when)
	require.Equal(h.t, configs[1], configs[0], when)
}
