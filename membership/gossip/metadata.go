package gossip

import (
	"context"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// metadata implements election.Metadata: a write is one command, and the state machine says what it does.
type metadata struct{ c *coordination }

func (m metadata) Topics(ctx context.Context, names ...string) (topics []election.Topic, err error) {
	err = m.c.read(ctx, func(s *machine.Machine) { topics = s.Kept().ListTopics(names...) })
	return topics, err
}

func (m metadata) Configs(ctx context.Context, entities ...election.Entity) (configs []election.Config, err error) {
	err = m.c.read(ctx, func(s *machine.Machine) { configs = s.Kept().ListConfigs(entities...) })
	return configs, err
}

func (m metadata) Watch(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if len(kinds) == 0 {
		kinds = []election.ChangeKind{election.TopicChanged, election.ConfigChanged}
	}
	return m.c.watch(ctx, kinds...)
}

// items does a controller's write of n items. Those that refuse has something to say about, which is nil or an error in their result, don't
// get into the command: it is text, and would alter what is none (0.7). add puts an item into the command.
func (c *coordination) items(ctx context.Context, epoch int32, n int, refuse func(i int) (err error, refused bool), add func(command *machine.Command, i int)) ([]error, []int32, error) {
	command, results := &machine.Command{Epoch: epoch}, make([]error, n)
	var sent []int
	for i := range n {
		if err, refused := refuse(i); refused {
			results[i] = err
			continue
		}
		sent = append(sent, i)
		add(command, i)
	}
	command.Nothing = len(sent) == 0
	r, err := c.write(ctx, command)
	if err != nil {
		return nil, nil, err
	}
	if len(r.Items) != len(sent) && len(sent) > 0 {
		return nil, nil, fmt.Errorf("memberlist: %w: %d results for %d items", election.ErrUnavailable, len(r.Items), len(sent))
	}
	epochs := make([]int32, n)
	for at, i := range sent {
		results[i] = r.Items[at]
		if at < len(r.Epochs) {
			epochs[i] = r.Epochs[at]
		}
	}
	return results, epochs, nil
}

// unless refuses with err what isn't text.
func unless(text bool, err error, name string) (error, bool) {
	if text {
		return nil, false
	}
	if err != nil {
		err = fmt.Errorf("memberlist: %w: %q", err, name)
	}
	return err, true
}

func (m metadata) CreateTopics(ctx context.Context, epoch int32, topics []election.NewTopic) ([]error, error) {
	results, _, err := m.c.items(ctx, epoch, len(topics), func(i int) (error, bool) {
		return unless(state.IsText(topics[i].Name, topics[i].Config), election.ErrInvalid, topics[i].Name)
	}, func(command *machine.Command, i int) {
		t := &topics[i]
		command.CreateTopics = append(command.CreateTopics, machine.NewTopic{TopicOp: *state.NewTopicOp(t.Name, t.ID, t.Partitions), Config: t.Config})
	})
	return results, err
}

func (m metadata) SetAssignments(ctx context.Context, epoch int32, assignments []election.TopicAssignment) ([]error, error) {
	results, _, err := m.c.items(ctx, epoch, len(assignments), func(i int) (error, bool) {
		return unless(state.IsText(assignments[i].Topic, nil), election.ErrUnknownTopic, assignments[i].Topic)
	}, func(command *machine.Command, i int) {
		a := &assignments[i]
		command.SetAssignments = append(command.SetAssignments, *state.NewTopicOp(a.Topic, a.ID, a.Partitions))
	})
	return results, err
}

func (m metadata) UpdatePartitions(ctx context.Context, epoch int32, updates []election.PartitionUpdate) ([]election.PartitionResult, error) {
	errs, epochs, err := m.c.items(ctx, epoch, len(updates), func(i int) (error, bool) {
		return unless(state.IsText(updates[i].Topic, nil), election.ErrUnknownTopic, updates[i].Topic)
	}, func(command *machine.Command, i int) {
		u := &updates[i]
		command.UpdatePartitions = append(command.UpdatePartitions, *state.NewStateOp(u.Topic, u.Partition, u.State))
	})
	if err != nil {
		return nil, err
	}
	results := make([]election.PartitionResult, len(updates))
	for i := range results {
		results[i] = election.PartitionResult{PartitionEpoch: epochs[i], Err: errs[i]}
	}
	return results, nil
}

// names does a controller's write of topics by name. What isn't text is no topic's name.
func (c *coordination) names(ctx context.Context, epoch int32, names []string, unknown error, into func(*machine.Command) *[]string) ([]error, error) {
	results, _, err := c.items(ctx, epoch, len(names), func(i int) (error, bool) {
		return unless(state.IsText(names[i], nil), unknown, names[i])
	}, func(command *machine.Command, i int) {
		list := into(command)
		*list = append(*list, names[i])
	})
	return results, err
}

func (m metadata) MarkDeleted(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	return m.c.names(ctx, epoch, topics, election.ErrUnknownTopic, func(c *machine.Command) *[]string { return &c.MarkDeleted })
}

func (m metadata) RemoveTopics(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	return m.c.names(ctx, epoch, topics, nil, func(c *machine.Command) *[]string { return &c.RemoveTopics })
}

func (m metadata) SetConfigs(ctx context.Context, epoch int32, configs []election.Config) ([]error, error) {
	results, _, err := m.c.items(ctx, epoch, len(configs), func(i int) (error, bool) {
		return unless(state.IsText(configs[i].Entity.Name, configs[i].Values), election.ErrInvalid, configs[i].Entity.Name)
	}, func(command *machine.Command, i int) {
		command.SetConfigs = append(command.SetConfigs, *state.NewConfigOp(configs[i]))
	})
	return results, err
}

func (m metadata) ProducerIDs(ctx context.Context, brokerID int32, from int64) (election.ProducerIDBlock, error) {
	r, err := m.c.write(ctx, &machine.Command{ProducerIDs: &machine.ProducerIDs{Broker: brokerID, From: from}})
	if err != nil {
		return election.ProducerIDBlock{}, err
	}
	return election.ProducerIDBlock{First: r.Number, Count: r.Count}, nil
}
