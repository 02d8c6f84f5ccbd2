package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/election"
)

// Rules are what the machine needs to know beside the metadata. Its functions must be quick and have no effects.
type Rules struct {
	BrokerID          int32  // this broker, which is controller
	InterBroker       string // name of the listener that brokers use among themselves
	Partitions        int32  // num.partitions
	ReplicationFactor int16  // default.replication.factor
	DeleteTopics      bool   // delete.topic.enable
	Imbalance         int32  // leader.imbalance.per.broker.percentage

	Unclean     func(topic string) bool              // unclean.leader.election.enable of a topic
	CheckConfig func(config map[string]string) error // nil when a topic may have it
	Draw        func(n int) int                      // a number from 0 to n-1
	NewID       func() election.TopicID              // an id that no topic has or had
}

// partition is a partition as the machine knows it.
type partition struct {
	assignment election.Assignment
	state      *election.PartitionState // nil: it is New
	offline    []int32                  // replicas whose log directory failed

	// back says that a move that is going on is to be undone, and then, if next is not nil, another begun. It is an
	// intention: a controller that dies takes it along, and the move goes on.
	back  bool
	next  []int32
	slots []*error // results of the commands that want that

	// arrived says that the state is within the target, and was written by this controller: its replicas are told, under that
	// leader epoch, as if the move were over. Then those that are left behind may go.
	arrived bool
}

// target is where the partition is going, or where it is.
func (p *partition) target() []int32 {
	if p.back {
		return p.origin()
	}
	return keep(p.assignment.Replicas, func(id int32) bool { return !slices.Contains(p.assignment.Removing, id) })
}

// origin is where the partition comes from, or where it is.
func (p *partition) origin() []int32 {
	return keep(p.assignment.Replicas, func(id int32) bool { return !slices.Contains(p.assignment.Adding, id) })
}

func (p *partition) reassigning() bool { return reassigning(p.assignment) }

func reassigning(a election.Assignment) bool { return len(a.Adding)+len(a.Removing) > 0 }

func sameAssignment(a, b election.Assignment) bool {
	return slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.Adding, b.Adding) && slices.Equal(a.Removing, b.Removing)
}

// topic is a topic as the machine knows it.
type topic struct {
	name     string
	id       election.TopicID
	parts    []partition
	deleting bool
	hidden   bool                 // brokers were told that it is being deleted
	asked    map[replica]struct{} // replicas that were told to go
	gone     map[replica]struct{} // those that have
}

type replica struct {
	partition int32
	broker    int32
}

// news is what brokers have to be told about a partition.
type news struct {
	leaderAndISR bool // its replicas too, not only everybody's cache
	isNew        bool // it never had a state: its replicas may make its log
}

// Machine decides. It belongs to one goroutine.
type Machine struct {
	rules    Rules
	epoch    int32
	brokers  map[int32]election.Broker
	stopping map[int32]map[tp]struct{} // brokers that are about to stop, with the replicas that were told to
	topics   map[string]*topic
	ids      map[election.TopicID]*topic
	unified  map[string]string // names as metrics write them

	dirty    map[tp]struct{}   // to be decided about
	bump     map[tp]struct{}   // to get a new leader epoch even if nothing else changes
	changed  map[tp]news       // to be told
	fresh    map[int32]bool    // brokers that were told nothing yet
	nameless map[string]bool   // topics whose id the metadata doesn't have
	unwanted map[string]bool   // topics that are marked for deletion though that is disabled
	untold   bool              // the list of living brokers changed
	writing  int               // writes whose answers are still to come
	epochs   map[tp]int32      // leader epochs to begin with, of partitions that were adopted
	later    []election.Broker // who is alive, when it has been dealt with that some of them were gone
	noted    []journal.Event   // what is to be remembered of the event at hand
}

// NewMachine makes a machine that knows nothing. Its first event is Loaded.
func NewMachine(rules Rules) *Machine { return &Machine{rules: rules} }

// Epoch is the controller epoch that the machine decides under.
func (m *Machine) Epoch() int32 { return m.epoch }

// Handle takes an event and returns what is to be done about it, in order. Each effect that is a write or a reread has an
// event that answers it; the caller gives it to Handle before any other event, and does what that returns after what
// is left of the effects here.
func (m *Machine) Handle(ev Event) []Effect {
	effects := m.react(ev)
	if m.writing == 0 && !slices.ContainsFunc(effects, isAnswered) {
		// What an event leads to is decided when its writes are done: brokers are told what holds, not what is about to.
		effects = append(effects, m.settle()...)
		for m.later != nil && !slices.ContainsFunc(effects, isWrite) {
			now := m.later
			m.later = nil
			m.brokersChanged(now)
			effects = append(effects, m.settle()...)
		}
	}
	for _, e := range effects {
		if isWrite(e) {
			m.writing++
		}
	}
	if len(m.noted) > 0 {
		effects = append(effects, Note{m.noted})
		m.noted = nil
	}
	return effects
}

