package machine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// Errors beside those of the contract.
var (
	// ErrNoSession says that the session of a command doesn't exist any more.
	ErrNoSession = errors.New("the session is over")
	// ErrSeatTaken says that there is a controller.
	ErrSeatTaken = errors.New("there is a controller")
	// ErrNotEmpty says that something can't be imported, as there is something already.
	ErrNotEmpty = errors.New("the cluster isn't empty")
	// ErrWithdrawn says that what a command asks for was taken back before the command arrived.
	ErrWithdrawn = errors.New("it was taken back")
)

// Result is the outcome of a command.
type Result struct {
	Err    error   // why nothing was done
	Items  []error // of each item
	Epochs []int32 // of UpdatePartitions: the new partition epoch of each item
	Number int64   // the session, epoch, id or first producer id
	Count  int32   // of producer ids
	Text   string  // the cluster id
}

// Machine is the state. It belongs to one goroutine at a time.
type Machine struct {
	kept       *state.State
	sessions   map[uint64]string // by id: the server
	controller *seat
	brokers    map[int32]registered
	requests   []election.Request
	reported   int64 // how many requests there were
	// withdrawn are campaigns and registrations of sessions that were taken back before they were there: their commands may
	// come yet.
	withdrawn map[Holding]struct{}
}

type seat struct {
	Holding
	broker int32
	epoch  int32
}

type registered struct {
	Holding
	broker Broker
}

// New makes the state of a cluster that knows nothing.
func New() *Machine {
	return &Machine{kept: state.New(), sessions: map[uint64]string{}, brokers: map[int32]registered{}, withdrawn: map[Holding]struct{}{}}
}

// Apply applies the command at an index of the log, and says what watches are to be told. It keeps parts of the command.
func (m *Machine) Apply(index uint64, c *Command) (Result, []election.Change) {
	a := applying{m: m}
	r := a.apply(index, c)
	return r, a.changes
}

// applying is one Apply.
type applying struct {
	m       *Machine
	changes []election.Change
}

func (a *applying) apply(index uint64, c *Command) Result {
	m := a.m
	switch {
	case c.OpenSession != nil:
		var old []uint64
		for id, server := range m.sessions {
			if server == c.OpenSession.Server {
				old = append(old, id)
			}
		}
		a.close(old)
		m.sessions[index] = c.OpenSession.Server
		return Result{Number: int64(index)}
	case c.CloseSessions != nil:
		a.close(c.CloseSessions)
		return Result{}
	case c.Campaign != nil:
		return a.campaign(c.Campaign)
	case c.Resign != nil:
		if m.HoldsSeat(*c.Resign) {
			m.controller = nil
		} else {
			m.withdraw(*c.Resign)
		}
		return Result{}
	case c.Register != nil:
		return a.register(c.Register)
	case c.Leave != nil:
		if !a.leave(func(r registered) bool { return r.Holding == *c.Leave }) {
			m.withdraw(*c.Leave)
		}
		return Result{}
	case c.Identify != "":
		ops, id, err := m.kept.Identify(c.Identify)
		return a.do(ops, Result{Text: id, Err: err})
	case c.NewBrokerID:
		ops, id, err := m.kept.NewBrokerID()
		return a.do(ops, Result{Number: int64(id), Err: err})
	case c.ProducerIDs != nil:
		ops, block, err := m.kept.ProducerIDs(c.ProducerIDs.Broker, c.ProducerIDs.From)
		return a.do(ops, Result{Number: block.First, Count: block.Count, Err: err})
	case c.DirFailed != nil:
		if c.DirFailed.Broker < 0 {
			return Result{Err: fmt.Errorf("%w: broker id %d", election.ErrInvalid, c.DirFailed.Broker)}
		}
		m.reported++
		m.requests = append(m.requests, election.Request{Kind: election.DirFailed, Broker: c.DirFailed.Broker, ID: strconv.FormatInt(m.reported, 10)})
		a.changed(election.Change{Kind: election.RequestsChanged})
		return Result{}
	case c.Import != nil:
		return a.imported(c.Import)
	}
	if m.controller == nil || m.controller.epoch != c.Epoch {
		return Result{Err: fmt.Errorf("%w: epoch %d, the last was %d", election.ErrStaleController, c.Epoch, m.kept.ControllerEpoch)}
	}
	return a.write(c)
}

