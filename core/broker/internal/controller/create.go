package controller

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/election"
)

// createTopics checks the topics of a command, and writes those that are well.
func (m *Machine) createTopics(c *CreateTopics) []Effect {
	c.Results = make([]CreatedTopic, len(c.Topics))
	var w WriteTopics
	seen := map[string]bool{}
	left := maxPartitions // of all topics together
	for i := range c.Topics {
		in, out := &c.Topics[i], &c.Results[i]
		assignments, err := m.plan(in, left)
		if err == nil && seen[in.Name] {
			err = refuse(kerr.TopicAlreadyExists, "Topic '%s' is in the request twice.", in.Name)
		}
		if out.Err = err; err != nil {
			continue
		}
		seen[in.Name] = true
		left -= len(assignments)
		out.Partitions, out.ReplicationFactor = int32(len(assignments)), int16(len(assignments[0].Replicas))
		if c.ValidateOnly {
			continue
		}
		out.ID = m.rules.NewID()
		config := in.Config
		if in.AtMostAlive {
			config = attainable(config, int(out.ReplicationFactor))
		}
		w.Topics = append(w.Topics, election.NewTopic{Name: in.Name, ID: out.ID, Partitions: assignments, Config: config})
		w.slots = append(w.slots, &out.Err)
	}
	if len(w.Topics) == 0 {
		return nil
	}
	return []Effect{w}
}

// attainable is a configuration whose min.insync.replicas a topic with so many replicas can reach.
func attainable(config map[string]string, replicas int) map[string]string {
	const key = "min.insync.replicas"
	if n, err := strconv.Atoi(config[key]); err != nil || n <= replicas {
		return config
	}
	config = maps.Clone(config)
	config[key] = strconv.Itoa(replicas)
	return config
}

// plan checks a new topic, of at most so many partitions, and says where its replicas go. The order of the checks is Kafka's.
func (m *Machine) plan(in *NewTopic, most int) ([]election.Assignment, error) {
	if t := m.topics[in.Name]; t != nil {
		if t.deleting {
			return nil, refuse(kerr.TopicAlreadyExists, "Topic '%s' is marked for deletion.", in.Name)
		}
		return nil, refuse(kerr.TopicAlreadyExists, "Topic '%s' already exists.", in.Name)
	}
	assignments, err := m.place(in, most)
	if err != nil {
		return nil, err
	}
	if err := CheckTopicName(in.Name); err != nil {
		return nil, err
	}
	if name, ok := m.unified[unified(in.Name)]; ok {
		return nil, refuse(kerr.InvalidTopicException, "Topic '%s' collides with existing topic %s: they differ in dots and underscores only", in.Name, name)
	}
	if err := m.rules.CheckConfig(in.Config); err != nil {
		return nil, err
	}
	return assignments, nil
}

// place chooses or checks the replicas of a new topic.
func (m *Machine) place(in *NewTopic, most int) ([]election.Assignment, error) {
	if len(in.Manual) == 0 {
		partitions, factor := int(in.Partitions), int(in.ReplicationFactor)
		if partitions == -1 {
			partitions = int(m.rules.Partitions)
		}
		if factor == -1 {
			factor = int(m.rules.ReplicationFactor)
		}
		if partitions > most {
			return nil, tooMany()
		}
		brokers := m.candidates()
		if in.AtMostAlive {
			factor = min(factor, len(brokers))
		}
		return assign(brokers, 0, partitions, factor, m.draw(len(brokers)), m.draw(len(brokers)))
	}
	if in.Partitions != -1 || in.ReplicationFactor != -1 {
		return nil, refuse(kerr.InvalidRequest, "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time.")
	}
	parts := slices.SortedStableFunc(slices.Values(in.Manual), func(a, b ManualPartition) int { return cmp.Compare(a.Partition, b.Partition) })
	lists := make([][]int32, len(parts))
	for i, p := range parts {
		if p.Partition < 0 {
			// What Kafka 3.9 answers here: it trips over the number.
			return nil, kerr.UnknownServerError
		}
		if int(p.Partition) != i {
			return nil, refuse(kerr.InvalidReplicaAssignment, "Partitions should be a consecutive 0-based integer sequence: partition %d stands where %d should", p.Partition, i)
		}
		lists[i] = p.Replicas
	}
	return checkManual(0, lists)
}

func (m *Machine) draw(n int) int {
	if n < 1 {
		return 0
	}
	return m.rules.Draw(n)
}

// candidates are the living brokers that aren't about to stop, or all living ones when they all are.
func (m *Machine) candidates() []candidate {
	var all, staying []candidate
	for id, b := range m.brokers {
		all = append(all, candidate{id, b.Rack})
		if m.stopping[id] == nil {
			staying = append(staying, candidate{id, b.Rack})
		}
	}
	if len(staying) == 0 {
		return all
	}
	return staying
}

// topicsWritten takes in what was created. Its partitions are New, and get a state next.
func (m *Machine) topicsWritten(ev topicsWritten) {
	for i := range ev.Topics {
		in := &ev.Topics[i]
		if err := ev.errs[i]; err != nil {
			*ev.slots[i] = metadataError(err)
			continue
		}
		t := election.Topic{Name: in.Name, ID: in.ID, Partitions: make([]election.Partition, len(in.Partitions))}
		for n, a := range in.Partitions {
			t.Partitions[n].Assignment = a
		}
		m.adopt(&t)
	}
}