// isAnswered says whether an effect has an event that answers it before any other event comes.
func isAnswered(e Effect) bool {
	switch e.(type) {
	case Push, Note:
		return false
	}
	return true
}

func isWrite(e Effect) bool {
	_, reread := e.(Reread)
	return isAnswered(e) && !reread
}

// react takes an event in, and returns the writes that it asks for by itself.
func (m *Machine) react(ev Event) (effects []Effect) {
	switch ev := ev.(type) {
	case Loaded:
		m.load(ev)
	case BrokersChanged:
		m.brokersSeen(ev.Brokers)
	case TopicsChanged:
		m.topicsChanged(ev)
	case *CreateTopics:
		effects = m.createTopics(ev)
	case *AdoptTopics:
		effects = m.adoptTopics(ev)
	case *CreatePartitions:
		effects = m.createPartitions(ev)
	case *DeleteTopics:
		effects = m.deleteTopics(ev)
	case *ElectLeaders:
		effects = m.electLeaders(ev)
	case *AlterReassignments:
		effects = m.alterReassignments(ev)
	case *AlterPartition:
		effects = m.alterPartition(ev)
	case *ControlledShutdown:
		effects = m.controlledShutdown(ev)
	case LogDirFailed:
		effects = m.logDirFailed(ev.Broker)
	case ConfigChanged:
		m.configChanged(ev.Topic)
	case Rebalance:
		effects = m.rebalance()
	case *ListReassignments:
		ev.Ongoing = m.reassignments(ev.Partitions)
	case topicsWritten:
		m.writing--
		m.topicsWritten(ev)
	case assignmentsWritten:
		m.writing--
		effects = m.assignmentsWritten(ev)
	case statesWritten:
		m.writing--
		effects = m.statesWritten(ev)
	case marksWritten:
		m.writing--
		m.marksWritten(ev)
	case marksTakenBack:
		m.writing--
	case removalsWritten:
		m.writing--
		effects = m.removalsWritten(ev)
	case Delivered:
		m.delivered(ev)
	}
	return effects
}

// load begins a term: whatever another controller left half done is found by looking at everything.
func (m *Machine) load(ev Loaded) {
	m.epoch = ev.Epoch
	m.brokers, m.stopping = map[int32]election.Broker{}, map[int32]map[tp]struct{}{}
	m.topics, m.ids, m.unified = map[string]*topic{}, map[election.TopicID]*topic{}, map[string]string{}
	m.dirty, m.bump, m.changed = map[tp]struct{}{}, map[tp]struct{}{}, map[tp]news{}
	m.fresh, m.nameless, m.unwanted = map[int32]bool{}, map[string]bool{}, map[string]bool{}
	m.untold, m.writing, m.later = true, 0, nil
	for _, b := range ev.Brokers {
		m.brokers[b.ID] = b
		m.fresh[b.ID] = true
	}
	for i := range ev.Topics {
		m.adopt(&ev.Topics[i])
	}
}

// adopt makes a topic that was read known, and marks its partitions.
func (m *Machine) adopt(in *election.Topic) *topic {
	t, id := m.topics[in.Name], m.identify(in)
	if t == nil || t.id != id {
		t = &topic{name: in.Name, id: id, asked: map[replica]struct{}{}, gone: map[replica]struct{}{}}
		m.topics[in.Name], m.ids[id], m.unified[unified(in.Name)] = t, t, in.Name
	}
	if in.Deleting && !m.rules.DeleteTopics {
		m.unwanted[in.Name] = true
	} else {
		t.deleting = t.deleting || in.Deleting
	}
	t.parts = slices.Grow(t.parts, len(in.Partitions))
	for i := range in.Partitions {
		if i == len(t.parts) {
			t.parts = append(t.parts, partition{})
		}
		p, a, k := &t.parts[i], in.Partitions[i].Assignment, tp{in.Name, int32(i)}
		if same := sameAssignment(p.assignment, a); !same && (p.state != nil || reassigning(a)) {
			// Whoever wrote it, another controller or a tool, may not have come to telling the replicas; and they take a
			// LeaderAndIsr of a leader epoch that they know for an old one.
			m.bump[k] = struct{}{}
			p.arrived = false
		}
		p.assignment, p.state = a, in.Partitions[i].State
		m.dirty[k] = struct{}{}
	}
	return t
}

// alive says whether a broker is, and can have leaders: one that is about to stop is alive.
func (m *Machine) alive(id int32) bool {
	_, ok := m.brokers[id]
	return ok
}

// usable says who can lead and follow a partition: its replicas, where broker and log directory are well.
func (m *Machine) usable(p *partition) live {
	return func(id int32) bool {
		return m.alive(id) && !slices.Contains(p.offline, id) && slices.Contains(p.assignment.Replicas, id)
	}
}

