package electiontest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Memory is a cluster's coordination in memory, for tests: several members, and nothing that survives the process. It is the
// plainest thing that keeps the contract, and what the suite compares others with.
type Memory struct {
	// Before, when not nil, is called before each write of metadata is done, with the name of the method. Its error is
	// returned, and nothing is written.
	Before func(method string) error
	// After is the same behind the write: its error is returned for a write that happened.
	After func(method string) error

	mu          sync.Mutex
	changed     *sync.Cond // somebody may be elected
	clusterID   string
	epoch       int32
	brokerEpoch int64
	brokerID    int32
	producerID  int64
	version     int64
	term        *memoryTerm
	alive       map[int32]*memoryRegistration
	topics      map[string]election.Topic
	configs     map[election.Entity]election.Config
	watches     map[*memoryWatch]bool
	requests    []election.Request
	reports     int // directory failures reported so far
}

// NewMemory makes a cluster that knows nothing.
func NewMemory() *Memory {
	m := &Memory{brokerID: lastReserved, alive: map[int32]*memoryRegistration{}, topics: map[string]election.Topic{},
		configs: map[election.Entity]election.Config{}, watches: map[*memoryWatch]bool{}}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// Member makes another member, not started.
func (m *Memory) Member() election.Coordination { return &memoryMember{m: m} }

// memoryMember implements election.Coordination and its three interfaces.
type memoryMember struct {
	m       *Memory
	started bool
	stopped bool
}

func (c *memoryMember) Start(context.Context) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.started || c.stopped {
		return fmt.Errorf("started twice")
	}
	c.started = true
	return nil
}

func (c *memoryMember) Stop(context.Context) error {
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	if m.term != nil && m.term.member == c {
		m.endTerm()
	}
	for _, r := range m.alive {
		if r.member == c {
			m.endRegistration(r)
		}
	}
	for w := range m.watches {
		if w.member == c {
			w.End()
		}
	}
	m.changed.Broadcast()
	return nil
}

// Expire ends what a member holds, as the expiry of its session does. The member can go on.
func (m *Memory) Expire(member election.Coordination) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term != nil && m.term.member == member {
		m.endTerm()
	}
	for _, r := range m.alive {
		if r.member == member {
			m.endRegistration(r)
		}
	}
}

func (c *memoryMember) Election() election.Election     { return c }
func (c *memoryMember) Membership() election.Membership { return memoryMembership{c} }
func (c *memoryMember) Metadata() election.Metadata     { return memoryMetadata{c} }
func (c *memoryMember) Requests() election.Requests     { return memoryRequests{c} }

// do runs f alone, unless ctx has ended or the member isn't running.
func (c *memoryMember) do(ctx context.Context, f func(m *Memory) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if !c.started || c.stopped {
		return election.ErrClosed
	}
	return f(c.m)
}

func (c *memoryMember) Campaign(ctx context.Context, id int32) (election.Term, error) {
	wake := context.AfterFunc(ctx, func() {
		c.m.mu.Lock()
		c.m.changed.Broadcast()
		c.m.mu.Unlock()
	})
	defer wake()
	var t *memoryTerm
	err := c.do(ctx, func(m *Memory) error {
		for m.term != nil {
			m.changed.Wait()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c.stopped {
				return election.ErrClosed
			}
		}
		m.epoch++
		t = &memoryTerm{member: c, broker: id, epoch: m.epoch, lost: make(chan struct{})}
		m.term = t
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (c *memoryMember) Controller(ctx context.Context) (id, epoch int32, err error) {
	id = election.NoBroker
	err = c.do(ctx, func(m *Memory) error {
		if epoch = m.epoch; m.term != nil {
			id = m.term.broker
		}
		return nil
	})
	return id, epoch, err
}

type memoryTerm struct {
	member *memoryMember
	broker int32
	epoch  int32
	lost   chan struct{}
}

func (m *Memory) endTerm() {
	close(m.term.lost)
	m.term = nil
	m.changed.Broadcast()
}

func (t *memoryTerm) Epoch() int32          { return t.epoch }
func (t *memoryTerm) Lost() <-chan struct{} { return t.lost }
func (t *memoryTerm) Resign(context.Context) error {
	m := t.member.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term == t {
		m.endTerm()
	}
	return nil
}

type memoryMembership struct{ c *memoryMember }

func (s memoryMembership) ClusterID(ctx context.Context, proposed string) (id string, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		if m.clusterID == "" {
			m.clusterID = cmp.Or(proposed, "MemoryMemoryMemoryMemA")
		}
		id = m.clusterID
		return nil
	})
	return id, err
}

func (s memoryMembership) NewBrokerID(ctx context.Context) (id int32, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		m.brokerID++
		id = m.brokerID
		return nil
	})
	return id, err
}

