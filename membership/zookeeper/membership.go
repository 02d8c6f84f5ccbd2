package zookeeper

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// reservedBrokerIDs is Kafka's reserved.broker.max.id: ids up to it are for operators to give.
const reservedBrokerIDs = 1000

// membership implements election.Membership.
type membership struct{ c *coordination }

func (m membership) ClusterID(ctx context.Context, proposed string) (id string, err error) {
	if !utf8.ValidString(proposed) {
		return "", invalid("cluster id %q", proposed)
	}
	if proposed == "" {
		proposed = randomClusterID()
	}
	err = m.c.read(ctx, "the cluster's id", func(ctx context.Context, s *session) error {
		if err := m.c.createAll(ctx, s, "/cluster"); err != nil {
			return err
		}
		_, err := s.create(ctx, clusterIDPath, znode.EncodeClusterID(proposed), 0, m.c.acl(clusterIDPath))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		n, err := s.get(ctx, clusterIDPath)
		if err != nil {
			return err
		}
		if id, err = znode.DecodeClusterID(n.data); err != nil {
			return fmt.Errorf("%s: %w", clusterIDPath, err)
		}
		return nil
	})
	return id, err
}

// randomClusterID makes an id as Kafka's Uuid does: it never begins with '-', which command lines take for an option.
func randomClusterID() string {
	for {
		var id election.TopicID
		rand.Read(id[:]) // never fails
		if text := znode.FormatID(id); text[0] != '-' {
			return text
		}
	}
}

func (m membership) NewBrokerID(ctx context.Context) (id int32, err error) {
	err = m.c.write(ctx, "a broker id", func(ctx context.Context, s *session) error {
		stat, err := s.set(ctx, brokerSequencePath, nil, -1)
		if errors.Is(err, zk.ErrNoNode) {
			if err = m.c.createAll(ctx, s, brokerSequencePath); err == nil {
				stat, err = s.set(ctx, brokerSequencePath, nil, -1)
			}
		}
		if err == nil {
			id = reservedBrokerIDs + stat.Version
		}
		return err
	})
	return id, err
}

func (m membership) Watch(ctx context.Context) (election.Watch, error) {
	return m.c.hub.open(ctx, election.BrokersChanged)
}

func (m membership) Brokers(ctx context.Context) (all []election.Broker, err error) {
	err = m.c.read(ctx, "the living brokers", func(ctx context.Context, s *session) error {
		all, err = m.c.brokers(ctx, s)
		return err
	})
	return all, err
}

