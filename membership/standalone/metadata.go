package standalone

import (
	"context"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// metadata implements election.Metadata: package state says what each write does, and the journal keeps it.
type metadata struct{ c *coordination }

func (m metadata) Topics(ctx context.Context, names ...string) (topics []election.Topic, err error) {
	err = m.c.read(ctx, func() { topics = m.c.state.ListTopics(names...) })
	return topics, err
}

func (m metadata) Configs(ctx context.Context, entities ...election.Entity) (configs []election.Config, err error) {
	err = m.c.read(ctx, func() { configs = m.c.state.ListConfigs(entities...) })
	return configs, err
}

func (m metadata) Watch(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if len(kinds) == 0 {
		kinds = []election.ChangeKind{election.TopicChanged, election.ConfigChanged}
	}
	kinds = slices.Clone(kinds)
	return m.c.watch(ctx, func(k election.ChangeKind) bool { return slices.Contains(kinds, k) })
}

func (m metadata) CreateTopics(ctx context.Context, epoch int32, topics []election.NewTopic) (results []error, err error) {
	err = m.c.controllerWrite(ctx, epoch, func() (ops []state.Op) {
		ops, results = m.c.state.CreateTopics(topics)
		return ops
	})
	return outcome(results, err)
}

// prefixed says whose error it is.
func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("standalone: %w", err)
}

// outcome gives the results of items when the call as a whole went well.
func outcome[R any](results []R, err error) ([]R, error) {
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (m metadata) SetAssignments(ctx context.Context, epoch int32, assignments []election.TopicAssignment) (results []error, err error) {
	err = m.c.controllerWrite(ctx, epoch, func() (ops []state.Op) {
		ops, results = m.c.state.SetAssignments(assignments)
		return ops
	})
	return outcome(results, err)
}

func (m metadata) UpdatePartitions(ctx context.Context, epoch int32, updates []election.PartitionUpdate) (results []election.PartitionResult, err error) {
	err = m.c.controllerWrite(ctx, epoch, func() (ops []state.Op) {
		ops, results = m.c.state.UpdatePartitions(updates)
		return ops
	})
	return outcome(results, err)
}

func (m metadata) MarkDeleted(ctx context.Context, epoch int32, topics []string) (results []error, err error) {
	err = m.c.controllerWrite(ctx, epoch, func() (ops []state.Op) {
		ops, results = m.c.state.MarkDeleted(topics)
		return ops
	})
	return outcome(results, err)
}

func (m metadata) RemoveTopics(ctx context.Context, epoch int32, topics []string) (results []error, err error) {
	err = m.c.controllerWrite(ctx, epoch, func() (ops []state.Op) {
		ops, results = m.c.state.RemoveTopics(topics)
		return ops
	})
	return outcome(results, err)
}

func (m metadata) SetConfigs(ctx context.Context, epoch int32, configs []election.Config) (results []error, err error) {
	err = m.c.controllerWrite(ctx, epoch, func() (ops []state.Op) {
		ops, results = m.c.state.SetConfigs(configs)
		return ops
	})
	return outcome(results, err)
}

func (m metadata) ProducerIDs(ctx context.Context, brokerID int32, from int64) (block election.ProducerIDBlock, err error) {
	err = m.c.write(ctx, func() (ops []state.Op, err error) {
		ops, block, err = m.c.state.ProducerIDs(brokerID, from)
		return ops, prefixed(err)
	}, nil)
	if err != nil {
		return election.ProducerIDBlock{}, err
	}
	return block, nil
}