func (s memoryMembership) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	var r *memoryRegistration
	err := s.c.do(ctx, func(m *Memory) error {
		names := map[string]bool{}
		for _, e := range b.Endpoints {
			if e.Listener == "" || names[e.Listener] || e.Host == "" || e.Port < 1 || e.Port > 65535 {
				return election.ErrInvalid
			}
			names[e.Listener] = true
		}
		if b.ID < 0 || len(b.Endpoints) == 0 {
			return election.ErrInvalid
		}
		for id, other := range m.alive {
			if id == b.ID || slices.ContainsFunc(other.broker.Endpoints, func(x election.Endpoint) bool {
				return slices.ContainsFunc(b.Endpoints, func(y election.Endpoint) bool { return x.Host == y.Host && x.Port == y.Port })
			}) {
				return election.ErrBrokerExists
			}
		}
		m.brokerEpoch++
		b.Epoch, b.Endpoints = m.brokerEpoch, slices.Clone(b.Endpoints)
		r = &memoryRegistration{member: s.c, broker: b, lost: make(chan struct{})}
		m.alive[b.ID] = r
		m.tell(election.Change{Kind: election.BrokersChanged})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s memoryMembership) Brokers(ctx context.Context) (all []election.Broker, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		for _, id := range slices.Sorted(maps.Keys(m.alive)) {
			b := m.alive[id].broker
			b.Endpoints = slices.Clone(b.Endpoints)
			all = append(all, b)
		}
		return nil
	})
	return all, err
}

func (s memoryMembership) Watch(ctx context.Context) (election.Watch, error) {
	return s.c.watch(ctx, func(k election.ChangeKind) bool { return k == election.BrokersChanged })
}

type memoryRegistration struct {
	member *memoryMember
	broker election.Broker
	lost   chan struct{}
}

func (m *Memory) endRegistration(r *memoryRegistration) {
	if m.alive[r.broker.ID] == r {
		delete(m.alive, r.broker.ID)
		close(r.lost)
		m.tell(election.Change{Kind: election.BrokersChanged})
	}
}

func (r *memoryRegistration) Epoch() int64          { return r.broker.Epoch }
func (r *memoryRegistration) Lost() <-chan struct{} { return r.lost }
func (r *memoryRegistration) Leave(context.Context) error {
	r.member.m.mu.Lock()
	defer r.member.m.mu.Unlock()
	r.member.m.endRegistration(r)
	return nil
}

// memoryWatch implements election.Watch.
type memoryWatch struct {
	*election.Changes
	member *memoryMember
	wants  func(election.ChangeKind) bool
}