// brokers reads the brokers that are registered. One that can't be read is left out, and logged.
func (c *coordination) brokers(ctx context.Context, s *session) ([]election.Broker, error) {
	names, err := s.children(ctx, brokersPath)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	found, errs := make([]*election.Broker, len(names)), make([]error, len(names))
	each(len(names), func(i int) {
		id, err := strconv.ParseInt(names[i], 10, 32)
		if err != nil || id < 0 {
			c.log.Warn("a registration of no broker is left out", "node", brokersPath+"/"+names[i])
			return
		}
		n, err := s.get(ctx, brokerPath(int32(id)))
		if errors.Is(err, zk.ErrNoNode) {
			return // it has just gone
		}
		if errs[i] = err; err != nil {
			return
		}
		b, err := znode.DecodeBroker(int32(id), n.data)
		if err != nil {
			c.log.Warn("a broker whose registration can't be read is left out", "broker", id, "error", err)
			return
		}
		b.Epoch = n.stat.Czxid
		found[i] = &b
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var all []election.Broker
	for _, b := range found {
		if b != nil {
			all = append(all, *b)
		}
	}
	slices.SortFunc(all, func(a, b election.Broker) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Register creates the broker's node. One that this broker has left behind in an earlier session is replaced (KAFKA-7165).
func (m membership) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	c := m.c
	if err := checkBroker(b); err != nil {
		return nil, err
	}
	b.Endpoints = slices.Clone(b.Endpoints)
	data := znode.EncodeBroker(b, c.now())
	give, cancel := context.WithTimeoutCause(ctx, 2*c.o.ConnectionTimeout+c.o.SessionTimeout, errTooLong)
	defer cancel()
	for {
		s, err := c.await(give)
		var r *registration
		var again bool
		if err == nil {
			r, again, err = c.register(give, s, b, data)
		}
		if r != nil {
			return r, nil
		}
		if again && give.Err() == nil && !c.isStopped() {
			c.rest(give)
			continue
		}
		return nil, c.outcome(ctx, give, fmt.Sprintf("register broker %d", b.ID), err)
	}
}

// register tries once. again says that something was in the way that isn't any more, or the connection was lost.
func (c *coordination) register(ctx context.Context, s *session, b election.Broker, data []byte) (r *registration, again bool, err error) {
	if err := s.sync(ctx); err != nil {
		return nil, passes(err), err
	}
	others, err := c.brokers(ctx, s)
	if err != nil {
		return nil, passes(err), err
	}
	for _, o := range others {
		if address := sharedAddress(o, b); o.ID != b.ID && address != "" {
			return nil, false, fmt.Errorf("%w: broker %d, which is alive, advertises %s too", election.ErrBrokerExists, o.ID, address)
		}
	}
	path := brokerPath(b.ID)
	if err := c.saveSession(s.id()); err != nil {
		c.log.Warn("the session could not be noted; after a crash the broker may have to wait for its end", "error", err)
	}
	results, failed, err := s.multi(ctx, []any{
		&zk.CreateRequest{Path: s.path(path), Acl: c.acl(path), Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: s.path(path), Data: data, Version: 0},
	})
	switch {
	case err == nil:
		return c.registered(s, b, results[1].Stat.Czxid), false, nil
	case failed < 0:
		return nil, passes(err), err
	case !errors.Is(err, zk.ErrNodeExists):
		return nil, false, err
	}
	return c.displace(ctx, s, b, data)
}

// displace sees what to do about a node that is there already.
func (c *coordination) displace(ctx context.Context, s *session, b election.Broker, data []byte) (r *registration, again bool, err error) {
	path := brokerPath(b.ID)
	n, err := s.get(ctx, path)
	if err != nil {
		return nil, errors.Is(err, zk.ErrNoNode) || passes(err), err
	}
	owner := n.stat.EphemeralOwner
	c.mu.Lock()
	living := c.alive[b.ID] != nil
	c.mu.Unlock()
	taken := fmt.Errorf("%w: broker %d is registered by session %s", election.ErrBrokerExists, b.ID, hex(owner))
	if living {
		return nil, false, taken
	}
	if owner == s.id() && bytes.Equal(n.data, data) {
		return c.registered(s, b, n.stat.Czxid), false, nil // this one's own success, whose answer was lost
	}
	there, err := znode.DecodeBroker(b.ID, n.data)
	sameAddress := err == nil && sharedAddress(there, b) != ""
	remembered := owner != 0 && owner == c.previous
	if c.ours(s, owner) || sameAddress && remembered {
		c.log.Info("an earlier registration of this broker is replaced", "broker", b.ID, "session", hex(owner))
		c.mu.Lock()
		c.trusted = owner
		c.mu.Unlock()
		err := s.delete(ctx, path, n.stat.Version)
		if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
			return nil, true, nil
		}
		return nil, passes(err), err
	}
	if !sameAddress && !remembered {
		return nil, false, fmt.Errorf("%w, at another address: give this broker another broker.id, or stop that one", taken)
	}
	// It advertises what this broker listens on, or has the session of this broker's earlier life at another address: most likely
	// that life, whose session hasn't expired yet; or somebody with a copy of the configuration, or of the log directory.
	c.log.Info("waiting for the end of an earlier registration of this broker", "broker", b.ID, "session", hex(owner))
	if c.awaitEnd(ctx, path, n.stat.Czxid) {
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("%w, and it goes on living: two brokers have the same configuration or a copy of the same log directory", taken)
}

// awaitEnd waits until a node isn't the one that it was. The session that it belongs to may last as long as this one's timeout, and
// a tick or two.
func (c *coordination) awaitEnd(ctx context.Context, path string, czxid int64) bool {
	ctx, cancel := context.WithTimeout(ctx, c.o.SessionTimeout+max(c.o.SessionTimeout/4, 2*time.Second))
	defer cancel()
	gone := make(chan struct{}, 1)
	g := newGroup()
	c.points.add(g, path, false, false, func(_ context.Context, now sight) {
		if !now.exists || now.stat.Czxid != czxid {
			select {
			case gone <- struct{}{}:
			default:
			}
		}
	})
	c.points.open(g)
	defer c.points.close(g)
	select {
	case <-gone:
		return true
	case <-ctx.Done():
	case <-c.closed:
	}
	return false
}

func checkBroker(b election.Broker) error {
	if b.ID < 0 || len(b.Endpoints) == 0 || !utf8.ValidString(b.Rack) {
		return invalid("broker %d with %d endpoints", b.ID, len(b.Endpoints))
	}
	for i, e := range b.Endpoints {
		if e.Listener == "" || e.Host == "" || e.Port < 1 || e.Port > 65535 || !utf8.ValidString(e.Listener+e.Host+e.Protocol) ||
			slices.ContainsFunc(b.Endpoints[:i], func(o election.Endpoint) bool { return o.Listener == e.Listener }) {
			return invalid("broker %d's endpoint %q at %s:%d", b.ID, e.Listener, e.Host, e.Port)
		}
	}
	return nil
}

// sharedAddress names an address that both brokers advertise, if there is one.
func sharedAddress(a, b election.Broker) string {
	for _, x := range a.Endpoints {
		for _, y := range b.Endpoints {
			if x.Host == y.Host && x.Port == y.Port {
				return fmt.Sprintf("%s:%d", x.Host, x.Port)
			}
		}
	}
	return ""
}

// registration implements election.Registration.
type registration struct {
	c       *coordination
	id      int32
	epoch   int64
	session *session
	watch   *group
	lost    chan struct{}
}

// registered makes the registration of a node that was created.
func (c *coordination) registered(s *session, b election.Broker, epoch int64) *registration {
	r := &registration{c: c, id: b.ID, epoch: epoch, session: s, watch: newGroup(), lost: make(chan struct{})}
	c.points.add(r.watch, brokerPath(b.ID), false, false, r.check)
	c.mu.Lock()
	c.alive[r.id] = r
	select {
	case <-s.over:
		c.endRegistration(r)
	default:
	}
	c.mu.Unlock()
	c.points.open(r.watch)
	return r
}

func (r *registration) Epoch() int64          { return r.epoch }
func (r *registration) Lost() <-chan struct{} { return r.lost }

// check looks whether the node is still this registration's. Somebody may have deleted it: then the broker isn't alive for
// anybody (KAFKA-1387).
func (r *registration) check(_ context.Context, now sight) {
	if now.exists && now.stat.Czxid == r.epoch {
		return
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.endRegistration(r)
}

// endRegistration ends a registration, unless it has ended. The caller holds the lock.
func (c *coordination) endRegistration(r *registration) {
	if c.alive[r.id] == r {
		delete(c.alive, r.id)
		close(r.lost)
		c.points.close(r.watch)
	}
}

// Leave deletes the broker's node.
func (r *registration) Leave(ctx context.Context) error {
	c := r.c
	c.mu.Lock()
	living := c.alive[r.id] == r
	c.endRegistration(r)
	c.mu.Unlock()
	if !living {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.o.ConnectionTimeout, errTooLong)
	defer cancel()
	err := r.session.delete(limited, brokerPath(r.id), -1)
	select {
	case <-r.session.over:
		return nil // and the node goes with it
	default:
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return c.outcome(ctx, limited, fmt.Sprintf("take back the registration of broker %d", r.id), err)
}