// metadataError says with Kafka's error why a write of one item wasn't done.
func metadataError(err error) error {
	switch {
	case errors.Is(err, election.ErrTopicExists):
		return refuse(kerr.TopicAlreadyExists, "Topic already exists.")
	case errors.Is(err, election.ErrUnknownTopic), errors.Is(err, election.ErrUnknownPartition):
		return refuse(kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
	case errors.Is(err, election.ErrConflict):
		return refuse(kerr.InvalidUpdateVersion, "It was changed by somebody else.")
	case errors.Is(err, election.ErrInvalid):
		return refuse(kerr.InvalidRequest, "It cannot be stored: %v", err)
	}
	return err
}

// createPartitions checks the topics of a command, and writes the longer assignments of those that are well.
func (m *Machine) createPartitions(c *CreatePartitions) []Effect {
	c.Results = make([]error, len(c.Topics))
	var w WriteAssignments
	left := maxPartitions // of all topics together
	for i := range c.Topics {
		more, err := m.grow(&c.Topics[i], left)
		if c.Results[i] = err; err != nil {
			continue
		}
		if left -= len(more); c.ValidateOnly {
			continue
		}
		t := m.topics[c.Topics[i].Topic]
		w.Assignments = append(w.Assignments, election.TopicAssignment{Topic: t.name, ID: t.id, Partitions: append(t.assignments(), more...)})
		w.slots = append(w.slots, []*error{&c.Results[i]})
	}
	if len(w.Assignments) == 0 {
		return nil
	}
	return []Effect{w}
}

// grow says where the new partitions of a topic go, of which there may be so many at most.
func (m *Machine) grow(in *MorePartitions, most int) ([]election.Assignment, error) {
	t := m.topics[in.Topic]
	if t == nil || t.deleting {
		return nil, refuse(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", in.Topic)
	}
	for i := range t.parts {
		if t.parts[i].reassigning() {
			return nil, refuse(kerr.ReassignmentInProgress, "A partition reassignment is in progress for the topic '%s'.", in.Topic)
		}
	}
	have := len(t.parts)
	switch {
	case in.Count == int32(have):
		return nil, refuse(kerr.InvalidPartitions, "Topic already has %d partitions.", have)
	case in.Count < int32(have):
		return nil, refuse(kerr.InvalidPartitions, "Topic currently has %d partitions, which is higher than the requested %d.", have, in.Count)
	case in.Count > maxPartitions || int(in.Count)-have > most:
		return nil, tooMany()
	}
	adding, factor := int(in.Count)-have, len(t.parts[0].assignment.Replicas)
	if in.Manual == nil {
		// It goes on where partition 0 begins, or would if that broker were there: so a topic that grows is spread as if it
		// had been created with all its partitions, save for the shift.
		brokers := m.candidates()
		start := 0
		if factor > 0 {
			first := t.parts[0].assignment.Replicas[0]
			slices.SortFunc(brokers, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
			start = max(0, slices.IndexFunc(brokers, func(b candidate) bool { return b.id >= first }))
		}
		return assign(brokers, have, adding, factor, start, start)
	}
	if len(in.Manual) != adding {
		return nil, refuse(kerr.InvalidReplicaAssignment, "Increasing the number of partitions by %d but %d assignments provided.", adding, len(in.Manual))
	}
	for _, replicas := range in.Manual {
		if len(replicas) != factor {
			return nil, refuse(kerr.InvalidReplicaAssignment, "Inconsistent replication factor: the topic has %d replicas, an assignment %d.", factor, len(replicas))
		}
		for _, id := range replicas {
			if !m.alive(id) {
				return nil, refuse(kerr.InvalidReplicaAssignment, "Unknown broker(s) in replica assignment: %d.", id)
			}
		}
	}
	return checkManual(have, in.Manual)
}

// maxPartitions bounds what one topic may have, and one request may make: each partition costs memory and files, and a count near the
// end of int32 would ask for all there is.
const maxPartitions = 1_000_000

func tooMany() error {
	return refuse(kerr.InvalidPartitions, "A topic cannot have more than %d partitions, nor a request make more.", maxPartitions)
}

func (t *topic) assignments() []election.Assignment {
	all := make([]election.Assignment, len(t.parts))
	for i := range t.parts {
		all[i] = t.parts[i].assignment
	}
	return all
}

// assignmentsWritten takes in assignments: new partitions, and moves that began or ended.
func (m *Machine) assignmentsWritten(ev assignmentsWritten) []Effect {
	var reread Reread
	for i := range ev.Assignments {
		in := &ev.Assignments[i]
		t := m.topics[in.Topic]
		if err := ev.errs[i]; err != nil || t == nil || t.id != in.ID {
			for _, slot := range ev.slots[i] {
				*slot = metadataError(err)
			}
			reread.Topics = append(reread.Topics, in.Topic)
			continue
		}
		for n, a := range in.Partitions {
			m.reassigned(t, int32(n), a)
		}
	}
	if len(reread.Topics) == 0 {
		return nil
	}
	return []Effect{reread}
}
