package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
)

func (m metadata) MarkDeleted(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	results := make([]error, len(topics))
	err := m.c.controllerWrite(ctx, epoch, "mark topics", func(ctx context.Context, t *term) error {
		var items []*item
		for i, name := range topics {
			what := "topic " + strconv.Quote(name)
			if !isName(name) {
				results[i] = fmt.Errorf("zookeeper: %s: %w", what, election.ErrUnknownTopic)
				continue
			}
			path := deletionPath(name)
			items = append(items, &item{
				ops: []any{
					&zk.CheckVersionRequest{Path: t.session.path(topicPath(name)), Version: -1},
					&zk.CreateRequest{Path: t.session.path(path), Acl: m.c.acl(path)},
				},
				done: func([]zk.MultiResponse) {},
				refused: func(op int, word error) bool {
					if op == 0 || !errors.Is(word, zk.ErrNodeExists) {
						results[i] = refusal(what, word, map[error]error{zk.ErrNoNode: election.ErrUnknownTopic})
					}
					return false
				},
			})
		}
		return t.apply(ctx, items, false)
	})
	return outcomes(results, err)
}

func (m metadata) RemoveTopics(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	results := make([]error, len(topics))
	err := m.c.controllerWrite(ctx, epoch, "remove topics", func(ctx context.Context, t *term) error {
		for i, name := range topics { // few at a time, and each may be large
			err := m.c.remove(ctx, t, name)
			if errors.Is(err, election.ErrInvalid) {
				results[i], err = err, nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return outcomes(results, err)
}

// remove takes a marked topic away: states and partitions first, in as many transactions as it takes, and at last, in one, the topic,
// its configuration and the mark. Apache Kafka does the last three one after the other; what it may have left is taken away too.
func (c *coordination) remove(ctx context.Context, t *term, name string) error {
	if !isName(name) {
		return nil // no such topic
	}
	s := t.session
	if _, err := s.get(ctx, deletionPath(name)); errors.Is(err, zk.ErrNoNode) {
		if _, err := s.get(ctx, topicPath(name)); err == nil {
			return invalid("topic %q isn't marked for deletion", name)
		} else if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		return nil
	} else if err != nil {
		return err
	}
	for {
		below, err := c.below(ctx, s, topicPath(name))
		if err != nil {
			return err
		}
		// Whoever puts something there meanwhile is no broker of this cluster, or finds that it isn't controller any more.
		if err := c.removeNodes(ctx, t, below); err != nil {
			return err
		}
		last := &item{done: func([]zk.MultiResponse) {}}
		for _, path := range []string{topicPath(name), topicConfig(name), deletionPath(name)} {
			n, err := s.get(ctx, path)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			last.ops = append(last.ops, &zk.DeleteRequest{Path: s.path(path), Version: n.stat.Version})
		}
		if len(last.ops) == 0 {
			return nil
		}
		refused := false
		last.refused = func(int, error) bool { refused = true; return false }
		if err := t.apply(ctx, []*item{last}, false); err != nil || !refused {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// below lists all that is below a node, children before parents.
func (c *coordination) below(ctx context.Context, s *session, path string) ([]string, error) {
	level, all := []string{path}, [][]string{}
	for len(level) > 0 {
		lists, errs := make([][]string, len(level)), make([]error, len(level))
		each(len(level), func(i int) { lists[i], errs[i] = s.children(ctx, level[i]) })
		var next []string
		for i, names := range lists {
			if errs[i] != nil && !errors.Is(errs[i], zk.ErrNoNode) {
				return nil, errs[i]
			}
			for _, name := range names {
				next = append(next, level[i]+"/"+name)
			}
		}
		all = append(all, next)
		level = next
	}
	var paths []string
	for i := len(all) - 1; i >= 0; i-- {
		paths = append(paths, all[i]...)
	}
	return paths, nil
}

// removeNodes deletes nodes in the order given. One that is gone already is left out.
func (c *coordination) removeNodes(ctx context.Context, t *term, paths []string) error {
	items := make([]*item, len(paths))
	for i, path := range paths {
		items[i] = &item{ops: []any{&zk.DeleteRequest{Path: t.session.path(path), Version: -1}},
			done: func([]zk.MultiResponse) {}, refused: func(int, error) bool { return false }}
	}
	return t.apply(ctx, items, true)
}

// finishRemovals takes away marks whose topics are gone: a controller has died between the two, or somebody has marked what never
// was.
func (c *coordination) finishRemovals(ctx context.Context, t *term) error {
	marked, err := t.session.children(ctx, deletionsPath)
	if err != nil {
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	}
	gone, errs := make([]bool, len(marked)), make([]error, len(marked))
	each(len(marked), func(i int) {
		_, err := t.session.get(ctx, topicPath(marked[i]))
		if gone[i] = errors.Is(err, zk.ErrNoNode); !gone[i] {
			errs[i] = err
		}
	})
	for i, name := range marked {
		if errs[i] == nil && gone[i] {
			errs[i] = c.remove(ctx, t, name)
		}
	}
	return errors.Join(errs...)
}