// staying is usable without the brokers that are about to stop.
func (m *Machine) staying(p *partition) live {
	usable := m.usable(p)
	return func(id int32) bool { return usable(id) && m.stopping[id] == nil }
}

// brokersSeen takes in who is alive. A broker that is registered anew since nobody looked was gone: what its log lost by that
// nobody knows, so it is first taken for dead, and doesn't stay leader and in sync as if nothing had happened.
func (m *Machine) brokersSeen(now []election.Broker) {
	staying := slices.DeleteFunc(slices.Clone(now), func(b election.Broker) bool {
		old, was := m.brokers[b.ID]
		return was && old.Epoch != b.Epoch
	})
	if len(staying) < len(now) {
		m.later = now
	}
	m.brokersChanged(staying)
}

func (m *Machine) brokersChanged(now []election.Broker) {
	before := m.brokers
	m.brokers = map[int32]election.Broker{}
	for _, b := range now {
		m.brokers[b.ID] = b
	}
	moved := map[int32]bool{} // who came or went
	for id, b := range m.brokers {
		old, was := before[id]
		if !was {
			moved[id], m.fresh[id] = true, true
		}
		if !was || old.Rack != b.Rack || !slices.Equal(old.Endpoints, b.Endpoints) {
			m.untold = true
		}
	}
	for id := range before {
		if !m.alive(id) {
			moved[id], m.untold = true, true
			delete(m.fresh, id)
			delete(m.stopping, id)
		}
	}
	if len(moved) == 0 {
		return
	}
	for k, p := range m.partitions() {
		if !slices.ContainsFunc(p.assignment.Replicas, func(id int32) bool { return moved[id] }) {
			continue
		}
		p.offline = keep(p.offline, func(id int32) bool { return !moved[id] })
		m.dirty[k] = struct{}{}
		m.tell(k, news{}) // which of its replicas are offline has changed, if nothing else
		m.forget(k, moved)
	}
}

// forget makes replicas of a topic that is being deleted be asked again, by brokers that came back.
func (m *Machine) forget(k tp, moved map[int32]bool) {
	t := m.topics[k.topic]
	for id := range moved {
		delete(t.asked, replica{k.partition, id})
	}
}

// topicsChanged takes in topics that were read because somebody else may have changed them.
func (m *Machine) topicsChanged(ev TopicsChanged) {
	read := map[string]*election.Topic{}
	for i := range ev.Topics {
		read[ev.Topics[i].Name] = &ev.Topics[i]
	}
	for _, name := range ev.Names {
		now, known := read[name], m.topics[name]
		if known != nil && (now == nil || m.identify(now) != known.id) {
			m.drop(known)
			known = nil
		}
		if now == nil || known != nil && same(known, now) {
			continue
		}
		t := m.adopt(now)
		for n := range t.parts {
			m.tell(tp{name, int32(n)}, news{leaderAndISR: true})
		}
	}
}

func same(t *topic, in *election.Topic) bool {
	if t.deleting != in.Deleting || len(t.parts) != len(in.Partitions) {
		return false
	}
	for i := range t.parts {
		p, q := &t.parts[i], &in.Partitions[i]
		if !sameAssignment(p.assignment, q.Assignment) || (p.state == nil) != (q.State == nil) ||
			p.state != nil && p.state.PartitionEpoch != q.State.PartitionEpoch {
			return false
		}
	}
	return true
}

// drop forgets a topic that is gone from the metadata.
func (m *Machine) drop(t *topic) {
	delete(m.topics, t.name)
	delete(m.ids, t.id)
	delete(m.unified, unified(t.name))
	delete(m.nameless, t.name)
	for i := range t.parts {
		k := tp{t.name, int32(i)}
		delete(m.dirty, k)
		delete(m.bump, k)
		delete(m.changed, k)
	}
}

// tell adds to what brokers have to be told about a partition.
func (m *Machine) tell(k tp, n news) {
	have := m.changed[k]
	n.leaderAndISR = n.leaderAndISR || have.leaderAndISR
	n.isNew = n.isNew || have.isNew
	m.changed[k] = n
}

// partition finds a partition of a topic that isn't being deleted.
func (m *Machine) partition(k tp) *partition {
	t := m.topics[k.topic]
	if t == nil || t.deleting || k.partition < 0 || int(k.partition) >= len(t.parts) {
		return nil
	}
	return &t.parts[k.partition]
}

// partitions yields all partitions, of topics that are being deleted too.
func (m *Machine) partitions() func(yield func(tp, *partition) bool) {
	return func(yield func(tp, *partition) bool) {
		for name, t := range m.topics {
			for i := range t.parts {
				if !yield(tp{name, int32(i)}, &t.parts[i]) {
					return
				}
			}
		}
	}
}

// names are the names of all topics that are known here or given.
func (m *Machine) names(given []election.Topic) []string {
	names := make([]string, 0, len(given))
	for i := range given {
		names = append(names, given[i].Name)
	}
	for name := range m.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