func (c *memoryMember) watch(ctx context.Context, wants func(election.ChangeKind) bool) (election.Watch, error) {
	w := &memoryWatch{Changes: election.NewChanges(), member: c, wants: wants}
	err := c.do(ctx, func(m *Memory) error { m.watches[w] = true; return nil })
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (m *Memory) tell(ch election.Change) {
	for w := range m.watches {
		if w.wants(ch.Kind) {
			w.Add(ch)
		}
	}
}

func (w *memoryWatch) Close() {
	w.member.m.mu.Lock()
	delete(w.member.m.watches, w)
	w.member.m.mu.Unlock()
	w.End()
}

type memoryMetadata struct{ c *memoryMember }

// write does a controller's write of items one by one.
func (s memoryMetadata) write(ctx context.Context, method string, epoch int32, items int, one func(m *Memory, i int) error) ([]error, error) {
	if s.c.m.Before != nil {
		if err := s.c.m.Before(method); err != nil {
			return nil, err
		}
	}
	errs := make([]error, items)
	err := s.c.do(ctx, func(m *Memory) error {
		if m.term == nil || m.term.epoch != epoch {
			return election.ErrStaleController
		}
		for i := range errs {
			errs[i] = one(m, i)
		}
		return nil
	})
	if err == nil && s.c.m.After != nil {
		err = s.c.m.After(method)
	}
	if err != nil {
		return nil, err
	}
	return errs, nil
}

func cloneAssignment(a election.Assignment) election.Assignment {
	return election.Assignment{Replicas: slices.Clone(a.Replicas), Adding: slices.Clone(a.Adding), Removing: slices.Clone(a.Removing)}
}

func cloneTopic(t election.Topic) election.Topic {
	t.Partitions = slices.Clone(t.Partitions)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		p.Assignment = cloneAssignment(p.Assignment)
		if p.State != nil {
			st := *p.State
			st.ISR = slices.Clone(st.ISR)
			p.State = &st
		}
	}
	return t
}

func (s memoryMetadata) Topics(ctx context.Context, names ...string) (all []election.Topic, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		for _, name := range slices.Sorted(maps.Keys(m.topics)) {
			if len(names) == 0 || slices.Contains(names, name) {
				all = append(all, cloneTopic(m.topics[name]))
			}
		}
		return nil
	})
	return all, err
}

func (s memoryMetadata) Configs(ctx context.Context, entities ...election.Entity) (all []election.Config, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		if len(entities) == 0 {
			entities = slices.SortedFunc(maps.Keys(m.configs), func(a, b election.Entity) int {
				return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
			})
		}
		for _, e := range entities {
			c := m.configs[e]
			all = append(all, election.Config{Entity: e, Values: maps.Clone(c.Values), Version: c.Version})
		}
		return nil
	})
	return all, err
}

func (s memoryMetadata) Watch(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if len(kinds) == 0 {
		kinds = []election.ChangeKind{election.TopicChanged, election.ConfigChanged}
	}
	kinds = slices.Clone(kinds)
	return s.c.watch(ctx, func(k election.ChangeKind) bool { return slices.Contains(kinds, k) })
}

// PutTopic writes a topic past the contract, as whoever else writes to a coordination can: without an id, for one.
func (m *Memory) PutTopic(t election.Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.topics[t.Name] = cloneTopic(t)
	m.tellTopic(t.Name)
}

func (m *Memory) tellTopic(name string) {
	m.tell(election.Change{Kind: election.TopicChanged, Topic: name})
}

func (m *Memory) setConfig(e election.Entity, values map[string]string) {
	m.version++
	if delete(m.configs, e); len(values) > 0 {
		m.configs[e] = election.Config{Entity: e, Values: maps.Clone(values), Version: m.version}
	}
	m.tell(election.Change{Kind: election.ConfigChanged, Entity: e})
}

func isText(name string, values map[string]string) bool {
	for k, v := range values {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return false
		}
	}
	return utf8.ValidString(name)
}

func (s memoryMetadata) CreateTopics(ctx context.Context, epoch int32, topics []election.NewTopic) ([]error, error) {
	return s.write(ctx, "CreateTopics", epoch, len(topics), func(m *Memory, i int) error {
		in := &topics[i]
		if in.Name == "" || in.ID == (election.TopicID{}) || len(in.Partitions) == 0 || !isText(in.Name, in.Config) {
			return election.ErrInvalid
		}
		if _, ok := m.topics[in.Name]; ok {
			return election.ErrTopicExists
		}
		t := election.Topic{Name: in.Name, ID: in.ID, Partitions: make([]election.Partition, len(in.Partitions))}
		for n := range in.Partitions {
			t.Partitions[n].Assignment = cloneAssignment(in.Partitions[n])
		}
		m.topics[in.Name] = t
		m.tellTopic(in.Name)
		m.setConfig(election.Entity{Kind: election.TopicEntity, Name: in.Name}, in.Config)
		return nil
	})
}

