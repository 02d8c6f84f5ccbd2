package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

var _ election.Portable = (*coordination)(nil)

// Export reads the cluster from its nodes, in a session of its own.
func (c *coordination) Export(ctx context.Context, o election.ExportOptions) (e election.Export, err error) {
	err = c.visit(ctx, func(ctx context.Context, s *session) error {
		x := exporter{s: s, living: o.Living}
		e, err = x.export(ctx)
		return err
	})
	if err != nil {
		return election.Export{}, fmt.Errorf("zookeeper: export: %w", err)
	}
	return e, nil
}

// visit does something in a session that is begun for it, in place of Start.
func (c *coordination) visit(ctx context.Context, do func(ctx context.Context, s *session) error) error {
	c.mu.Lock()
	started := c.running || c.stopped
	c.mu.Unlock()
	if started {
		return fmt.Errorf("%w: it was started", election.ErrInvalid)
	}
	tlsConfig, err := c.o.tlsConfig()
	if err != nil {
		return err
	}
	open, cancel := context.WithTimeout(ctx, c.o.ConnectionTimeout)
	defer cancel()
	s, err := openSession(open, sessionOptions{servers: c.servers, root: c.root, timeout: c.o.SessionTimeout, tls: tlsConfig, auth: c.o.auth(), log: c.log,
		events: func(*session, string, zk.EventType) {}, joined: func(*session) {}})
	if err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: no answer from %v within %s: %w", election.ErrUnavailable, c.servers, c.o.ConnectionTimeout, err)
		}
		return err
	}
	defer s.close()
	return do(ctx, s)
}

// exporter reads a cluster. What it can't read is an error: what is left out would be deleted from the disks of the brokers that are
// started on what was exported.
type exporter struct {
	s      *session
	living bool
	born   int64 // the transaction that wrote the cluster's id
	out    election.Export
	high   atomic.Int32 // the highest controller epoch in a state
}

func (x *exporter) export(ctx context.Context) (election.Export, error) {
	if err := x.s.sync(ctx); err != nil {
		return x.out, err
	}
	if err := x.cluster(ctx); err != nil {
		return x.out, err
	}
	before, err := x.quiet(ctx)
	if err != nil {
		return x.out, err
	}
	for _, step := range []func(context.Context) error{x.epochs, x.topics, x.configs, x.omitted} {
		if err := step(ctx); err != nil {
			return x.out, err
		}
	}
	d := &x.out.Dump
	d.ControllerEpoch = max(d.ControllerEpoch, x.high.Load())
	after, err := x.quiet(ctx)
	if err != nil {
		return x.out, err
	}
	if !x.living && before != after {
		return x.out, fmt.Errorf("%w: a broker came and went meanwhile", election.ErrInUse)
	}
	// What was registered meanwhile has an epoch, too. A cluster that was imported began above the epochs that it had before.
	d.BrokerEpoch = max(after, x.born)
	return x.out, d.Validate()
}

// cluster reads the cluster's id, without which there is no cluster.
func (x *exporter) cluster(ctx context.Context) error {
	n, err := x.s.get(ctx, clusterIDPath)
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: there is no %s below %q", election.ErrEmpty, clusterIDPath, x.s.path("/"))
	}
	if err != nil {
		return err
	}
	if znode.IsImport(n.data) {
		return election.ErrUnfinished
	}
	x.born = n.stat.Mzxid
	x.out.Dump.ClusterID, err = znode.DecodeClusterID(n.data)
	return placed(clusterIDPath, err)
}

// placed says at which node something is wrong.
func placed(path string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// quiet sees that no broker is alive, unless that is allowed, and returns the highest broker epoch that there can have been.
func (x *exporter) quiet(ctx context.Context) (epoch int64, err error) {
	if !x.living {
		if err := nobody(ctx, x.s); err != nil {
			return 0, err
		}
	}
	n, err := x.s.get(ctx, brokersPath)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return n.stat.Pzxid, nil // the transaction that added or removed a broker last; broker epochs are such transactions
}

// nobody sees that no broker is alive.
func nobody(ctx context.Context, s *session) error {
	alive, err := s.children(ctx, brokersPath)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if len(alive) > 0 {
		slices.Sort(alive)
		return fmt.Errorf("%w: brokers are alive: %v (one that was killed is so until its session expires)", election.ErrInUse, alive)
	}
	_, err = s.get(ctx, controllerPath)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: there is a controller", election.ErrInUse)
	}
	return err
}

