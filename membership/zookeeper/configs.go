package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

func (m metadata) Configs(ctx context.Context, entities ...election.Entity) (configs []election.Config, err error) {
	err = m.c.read(ctx, "configurations", func(ctx context.Context, s *session) error {
		these := entities
		if len(these) == 0 {
			if these, err = configured(ctx, s); err != nil {
				return err
			}
		}
		kept, err := m.c.configs(ctx, s, these)
		if err != nil {
			return err
		}
		configs = nil
		for _, k := range kept {
			if len(entities) > 0 || len(k.Values) > 0 {
				configs = append(configs, k.Config)
			}
		}
		return nil
	})
	return configs, err
}

// configured lists the topics and brokers that have a node below /config, by kind and name.
func configured(ctx context.Context, s *session) (all []election.Entity, err error) {
	for _, kind := range []string{"topics", "brokers"} {
		names, err := s.children(ctx, configPath+"/"+kind)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		for _, name := range names {
			if e, ok := znode.ParseEntityPath(kind + "/" + name); ok {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b election.Entity) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// kept is a configuration, and what is known of its node.
type kept struct {
	election.Config
	exists  bool
	version int32 // of the node
}

// configs reads configurations, in the order given. An entity without a node, or without values in it, has version 0; otherwise the
// version is the transaction that wrote it last, which comes once.
func (c *coordination) configs(ctx context.Context, s *session, entities []election.Entity) ([]kept, error) {
	all, errs := make([]kept, len(entities)), make([]error, len(entities))
	each(len(entities), func(i int) {
		all[i].Entity = entities[i]
		path := znode.EntityPath(entities[i])
		if path == "" || !isName(entityName(entities[i])) {
			return
		}
		n, err := s.get(ctx, configPath+"/"+path)
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		if errs[i] = err; err != nil {
			return
		}
		all[i].exists, all[i].version = true, n.stat.Version
		values, err := znode.DecodeConfig(n.data)
		if err != nil {
			c.log.Warn("a configuration can't be read, and is taken for empty", "entity", path, "error", err)
			return
		}
		if len(values) > 0 {
			all[i].Values, all[i].Version = values, n.stat.Mzxid
		}
	})
	return all, errors.Join(errs...)
}

// entityName is an entity's name in a path.
func entityName(e election.Entity) string { return cmp.Or(e.Name, "<default>") }

func (m metadata) SetConfigs(ctx context.Context, epoch int32, configs []election.Config) ([]error, error) {
	results := make([]error, len(configs))
	err := m.c.controllerWrite(ctx, epoch, "set configurations", func(ctx context.Context, t *term) error {
		todo := make([]int, 0, len(configs))
		for i := range configs {
			in := &configs[i]
			if znode.EntityPath(in.Entity) == "" || !isName(entityName(in.Entity)) || !text(in.Values) {
				results[i] = invalid("configuration of kind %d, name %q", in.Entity.Kind, in.Entity.Name)
				continue
			}
			todo = append(todo, i)
		}
		for len(todo) > 0 { // two of one entity come one after the other: the second is in conflict with the first
			var now, later []int
			seen := map[election.Entity]bool{}
			for _, i := range todo {
				if e := configs[i].Entity; seen[e] {
					later = append(later, i)
				} else {
					seen[e] = true
					now = append(now, i)
				}
			}
			if err := m.configure(ctx, t, configs, results, now); err != nil {
				return err
			}
			todo = later
		}
		return nil
	})
	return outcomes(results, err)
}

// configure sets the configurations in todo, each with the notification that makes every broker read it.
func (m metadata) configure(ctx context.Context, t *term, configs []election.Config, results []error, todo []int) error {
	entities := make([]election.Entity, len(todo))
	for k, i := range todo {
		entities[k] = configs[i].Entity
	}
	now, err := m.c.configs(ctx, t.session, entities)
	if err != nil {
		return err
	}
	var items []*item
	for k, i := range todo {
		in := &configs[i]
		name := znode.EntityPath(in.Entity)
		var ops []any
		if in.Entity.Kind == election.TopicEntity {
			ops = append(ops, &zk.CheckVersionRequest{Path: t.session.path(topicPath(in.Entity.Name)), Version: -1})
		}
		conflict := in.Version != now[k].Version
		path, data := configPath+"/"+name, znode.EncodeConfig(in.Values)
		switch {
		case conflict: // nothing but the check that the topic exists
		case now[k].exists:
			ops = append(ops, &zk.SetDataRequest{Path: t.session.path(path), Data: data, Version: now[k].version})
		default:
			ops = append(ops, &zk.CreateRequest{Path: t.session.path(path), Data: data, Acl: m.c.acl(path)})
		}
		if !conflict {
			ops = append(ops, &zk.CreateRequest{Path: t.session.path(configChangePrefix), Data: znode.EncodeConfigChange(in.Entity),
				Acl: m.c.acl(configChangePrefix), Flags: zk.FlagSequence})
		}
		failed := func() {
			results[i] = fmt.Errorf("zookeeper: %w: configuration of %q is at version %d, not %d", election.ErrConflict, name, now[k].Version, in.Version)
		}
		items = append(items, &item{ops: ops,
			done: func([]zk.MultiResponse) {
				if conflict {
					failed()
				}
			},
			refused: func(op int, word error) bool {
				switch {
				case in.Entity.Kind == election.TopicEntity && op == 0 && errors.Is(word, zk.ErrNoNode):
					results[i] = fmt.Errorf("zookeeper: %w: %q", election.ErrUnknownTopic, in.Entity.Name)
				case errors.Is(word, zk.ErrBadVersion), errors.Is(word, zk.ErrNodeExists), errors.Is(word, zk.ErrNoNode):
					failed()
				default:
					results[i] = refusal("configuration of "+name, word, nil)
				}
				return false
			},
		})
	}
	return t.apply(ctx, items, false)
}
