package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// metadata implements election.Metadata.
type metadata struct{ c *coordination }

func (m metadata) Watch(ctx context.Context, kinds ...election.ChangeKind) (election.Watch, error) {
	if len(kinds) == 0 {
		kinds = []election.ChangeKind{election.TopicChanged, election.ConfigChanged}
	}
	return m.c.hub.open(ctx, kinds...)
}

func (m metadata) Topics(ctx context.Context, names ...string) (topics []election.Topic, err error) {
	err = m.c.read(ctx, "topics", func(ctx context.Context, s *session) error {
		topics, err = m.c.topics(ctx, s, names)
		return err
	})
	return topics, err
}

// topics reads topics: those with these names, or all.
func (c *coordination) topics(ctx context.Context, s *session, names []string) ([]election.Topic, error) {
	if names = slices.Clone(names); len(names) == 0 {
		var err error
		if names, err = s.children(ctx, topicsPath); err != nil {
			if errors.Is(err, zk.ErrNoNode) {
				return nil, nil
			}
			return nil, err
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !isName(name) })
	marked, err := s.children(ctx, deletionsPath)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	slices.Sort(marked)

	found, errs := make([]*election.Topic, len(names)), make([]error, len(names))
	each(len(names), func(i int) {
		n, err := s.get(ctx, topicPath(names[i]))
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		if errs[i] = err; err != nil {
			return
		}
		t, err := znode.DecodeTopic(n.data)
		if err != nil || len(t.Partitions) == 0 {
			c.log.Warn("a topic whose node can't be read is left out", "topic", names[i], "error", err)
			return
		}
		_, deleting := slices.BinarySearch(marked, names[i])
		topic := &election.Topic{Name: names[i], ID: t.ID, Deleting: deleting, Partitions: make([]election.Partition, len(t.Partitions))}
		for p, a := range t.Partitions {
			topic.Partitions[p].Assignment = a
		}
		found[i] = topic
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var topics []election.Topic
	for _, t := range found {
		if t != nil {
			topics = append(topics, *t)
		}
	}
	return topics, c.states(ctx, s, topics)
}

// place is where a state belongs.
type place struct {
	topic     *election.Topic
	partition int
}

// states reads the states of all partitions of topics.
func (c *coordination) states(ctx context.Context, s *session, topics []election.Topic) error {
	var places []place
	for i := range topics {
		for p := range topics[i].Partitions {
			places = append(places, place{&topics[i], p})
		}
	}
	errs := make([]error, len(places))
	each(len(places), func(i int) {
		at := places[i]
		path := statePath(at.topic.Name, int32(at.partition))
		n, err := s.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		if errs[i] = err; err != nil {
			return
		}
		st, err := znode.DecodeState(n.data, n.stat.Version)
		if err != nil {
			c.log.Warn("a partition's state can't be read; the partition is offline", "topic", at.topic.Name, "partition", at.partition, "error", err)
			st = election.PartitionState{Leader: election.NoBroker, ISR: []int32{}, PartitionEpoch: n.stat.Version} // nobody can be elected from it
		}
		at.topic.Partitions[at.partition].State = &st
	})
	return errors.Join(errs...)
}

// text says whether a name and a configuration are UTF-8, which is all that JSON can keep.
func text(config map[string]string) bool {
	for k, v := range config {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return false
		}
	}
	return true
}

func (m metadata) CreateTopics(ctx context.Context, epoch int32, topics []election.NewTopic) ([]error, error) {
	results := make([]error, len(topics))
	err := m.c.controllerWrite(ctx, epoch, "create topics", func(ctx context.Context, t *term) error {
		s, seen := t.session, map[string]bool{}
		var items []*item
		for i := range topics {
			in := &topics[i]
			switch {
			case !isName(in.Name) || in.ID == election.TopicID{} || len(in.Partitions) == 0 || !text(in.Config):
				results[i] = invalid("topic %q with %d partitions", in.Name, len(in.Partitions))
				continue
			case seen[in.Name]:
				results[i] = fmt.Errorf("zookeeper: %w: %q", election.ErrTopicExists, in.Name)
				continue
			}
			seen[in.Name] = true
			items = append(items, m.c.creation(s, in, &results[i]))
		}
		return t.apply(ctx, items, false)
	})
	return outcomes(results, err)
}

// creation makes the item that creates a topic and its configuration. One that a topic of the same name has left behind is replaced.
func (c *coordination) creation(s *session, in *election.NewTopic, result *error) *item {
	config, path := znode.EncodeConfig(in.Config), topicConfig(in.Name)
	node := &zk.CreateRequest{Path: s.path(topicPath(in.Name)), Data: znode.EncodeTopic(znode.Topic{ID: in.ID, Partitions: in.Partitions}), Acl: c.acl(topicPath(in.Name))}
	it := &item{done: func([]zk.MultiResponse) {}}
	it.ops = []any{&zk.CreateRequest{Path: s.path(path), Data: config, Acl: c.acl(path)}, node}
	it.refused = func(op int, word error) bool {
		switch {
		case op == 0 && errors.Is(word, zk.ErrNodeExists):
			it.ops[0] = &zk.SetDataRequest{Path: s.path(path), Data: config, Version: -1}
			return true
		case op == 0 && errors.Is(word, zk.ErrNoNode) && len(it.ops) == 2 && isSet(it.ops[0]):
			it.ops[0] = &zk.CreateRequest{Path: s.path(path), Data: config, Acl: c.acl(path)}
			return true
		}
		*result = refusal("topic "+strconv.Quote(in.Name), word, map[error]error{zk.ErrNodeExists: election.ErrTopicExists})
		return false
	}
	return it
}

func isSet(op any) bool { _, ok := op.(*zk.SetDataRequest); return ok }

// outcomes gives the results of items when the call as a whole went well.
func outcomes[R any](results []R, err error) ([]R, error) {
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (m metadata) SetAssignments(ctx context.Context, epoch int32, assignments []election.TopicAssignment) ([]error, error) {
	results := make([]error, len(assignments))
	err := m.c.controllerWrite(ctx, epoch, "set assignments", func(ctx context.Context, t *term) error {
		todo := make([]int, len(assignments))
		for i := range todo {
			todo[i] = i
		}
		for len(todo) > 0 {
			var err error
			if todo, err = m.assign(ctx, t, assignments, results, todo); err != nil {
				return err
			}
		}
		return nil
	})
	return outcomes(results, err)
}

// assign tries to set the assignments in todo, and returns those that somebody else's write was in the way of. Two of one topic are
// done one after the other.
func (m metadata) assign(ctx context.Context, t *term, assignments []election.TopicAssignment, results []error, todo []int) (again []int, err error) {
	var now []int
	seen := map[string]bool{}
	for _, i := range todo {
		if topic := assignments[i].Topic; seen[topic] {
			again = append(again, i)
		} else {
			seen[topic] = true
			now = append(now, i)
		}
	}
	items, errs := make([]*item, len(now)), make([]error, len(now))
	raced := make([]bool, len(now))
	each(len(now), func(k int) {
		in, result := &assignments[now[k]], &results[now[k]]
		what := fmt.Sprintf("topic %q", in.Topic)
		if !isName(in.Topic) {
			*result = fmt.Errorf("zookeeper: %s: %w", what, election.ErrUnknownTopic)
			return
		}
		path := topicPath(in.Topic)
		n, err := t.session.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			*result = fmt.Errorf("zookeeper: %s: %w", what, election.ErrUnknownTopic)
			return
		}
		if errs[k] = err; err != nil {
			return
		}
		have, err := znode.DecodeTopic(n.data)
		switch {
		case err != nil:
			*result = fmt.Errorf("zookeeper: %s: %w: %w", what, election.ErrUnknownTopic, err)
			return
		case have.ID != in.ID && have.ID != (election.TopicID{}):
			*result = fmt.Errorf("zookeeper: %s: %w with the id %s", what, election.ErrUnknownTopic, znode.FormatID(in.ID))
			return
		case len(in.Partitions) < len(have.Partitions):
			*result = invalid("%d partitions for topic %q, which has %d", len(in.Partitions), in.Topic, len(have.Partitions))
			return
		}
		data := znode.EncodeTopic(znode.Topic{ID: in.ID, Partitions: in.Partitions})
		items[k] = &item{
			ops:  []any{&zk.SetDataRequest{Path: t.session.path(path), Data: data, Version: n.stat.Version}},
			done: func([]zk.MultiResponse) {},
			refused: func(_ int, word error) bool {
				if raced[k] = errors.Is(word, zk.ErrBadVersion); !raced[k] {
					*result = refusal(what, word, map[error]error{zk.ErrNoNode: election.ErrUnknownTopic})
				}
				return false
			},
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := t.apply(ctx, slices.DeleteFunc(items, func(it *item) bool { return it == nil }), false); err != nil {
		return nil, err
	}
	for k, i := range now {
		if raced[k] {
			again = append(again, i)
		}
	}
	return again, nil
}