// write does a write of the controller.
func (a *applying) write(c *Command) Result {
	m := a.m
	switch {
	case c.CreateTopics != nil:
		topics := make([]election.NewTopic, len(c.CreateTopics))
		for i, t := range c.CreateTopics {
			id, _ := state.DecodeID(t.ID) // what isn't one is zero, which is refused
			topics[i] = election.NewTopic{Name: t.Name, ID: id, Partitions: t.Assignments(), Config: t.Config}
		}
		ops, results := m.kept.CreateTopics(topics)
		return a.do(ops, Result{Items: results})
	case c.SetAssignments != nil:
		all := make([]election.TopicAssignment, len(c.SetAssignments))
		for i := range c.SetAssignments {
			t := &c.SetAssignments[i]
			id, _ := state.DecodeID(t.ID)
			all[i] = election.TopicAssignment{Topic: t.Name, ID: id, Partitions: t.Assignments()}
		}
		ops, results := m.kept.SetAssignments(all)
		return a.do(ops, Result{Items: results})
	case c.UpdatePartitions != nil:
		updates := make([]election.PartitionUpdate, len(c.UpdatePartitions))
		for i := range c.UpdatePartitions {
			s := &c.UpdatePartitions[i]
			updates[i] = election.PartitionUpdate{Topic: s.Topic, Partition: s.Partition, State: s.PartitionState()}
		}
		ops, results := m.kept.UpdatePartitions(updates)
		r := Result{Items: make([]error, len(results)), Epochs: make([]int32, len(results))}
		for i := range results {
			r.Items[i], r.Epochs[i] = results[i].Err, results[i].PartitionEpoch
		}
		return a.do(ops, r)
	case c.MarkDeleted != nil:
		ops, results := m.kept.MarkDeleted(c.MarkDeleted)
		return a.do(ops, Result{Items: results})
	case c.RemoveTopics != nil:
		ops, results := m.kept.RemoveTopics(c.RemoveTopics)
		return a.do(ops, Result{Items: results})
	case c.Unmark != nil:
		return a.do(m.kept.Unmark(c.Unmark), Result{Items: make([]error, len(c.Unmark))})
	case c.SetConfigs != nil:
		configs := make([]election.Config, len(c.SetConfigs))
		for i := range c.SetConfigs {
			o := &c.SetConfigs[i]
			configs[i] = election.Config{Entity: o.Entity(), Values: o.Values, Version: o.Version}
		}
		ops, results := m.kept.SetConfigs(configs)
		return a.do(ops, Result{Items: results})
	case c.Done != nil:
		before := len(m.requests)
		m.requests = slices.DeleteFunc(m.requests, func(r election.Request) bool {
			return slices.Contains(c.Done, Request{Broker: r.Broker, ID: r.ID})
		})
		if len(m.requests) != before {
			a.changed(election.Change{Kind: election.RequestsChanged})
		}
		return Result{Items: make([]error, len(c.Done))}
	}
	return Result{}
}

// do applies operations that were planned over this state.
func (a *applying) do(ops []state.Op, r Result) Result {
	for i := range ops {
		if err := a.m.kept.Apply(&ops[i]); err != nil {
			panic(fmt.Sprintf("an operation that was planned over this state can't be applied to it: %v", err))
		}
		for _, ch := range ops[i].Changes() {
			a.changed(ch)
		}
	}
	return r
}

func (a *applying) changed(ch election.Change) {
	if n := len(a.changes); n == 0 || a.changes[n-1] != ch {
		a.changes = append(a.changes, ch)
	}
}

// close ends sessions and what belongs to them.
func (a *applying) close(ids []uint64) {
	for _, id := range ids {
		delete(a.m.sessions, id)
	}
	maps.DeleteFunc(a.m.withdrawn, func(h Holding, _ struct{}) bool { return slices.Contains(ids, h.Session) })
	if seat := a.m.controller; seat != nil && slices.Contains(ids, seat.Session) {
		a.m.controller = nil
	}
	a.leave(func(r registered) bool { return slices.Contains(ids, r.Session) })
}

func (a *applying) leave(who func(registered) bool) bool {
	before := len(a.m.brokers)
	maps.DeleteFunc(a.m.brokers, func(_ int32, r registered) bool { return who(r) })
	if len(a.m.brokers) == before {
		return false
	}
	a.changed(election.Change{Kind: election.BrokersChanged})
	return true
}

