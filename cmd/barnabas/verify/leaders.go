package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// everyLeader makes each replica of each partition its leader in turn, by putting it first in the order of preference, and
// calls then with the layout after each turn. The last turn puts back the order that was.
func (c *cluster) everyLeader(ctx context.Context, topic string, then func(layout) error) error {
	l, err := c.layout(ctx, topic)
	if err != nil {
		return err
	}
	turns := 0
	for _, p := range l.partitions {
		turns = max(turns, len(p.replicas))
	}
	for turn := 1; turn <= turns; turn++ {
		now, err := c.turn(ctx, topic, l, turn)
		if err != nil {
			return fmt.Errorf("move the leaders of %s: %w", topic, err)
		}
		if err := then(now); err != nil {
			return err
		}
	}
	return nil
}

// turn moves each partition's first replicas to the end of its order, elects, and waits until the first ones lead.
func (c *cluster) turn(ctx context.Context, topic string, l layout, by int) (layout, error) {
	var assign kadm.AlterPartitionAssignmentsReq
	var set kadm.TopicsSet
	want := make([][]int32, len(l.partitions))
	for i, p := range l.partitions {
		n := by % len(p.replicas)
		want[i] = append(slices.Clone(p.replicas[n:]), p.replicas[:n]...)
		assign.Assign(topic, int32(i), want[i])
		set.Add(topic, int32(i))
	}
	for {
		now, err := c.tryTurn(ctx, topic, assign, set, want)
		if err == nil {
			return now, nil
		}
		if wait(ctx, 300*time.Millisecond) != nil {
			return now, err
		}
	}
}

func (c *cluster) tryTurn(ctx context.Context, topic string, assign kadm.AlterPartitionAssignmentsReq, set kadm.TopicsSet, want [][]int32) (layout, error) {
	now, err := c.layout(ctx, topic)
	if err != nil {
		return now, err
	}
	ordered, led := true, true
	for i, p := range now.partitions {
		ordered = ordered && slices.Equal(p.replicas, want[i])
		led = led && p.leader == want[i][0]
	}
	switch {
	case !ordered:
		answers, err := c.admin.AlterPartitionAssignments(ctx, assign)
		if err = errors.Join(err, answers.Error()); err != nil {
			return now, fmt.Errorf("order replicas: %w", err)
		}
	case !led:
		answers, err := c.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, set)
		for _, partitions := range answers {
			for _, answer := range partitions {
				if !errors.Is(answer.Err, kerr.ElectionNotNeeded) {
					err = errors.Join(err, answer.Err)
				}
			}
		}
		if err != nil {
			return now, fmt.Errorf("elect leaders: %w", err)
		}
	default:
		return now, nil
	}
	return now, errors.New("the cluster took the order, and the leaders are not there yet")
}