func (s memoryMetadata) SetAssignments(ctx context.Context, epoch int32, assignments []election.TopicAssignment) ([]error, error) {
	return s.write(ctx, "SetAssignments", epoch, len(assignments), func(m *Memory, i int) error {
		in := &assignments[i]
		t, ok := m.topics[in.Topic]
		if !ok || t.ID != (election.TopicID{}) && t.ID != in.ID {
			return election.ErrUnknownTopic
		}
		if len(in.Partitions) < len(t.Partitions) {
			return election.ErrInvalid
		}
		parts := make([]election.Partition, len(in.Partitions))
		copy(parts, t.Partitions)
		for n := range parts {
			parts[n].Assignment = cloneAssignment(in.Partitions[n])
		}
		t.ID, t.Partitions = in.ID, parts
		m.topics[in.Topic] = t
		m.tellTopic(in.Topic)
		return nil
	})
}

func (s memoryMetadata) UpdatePartitions(ctx context.Context, epoch int32, updates []election.PartitionUpdate) ([]election.PartitionResult, error) {
	results := make([]election.PartitionResult, len(updates))
	errs, err := s.write(ctx, "UpdatePartitions", epoch, len(updates), func(m *Memory, i int) error {
		u := &updates[i]
		t, ok := m.topics[u.Topic]
		if !ok {
			return election.ErrUnknownTopic
		}
		if u.Partition < 0 || int(u.Partition) >= len(t.Partitions) {
			return election.ErrUnknownPartition
		}
		have := int32(-1)
		if st := t.Partitions[u.Partition].State; st != nil {
			have = st.PartitionEpoch
		}
		if u.State.PartitionEpoch != have {
			return election.ErrConflict
		}
		st := u.State
		st.ISR = slices.Clone(st.ISR)
		st.PartitionEpoch++
		t.Partitions[u.Partition].State = &st
		results[i].PartitionEpoch = st.PartitionEpoch
		m.tellTopic(u.Topic)
		return nil
	})
	for i, e := range errs {
		results[i].Err = e
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (s memoryMetadata) MarkDeleted(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	return s.write(ctx, "MarkDeleted", epoch, len(topics), func(m *Memory, i int) error {
		t, ok := m.topics[topics[i]]
		if !ok {
			return election.ErrUnknownTopic
		}
		t.Deleting = true
		m.topics[topics[i]] = t
		m.tellTopic(topics[i])
		return nil
	})
}

func (s memoryMetadata) RemoveTopics(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	return s.write(ctx, "RemoveTopics", epoch, len(topics), func(m *Memory, i int) error {
		t, ok := m.topics[topics[i]]
		if ok && !t.Deleting {
			return election.ErrInvalid
		}
		if ok {
			delete(m.topics, topics[i])
			m.tellTopic(topics[i])
			m.setConfig(election.Entity{Kind: election.TopicEntity, Name: topics[i]}, nil)
		}
		return nil
	})
}

func (s memoryMetadata) SetConfigs(ctx context.Context, epoch int32, configs []election.Config) ([]error, error) {
	return s.write(ctx, "SetConfigs", epoch, len(configs), func(m *Memory, i int) error {
		in := &configs[i]
		_, exists := m.topics[in.Entity.Name]
		switch {
		case in.Entity.Kind != election.TopicEntity && in.Entity.Kind != election.BrokerEntity,
			in.Entity.Kind == election.TopicEntity && in.Entity.Name == "", !isText(in.Entity.Name, in.Values):
			return election.ErrInvalid
		case in.Entity.Kind == election.TopicEntity && !exists:
			return election.ErrUnknownTopic
		case in.Version != m.configs[in.Entity].Version:
			return election.ErrConflict
		}
		m.setConfig(in.Entity, in.Values)
		return nil
	})
}

func (s memoryMetadata) ProducerIDs(ctx context.Context, id int32, from int64) (block election.ProducerIDBlock, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		if id < 0 || from < 0 {
			return election.ErrInvalid
		}
		m.producerID = max(m.producerID, from)
		block = election.ProducerIDBlock{First: m.producerID, Count: 1000}
		m.producerID += 1000
		return nil
	})
	return block, err
}