// withdraw remembers that something was taken back, for as long as its command may arrive.
func (m *Machine) withdraw(h Holding) {
	if m.HasSession(h.Session) {
		m.withdrawn[h] = struct{}{}
	}
}

// allows says why a session can't hold something, or nothing.
func (m *Machine) allows(h Holding) error {
	if !m.HasSession(h.Session) {
		return ErrNoSession
	}
	if _, ok := m.withdrawn[h]; ok {
		return ErrWithdrawn
	}
	return nil
}

func (a *applying) campaign(c *Campaign) Result {
	m := a.m
	if err := m.allows(c.Holding); err != nil {
		return Result{Err: err}
	}
	if m.controller != nil && m.controller.Holding == c.Holding {
		return Result{Number: int64(m.controller.epoch)}
	}
	if m.controller != nil {
		return Result{Err: fmt.Errorf("%w: broker %d", ErrSeatTaken, m.controller.broker)}
	}
	ops, epoch, err := m.kept.NewControllerEpoch()
	if err != nil {
		return Result{Err: err}
	}
	m.controller = &seat{c.Holding, c.Broker, epoch}
	return a.do(ops, Result{Number: int64(epoch)})
}

func (a *applying) register(c *Register) Result {
	m := a.m
	if err := m.allows(c.Holding); err != nil {
		return Result{Err: err}
	}
	if had, ok := m.brokers[c.Broker.ID]; ok && had.Holding == c.Holding {
		return Result{Number: had.broker.Epoch}
	}
	b := c.Broker.Election()
	if err := state.CheckBroker(b); err != nil {
		return Result{Err: err}
	}
	for _, id := range slices.Sorted(maps.Keys(m.brokers)) {
		other := m.brokers[id]
		if err := state.CheckAlone(other.broker.Election(), b); err != nil {
			return Result{Err: err}
		}
	}
	ops, epoch, err := m.kept.NewBrokerEpoch()
	if err != nil {
		return Result{Err: err}
	}
	b.Epoch = epoch
	m.brokers[b.ID] = registered{c.Holding, NewBroker(b)}
	a.changed(election.Change{Kind: election.BrokersChanged})
	return a.do(ops, Result{Number: epoch})
}

// imported begins with what another coordination kept. It is done as a whole or not at all.
func (a *applying) imported(ops []state.Op) Result {
	m := a.m
	if !m.kept.IsEmpty() {
		return Result{Err: ErrNotEmpty}
	}
	fresh := state.New()
	for i := range ops {
		if err := fresh.Apply(&ops[i]); err != nil {
			return Result{Err: fmt.Errorf("%w: %w", election.ErrInvalid, err)}
		}
	}
	m.kept = fresh
	a.changed(election.Change{Kind: election.EverythingChanged})
	return Result{}
}

// Kept is the cluster's metadata. Only Apply may change it.
func (m *Machine) Kept() *state.State { return m.kept }

// HasSession says whether a session exists.
func (m *Machine) HasSession(id uint64) bool {
	_, ok := m.sessions[id]
	return ok
}

// Sessions gives the sessions by ascending id: their ids, and the servers that they stand for.
func (m *Machine) Sessions() (ids []uint64, servers []string) {
	ids = slices.Sorted(maps.Keys(m.sessions))
	for _, id := range ids {
		servers = append(servers, m.sessions[id])
	}
	return ids, servers
}

// Controller says who is controller, as [election.Election] does.
func (m *Machine) Controller() (broker, epoch int32) {
	if m.controller == nil {
		return election.NoBroker, m.kept.ControllerEpoch
	}
	return m.controller.broker, m.controller.epoch
}

// HoldsSeat says whether the term that a campaign won lasts.
func (m *Machine) HoldsSeat(h Holding) bool { return m.controller != nil && m.controller.Holding == h }

// HoldsRegistration says whether a registration lasts.
func (m *Machine) HoldsRegistration(broker int32, h Holding) bool {
	r, ok := m.brokers[broker]
	return ok && r.Holding == h
}

// Brokers lists the living brokers by ascending id: copies.
func (m *Machine) Brokers() []election.Broker {
	var all []election.Broker
	for _, r := range m.brokers {
		all = append(all, r.broker.Election())
	}
	slices.SortFunc(all, func(x, y election.Broker) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// Requests lists what is asked of the controller: copies.
func (m *Machine) Requests() []election.Request { return slices.Clone(m.requests) }