func (x *exporter) epochs(ctx context.Context) error {
	d := &x.out.Dump
	for _, part := range []struct {
		path string
		read func(n node) error
	}{
		{controllerEpochPath, func(n node) (err error) { d.ControllerEpoch, err = znode.DecodeNumber(n.data); return err }},
		{producerIDsPath, func(n node) (err error) { d.NextProducerID, err = znode.DecodeProducerIDs(n.data); return err }},
		{brokerSequencePath, func(n node) error {
			if n.stat.Version > 0 {
				d.LastBrokerID = reservedBrokerIDs + n.stat.Version
			}
			return nil
		}},
	} {
		n, err := x.s.get(ctx, part.path)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err == nil {
			err = placed(part.path, part.read(n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) topics(ctx context.Context) error {
	names, err := x.s.children(ctx, topicsPath)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	marked, err := x.s.children(ctx, deletionsPath)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	slices.Sort(names)
	slices.Sort(marked)
	found, errs := make([]*election.Topic, len(names)), make([]error, len(names))
	each(len(names), func(i int) { found[i], errs[i] = x.topic(ctx, names[i]) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, t := range found {
		if t != nil {
			_, t.Deleting = slices.BinarySearch(marked, t.Name)
			x.out.Dump.Topics = append(x.out.Dump.Topics, *t)
		}
	}
	return x.states(ctx)
}

// topic reads a topic without its states; nil when it has just gone.
func (x *exporter) topic(ctx context.Context, name string) (*election.Topic, error) {
	path := topicPath(name)
	n, err := x.s.get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && x.living {
		return nil, nil
	}
	if err != nil {
		return nil, placed(path, err)
	}
	t, err := znode.DecodeTopic(n.data)
	switch {
	case err != nil:
		return nil, placed(path, err)
	case t.ID == election.TopicID{}:
		return nil, placed(path, fmt.Errorf("%w: the topic has no id; a controller of version 2.8 or later gives it one", election.ErrInvalid))
	}
	topic := &election.Topic{Name: name, ID: t.ID, Partitions: make([]election.Partition, len(t.Partitions))}
	for i, a := range t.Partitions {
		topic.Partitions[i].Assignment = a
	}
	return topic, nil
}

// states reads the states of all partitions.
func (x *exporter) states(ctx context.Context) error {
	var places []place
	for i := range x.out.Dump.Topics {
		for p := range x.out.Dump.Topics[i].Partitions {
			places = append(places, place{&x.out.Dump.Topics[i], p})
		}
	}
	errs := make([]error, len(places))
	each(len(places), func(i int) {
		at := places[i]
		path := statePath(at.topic.Name, int32(at.partition))
		n, err := x.s.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return // no controller has made it, or the topic is being removed
		}
		var st election.PartitionState
		if err == nil {
			st, err = znode.DecodeState(n.data, n.stat.Version)
		}
		if errs[i] = placed(path, err); err != nil {
			return
		}
		for high := x.high.Load(); st.ControllerEpoch > high && !x.high.CompareAndSwap(high, st.ControllerEpoch); high = x.high.Load() {
		}
		at.topic.Partitions[at.partition].State = &st
	})
	return errors.Join(errs...)
}

func (x *exporter) configs(ctx context.Context) error {
	entities, err := configured(ctx, x.s)
	if err != nil {
		return err
	}
	all, errs := make([]election.Config, len(entities)), make([]error, len(entities))
	each(len(entities), func(i int) {
		path := configPath + "/" + znode.EntityPath(entities[i])
		n, err := x.s.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) && x.living {
			return
		}
		all[i].Entity = entities[i]
		if err == nil {
			all[i].Values, err = znode.DecodeConfig(n.data)
		}
		errs[i] = placed(path, err)
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	topics := map[string]bool{}
	for i := range x.out.Dump.Topics {
		topics[x.out.Dump.Topics[i].Name] = true
	}
	left := 0
	for _, config := range all {
		switch {
		case len(config.Values) == 0:
		case config.Entity.Kind == election.TopicEntity && !topics[config.Entity.Name]:
			left++
		default:
			x.out.Dump.Configs = append(x.out.Dump.Configs, config)
		}
	}
	if left > 0 {
		x.omit("configurations of topics that don't exist: %d", left)
	}
	return nil
}

func (x *exporter) omit(format string, args ...any) {
	x.out.Omitted = append(x.out.Omitted, fmt.Sprintf(format, args...))
}

// omitted looks for what a cluster of Apache Kafka may keep, and what is no part of a dump.
func (x *exporter) omitted(ctx context.Context) error {
	for _, part := range []struct{ path, what string }{
		{"/config/users", "configurations of users, and their passwords for SCRAM"}, {"/config/clients", "configurations of clients"},
		{"/config/ips", "configurations of addresses"}, {"/kafka-acl", "kinds of resources with access control lists"},
		{"/delegation_token/tokens", "delegation tokens"}, {"/consumers", "groups that commit their offsets to ZooKeeper, where they stay"},
	} {
		names, err := x.s.children(ctx, part.path)
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
			continue
		}
		if err != nil {
			return err
		}
		if part.path == "/kafka-acl" { // Kafka makes these nodes, and what is in them only for those who have lists
			names = slices.DeleteFunc(names, func(kind string) bool {
				below, err := x.s.children(ctx, part.path+"/"+kind)
				return err == nil && len(below) == 0
			})
		}
		if len(names) > 0 {
			x.omit("%s: %d, in %s", part.what, len(names), x.s.path(part.path))
		}
	}
	for _, part := range []struct{ path, what string }{
		{reassignPath, "a reassignment that a tool has asked for; moves that have begun are part of the topics"}, {preferredPath, "an election that a tool has asked for"},
		{"/migration", "a migration to KRaft"},
	} {
		if exists, err := x.s.exists(ctx, part.path); err != nil {
			return err
		} else if exists {
			x.omit("%s, in %s", part.what, x.s.path(part.path))
		}
	}
	return nil
}
