package zookeeper

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// requests implements election.Requests.
type requests struct{ c *coordination }

func (r requests) Watch(ctx context.Context) (election.Watch, error) {
	return r.c.hub.open(ctx, election.RequestsChanged)
}

func (r requests) List(ctx context.Context) (all []election.Request, err error) {
	err = r.c.read(ctx, "requests", func(ctx context.Context, s *session) error {
		all = nil
		for _, list := range []func(context.Context, *session) ([]election.Request, error){r.reassignments, r.elections, r.failures} {
			some, err := list(ctx, s)
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		return nil
	})
	return all, err
}

// senseless logs what can't be carried out; a node that can't be read at all is taken away, or nobody could ask for anything any more.
func (r requests) senseless(ctx context.Context, path string, n node, bad int, err error) {
	switch {
	case err != nil:
		r.c.log.Warn("what is asked of the controller can't be read, and is taken away", "node", path, "error", err)
		r.c.discard(ctx, path, n.stat.Version)
	case bad > 0:
		r.c.log.Warn("some of what is asked of the controller makes no sense", "node", path, "partitions", bad)
	}
}

func (r requests) reassignments(ctx context.Context, s *session) (all []election.Request, err error) {
	n, err := s.get(ctx, reassignPath)
	if err != nil {
		return nil, unless(err, zk.ErrNoNode)
	}
	asked, bad, err := znode.DecodeReassignments(n.data)
	if err == nil && len(asked) == 0 {
		err = errors.New("it names no partition")
	}
	r.senseless(ctx, reassignPath, n, bad, err)
	for _, a := range asked {
		all = append(all, election.Request{Kind: election.Reassign, Topic: a.Topic, Partition: a.Partition, Replicas: a.Replicas})
	}
	return all, nil
}

func (r requests) elections(ctx context.Context, s *session) (all []election.Request, err error) {
	n, err := s.get(ctx, preferredPath)
	if err != nil {
		return nil, unless(err, zk.ErrNoNode)
	}
	asked, bad, err := znode.DecodePartitions(n.data)
	if err == nil && len(asked) == 0 {
		err = errors.New("it names no partition")
	}
	r.senseless(ctx, preferredPath, n, bad, err)
	for _, p := range asked {
		all = append(all, election.Request{Kind: election.ElectPreferred, Topic: p.Topic, Partition: p.Partition})
	}
	return all, nil
}

func (r requests) failures(ctx context.Context, s *session) (all []election.Request, err error) {
	names, err := s.children(ctx, dirEventsPath)
	if err != nil {
		return nil, unless(err, zk.ErrNoNode)
	}
	slices.Sort(names)
	for _, name := range names {
		path := dirEventsPath + "/" + name
		n, err := s.get(ctx, path)
		if err != nil {
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			return nil, err
		}
		id, err := znode.DecodeDirEvent(n.data)
		if err != nil {
			r.senseless(ctx, path, n, 0, err)
			continue
		}
		all = append(all, election.Request{Kind: election.DirFailed, Broker: id, ID: name})
	}
	return all, nil
}

// unless gives no error when it is the one that is no matter.
func unless(err, word error) error {
	if errors.Is(err, word) {
		return nil
	}
	return err
}

func (r requests) Done(ctx context.Context, epoch int32, done []election.Request) ([]error, error) {
	results := make([]error, len(done))
	err := r.c.controllerWrite(ctx, epoch, "requests that are done", func(ctx context.Context, t *term) error {
		var reassigned, elected []election.Request
		var items []*item
		for _, d := range done {
			switch d.Kind {
			case election.Reassign:
				reassigned = append(reassigned, d)
			case election.ElectPreferred:
				elected = append(elected, d)
			case election.DirFailed:
				if isName(d.ID) {
					items = append(items, &item{ops: []any{&zk.DeleteRequest{Path: t.session.path(dirEventsPath + "/" + d.ID), Version: -1}},
						done: func([]zk.MultiResponse) {}, refused: func(int, error) bool { return false }})
				}
			}
		}
		if err := t.apply(ctx, items, false); err != nil {
			return err
		}
		if err := r.strike(ctx, t, reassignPath, reassigned, r.reassignmentsWithout); err != nil {
			return err
		}
		return r.strike(ctx, t, preferredPath, elected, r.electionsWithout)
	})
	return outcomes(results, err)
}

// strike takes requests out of a node that holds many; when none is left, the node goes.
func (r requests) strike(ctx context.Context, t *term, path string, done []election.Request, without func(data []byte, done []election.Request) (rest []byte, left, struck int, err error)) error {
	for len(done) > 0 {
		n, err := t.session.get(ctx, path)
		if err != nil {
			return unless(err, zk.ErrNoNode)
		}
		rest, left, struck, err := without(n.data, done)
		if err != nil || struck == 0 {
			return nil //nolint:nilerr // List says so, and sees to it
		}
		var op any = &zk.SetDataRequest{Path: t.session.path(path), Data: rest, Version: n.stat.Version}
		if left == 0 {
			op = &zk.DeleteRequest{Path: t.session.path(path), Version: n.stat.Version}
		}
		raced := false
		it := &item{ops: []any{op}, done: func([]zk.MultiResponse) {}, refused: func(_ int, word error) bool {
			raced = !errors.Is(word, errTooLarge)
			return false
		}}
		if err := t.apply(ctx, []*item{it}, false); err != nil || !raced {
			return err
		}
	}
	return nil
}

func (requests) reassignmentsWithout(data []byte, done []election.Request) (rest []byte, left, struck int, err error) {
	asked, _, err := znode.DecodeReassignments(data)
	if err != nil {
		return nil, 0, 0, err
	}
	n := len(asked)
	asked = slices.DeleteFunc(asked, func(a znode.Reassignment) bool {
		return slices.ContainsFunc(done, func(d election.Request) bool {
			return d.Topic == a.Topic && d.Partition == a.Partition && slices.Equal(d.Replicas, a.Replicas)
		})
	})
	return znode.EncodeReassignments(asked), len(asked), n - len(asked), nil
}

func (requests) electionsWithout(data []byte, done []election.Request) (rest []byte, left, struck int, err error) {
	asked, _, err := znode.DecodePartitions(data)
	if err != nil {
		return nil, 0, 0, err
	}
	n := len(asked)
	asked = slices.DeleteFunc(asked, func(p znode.TopicPartition) bool {
		return slices.ContainsFunc(done, func(d election.Request) bool { return d.Topic == p.Topic && d.Partition == p.Partition })
	})
	return znode.EncodePartitions(asked), len(asked), n - len(asked), nil
}

func (r requests) ReportDirFailure(ctx context.Context, brokerID int32) error {
	if brokerID < 0 {
		return invalid("broker id %d", brokerID)
	}
	return r.c.write(ctx, "report a failed log directory", func(ctx context.Context, s *session) error {
		_, err := s.create(ctx, dirEventPrefix, znode.EncodeDirEvent(brokerID), zk.FlagSequence, r.c.acl(dirEventPrefix))
		return err
	})
}

func (r requests) Unmark(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	results := make([]error, len(topics))
	err := r.c.controllerWrite(ctx, epoch, "take marks back", func(ctx context.Context, t *term) error {
		var items []*item
		for _, name := range topics {
			if isName(name) {
				items = append(items, &item{ops: []any{&zk.DeleteRequest{Path: t.session.path(deletionPath(name)), Version: -1}},
					done: func([]zk.MultiResponse) {}, refused: func(int, error) bool { return false }})
			}
		}
		return t.apply(ctx, items, false)
	})
	return outcomes(results, err)
}
