package partition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
)

// dice draws a number from 0 to n-1.
type dice func(what string, n int) int

// play lets a history happen: what, and to whom, is drawn.
func play(t reporter, draw dice, planted fault, say func(...any)) {
	c := newCluster(t, planted, 3+draw("brokers", 2), 1+draw("min.insync.replicas", 2))
	c.elect(c.order[0])
	c.create("a", []int32{1, 2, 3})
	c.create("b", []int32{2, 3})
	broker := func(what string) int32 { return c.order[draw(what, len(c.order))] }
	partition := func() ID { return c.ids[draw("partition", len(c.ids))] }
	any := func() *node { return c.nodes[broker("broker")] }

	// What goes on by itself, bit by bit.
	var work []func()
	for _, id := range c.order {
		n := c.nodes[id]
		for _, p := range c.ids {
			work = append(work, func() { n.produce(p, true) }, func() { n.fetch(p) }, func() { n.receive(p) }, func() { n.fetch(p) }, func() { n.receive(p) },
				func() { n.alter(p) }, func() { n.altered(p) })
		}
		deliver := func() {
			if c.office != nil {
				c.office.deliver(id, true)
			}
		}
		work = append(work, deliver, deliver, deliver, func() { n.tick() }, func() { c.notice(id) }, func() { c.look(false) })
	}
	// What happens to it. Each history has a character of its own: some things happen more often in it than in others.
	actions := []struct {
		name   string
		weight int
		do     func()
	}{
		{"produce without waiting", 4, func() { any().produce(partition(), false) }},
		{"fetch", 4, func() { any().fetch(partition()) }},
		{"receive", 4, func() { any().receive(partition()) }},
		{"ask for another ISR", 4, func() { any().alter(partition()) }},
		{"lose the answer", 4, func() {
			if r := any().replicas[partition()]; r != nil {
				r.answer = nil
			}
		}},
		{"lose fetched records", 2, func() {
			if r := any().replicas[partition()]; r != nil {
				r.fetching = nil
			}
		}},
		{"time", 8, func() { c.now = c.now.Add(maxLag / 3) }},
		{"look for lag", 3, func() { any().tick() }},
		{"checkpoint", 2, func() {
			n := any()
			for _, p := range c.ids {
				if l := n.disk[p]; l != nil {
					l.saved = l.hw
				}
			}
		}},
		{"deliver", 6, func() {
			if c.office != nil {
				c.office.deliver(broker("to"), draw("answer", 10) > 0)
			}
		}},
		{"deliver late", 12, func() {
			if len(c.zombies) > 0 {
				c.zombies[draw("zombie", len(c.zombies))].deliver(broker("to"), true)
			}
		}},
		{"kill", 3, func() {
			if id := broker("broker"); c.nodes[id].up {
				c.kill(id)
			}
		}},
		{"start", 5, func() { c.start(broker("broker")) }},
		{"hold", 3, func() { any().held = true }},
		{"go on", 4, func() { any().held = false }},
		{"expire", 3, func() { c.expire(broker("broker")) }},
		{"notice", 5, func() { c.notice(broker("broker")) }},
		{"cut", 2, func() { c.cut[[2]int32{broker("from"), broker("to")}] = true }},
		{"mend", 2, func() { clear(c.cut) }},
		{"elect", 8, func() { c.elect(broker("broker")) }},
		{"look", 3, func() { c.look(draw("everything", 10) == 0) }},
		{"controller will die", 1, func() { c.dieAt, c.after = draw("writes", 3)+1, draw("after", 2) == 1 }},
		{"elect the preferred", 1, func() {
			p := partition()
			c.command(&controller.ElectLeaders{Partitions: []controller.PartitionID{{Topic: p.Topic, Partition: p.Partition}}})
		}},
		{"rebalance", 1, func() { c.command(controller.Rebalance{}) }},
		{"move", 2, func() {
			p := partition()
			var target []int32
			for range 1 + draw("replicas", 3) {
				if id := broker("replica"); !slices.Contains(target, id) {
					target = append(target, id)
				}
			}
			c.command(&controller.AlterReassignments{Partitions: []controller.Reassignment{{PartitionID: controller.PartitionID{Topic: p.Topic, Partition: p.Partition}, Replicas: target}}})
		}},
		{"move back", 1, func() {
			p := partition()
			c.command(&controller.AlterReassignments{Partitions: []controller.Reassignment{{PartitionID: controller.PartitionID{Topic: p.Topic, Partition: p.Partition}}}})
		}},
		{"stop politely", 1, func() {
			if n := any(); n.working() {
				n.stopping = true
				c.command(&controller.ControlledShutdown{Broker: n.id, Epoch: n.epoch()})
			}
		}},
		{"lose a disk", 1, func() {
			// Only of a broker that isn't in sync: where nobody else is, what was committed would be lost with it.
			id := broker("broker")
			if c.nodes[id].up {
				return
			}
			for _, p := range c.states() {
				if p.State != nil && slices.Contains(p.State.ISR, id) {
					return
				}
			}
			c.nodes[id].disk = map[ID]*trail{}
		}},
	}
	var names []int
	for i, a := range actions {
		for range a.weight * (1 + draw("how often", 3)) {
			names = append(names, i)
		}
	}
	pace := 1 + draw("pace", 24)
	for range 20 + draw("steps", 80) {
		a := actions[names[draw("action", len(names))]]
		say(a.name)
		a.do()
		c.check()
		for range pace {
			work[draw("work", len(work))]()
		}
		c.check()
	}
	c.heal()
}

// TestClusterHistories: leader in sync, one leader for an epoch, a high watermark that doesn't go back, committed records on
// all that may become leader, replicas alike below it, nothing acknowledged is lost; and in the end everything works again.
func TestClusterHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		play(t, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }, none, t.Log)
	})
}

// found is the panic that ends a history with a mistake.
type found struct{ what string }

// expecting is a reporter that ends the history at the first failure.
type expecting struct{ what string }

func (e *expecting) Helper() {}
func (e *expecting) Errorf(format string, args ...any) {
	e.what = fmt.Sprintf(format, args...)
	panic(found{e.what})
}
func (e *expecting) FailNow() { panic(found{e.what}) }

// TestClusterFindsMistakes plants mistakes, one by one, and sees each found.
func TestClusterFindsMistakes(t *testing.T) {
	for planted, name := range map[fault]string{
		acksAtOnce:          "a leader acknowledges what only it has",
		cutsToHighWatermark: "a new follower cuts its log at its high watermark",
		neverDiverges:       "a leader doesn't look whether logs have parted",
		anyAnswer:           "a follower appends what it asked another leader for",
		anyController:       "a broker listens to a controller that has a successor",
		electsAnybody:       "the controller elects who isn't in sync",
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3000) {
				if what := broken(seed, planted); what != "" {
					t.Logf("found in history %d: %.300s", seed, what)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// broken plays one history, and says what was wrong in it.
func broken(seed uint64, planted fault) (what string) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(found)
			if !ok {
				panic(p)
			}
			what = f.what
		}
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	play(&expecting{}, func(_ string, n int) int { return random.IntN(n) }, planted, func(...any) {})
	return ""
}
