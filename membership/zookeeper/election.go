package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// Campaign waits until /controller is gone, and creates it together with the next epoch.
func (c *coordination) Campaign(ctx context.Context, brokerID int32) (election.Term, error) {
	if brokerID < 0 {
		return nil, invalid("broker id %d", brokerID)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if !running {
		return nil, election.ErrClosed
	}
	select {
	case c.seat <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, election.ErrClosed
	}
	t, err := c.campaign(ctx, brokerID)
	if err != nil {
		<-c.seat
		return nil, err
	}
	c.takeOver(ctx, t)
	return t, nil
}

// campaign tries until it wins. The caller holds the seat.
func (c *coordination) campaign(ctx context.Context, brokerID int32) (*term, error) {
	changed := make(chan struct{}, 1)
	g := newGroup()
	c.points.add(g, controllerPath, false, false, func(context.Context, sight) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	c.points.open(g)
	defer c.points.close(g)
	for {
		s, err := c.await(ctx)
		if err != nil {
			return nil, err
		}
		t, err := c.stand(ctx, s, brokerID)
		switch {
		case t != nil:
			return t, nil
		case c.isStopped():
			return nil, election.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !errors.Is(err, election.ErrUnavailable):
			return nil, fmt.Errorf("zookeeper: campaign: %w", err)
		}
		if errors.Is(err, zk.ErrNoAuth) {
			return nil, fmt.Errorf("zookeeper: campaign: %w", err)
		}
		select { // after a lost connection the point is looked at again, too
		case <-changed:
		case <-s.over:
		case <-ctx.Done():
		case <-c.closed:
		}
	}
}

// stand tries once to become controller. It returns nothing when somebody else is.
func (c *coordination) stand(ctx context.Context, s *session, brokerID int32) (*term, error) {
	for {
		now, err := s.get(ctx, controllerPath)
		if err == nil {
			mine, err := c.ownController(ctx, s, now, brokerID)
			if mine != nil || err != nil {
				return mine, err
			}
			if !c.ours(s, now.stat.EphemeralOwner) {
				return nil, nil
			}
			// Left from a term that is over, whose deletion failed; or from this broker's earlier life.
			if err := s.delete(ctx, controllerPath, now.stat.Version); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrBadVersion) {
				return nil, err
			}
			continue
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		epoch, version, err := c.controllerEpoch(ctx, s)
		if err != nil {
			return nil, err
		}
		if epoch == math.MaxInt32 {
			return nil, fmt.Errorf("%s is %d: no epoch is left", controllerEpochPath, epoch)
		}
		results, failed, err := s.multi(ctx, []any{
			&zk.CreateRequest{Path: s.path(controllerPath), Data: znode.EncodeController(brokerID, c.now()), Acl: c.acl(controllerPath), Flags: zk.FlagEphemeral},
			&zk.SetDataRequest{Path: s.path(controllerEpochPath), Data: znode.EncodeNumber(epoch + 1), Version: version},
		})
		switch {
		case err == nil:
			return c.elected(s, brokerID, epoch+1, results[1].Stat), nil
		case failed < 0:
			return nil, err
		}
		// Somebody else was faster, or this one's own try that had no answer: look again.
	}
}

// controllerEpoch reads /controller_epoch, and creates it as Kafka does, so that the first controller has epoch 1.
func (c *coordination) controllerEpoch(ctx context.Context, s *session) (epoch, version int32, err error) {
	for {
		n, err := s.get(ctx, controllerEpochPath)
		if err == nil {
			epoch, err := znode.DecodeNumber(n.data)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: %w", controllerEpochPath, err)
			}
			return epoch, n.stat.Version, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return 0, 0, err
		}
		if _, err := s.create(ctx, controllerEpochPath, znode.EncodeNumber(0), 0, c.acl(controllerEpochPath)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return 0, 0, err
		}
	}
}

// ownController says whether a /controller node is this session's own success, whose answer was lost.
func (c *coordination) ownController(ctx context.Context, s *session, now node, brokerID int32) (*term, error) {
	if now.stat.EphemeralOwner != s.id() || now.stat.Version != 0 {
		return nil, nil
	}
	id, _, err := znode.DecodeController(now.data)
	if err != nil || id != brokerID {
		return nil, nil //nolint:nilerr // what can't be read isn't ours
	}
	n, err := s.get(ctx, controllerEpochPath)
	if err != nil {
		return nil, err
	}
	epoch, err := znode.DecodeNumber(n.data)
	if err != nil || n.stat.Mzxid != now.stat.Czxid {
		return nil, nil //nolint:nilerr // nor is it with an epoch that can't be read
	}
	c.mu.Lock()
	over := epoch <= c.ended
	c.mu.Unlock()
	if over {
		return nil, nil
	}
	return c.elected(s, brokerID, epoch, n.stat), nil
}

// ours says whether a session was or is this broker's.
func (c *coordination) ours(s *session, owner int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner == 0 {
		return false
	}
	for _, id := range c.earlier {
		if id == owner {
			return true
		}
	}
	return owner == s.id() || owner == c.trusted
}

// elected makes the term of an election that was won: epoch's node is as stat says.
func (c *coordination) elected(s *session, brokerID, epoch int32, stat *zk.Stat) *term {
	t := &term{c: c, broker: brokerID, epoch: epoch, version: stat.Version, czxid: stat.Mzxid, session: s, lost: make(chan struct{}), watch: newGroup()}
	c.points.add(t.watch, controllerPath, false, false, t.check)
	c.mu.Lock()
	c.term = t
	select {
	case <-s.over: // and whoever ends what belongs to it may have been here before
		c.endTerm(t)
	default:
	}
	c.mu.Unlock()
	c.points.open(t.watch)
	return t
}

// Controller reads who is controller.
func (c *coordination) Controller(ctx context.Context) (brokerID, epoch int32, err error) {
	err = c.read(ctx, "who is controller", func(ctx context.Context, s *session) error {
		brokerID, epoch = election.NoBroker, 0
		n, err := s.get(ctx, controllerPath)
		switch {
		case err == nil:
			if brokerID, _, err = znode.DecodeController(n.data); err != nil {
				return fmt.Errorf("%s: %w", controllerPath, err)
			}
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		n, err = s.get(ctx, controllerEpochPath)
		switch {
		case err == nil:
			epoch, err = znode.DecodeNumber(n.data)
			return err
		case errors.Is(err, zk.ErrNoNode):
			return nil
		}
		return err
	})
	if err != nil {
		return election.NoBroker, 0, err
	}
	return brokerID, epoch, nil
}

// term implements election.Term.
type term struct {
	c       *coordination
	broker  int32
	epoch   int32
	version int32 // of /controller_epoch while the term lasts
	czxid   int64 // of /controller
	session *session
	watch   *group
	lost    chan struct{}
	over    atomic.Bool // guarded by c.mu for writing

	// deputy says that the term is that of a controller elsewhere: this member writes on its behalf, and has nothing to end.
	// controller is then the version of /controller.
	deputy     bool
	controller int32
}

func (t *term) Epoch() int32          { return t.epoch }
func (t *term) Lost() <-chan struct{} { return t.lost }

// endTerm ends a term, unless it has ended. The caller holds the lock.
func (c *coordination) endTerm(t *term) {
	if !t.over.CompareAndSwap(false, true) || t.deputy {
		return
	}
	close(t.lost)
	c.term, c.ended = nil, max(c.ended, t.epoch)
	c.points.close(t.watch)
	<-c.seat
}

// check looks whether /controller is still this term's. It is called when something happened to it.
func (t *term) check(_ context.Context, now sight) {
	if now.exists && now.stat.Czxid == t.czxid && now.stat.Version == 0 {
		return
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.endTerm(t)
}

// Resign ends the term, and takes /controller away so that others needn't wait for the session's end.
func (t *term) Resign(ctx context.Context) error {
	c := t.c
	c.mu.Lock()
	over := t.over.Load()
	if !over {
		// The seat is kept until the node is gone: a campaign that begins meanwhile must not take it for its own.
		t.over.Store(true)
		close(t.lost)
		c.term, c.ended = nil, max(c.ended, t.epoch)
	}
	c.mu.Unlock()
	if over {
		return nil
	}
	defer func() { <-c.seat }()
	c.points.close(t.watch)
	limited, cancel := context.WithTimeoutCause(ctx, c.o.ConnectionTimeout, errTooLong)
	defer cancel()
	_, failed, err := t.session.multi(limited, []any{
		&zk.CheckVersionRequest{Path: t.session.path(controllerEpochPath), Version: t.version},
		&zk.DeleteRequest{Path: t.session.path(controllerPath), Version: 0},
	})
	if failed >= 0 {
		return nil // somebody else has taken it away, or over
	}
	select {
	case <-t.session.over:
		return nil // and the node goes with it
	default:
		return c.outcome(ctx, limited, "resign", err)
	}
}

// takeOver does what a controller of Kafka does first: it says that features are in use (none are), and ends what its predecessor
// left half done. That it can't is no obstacle.
func (c *coordination) takeOver(ctx context.Context, t *term) {
	_, err := t.session.get(ctx, featurePath)
	if errors.Is(err, zk.ErrNoNode) {
		_, failed, made := t.session.multi(ctx, []any{
			&zk.CheckVersionRequest{Path: t.session.path(controllerEpochPath), Version: t.version},
			&zk.CreateRequest{Path: t.session.path(featurePath), Data: znode.EncodeFeatures(), Acl: c.acl(featurePath)},
		})
		if err = made; failed >= 0 {
			err = nil
		}
	}
	if err == nil {
		err = c.finishRemovals(ctx, t)
	}
	if err != nil && !t.over.Load() && ctx.Err() == nil {
		c.log.Warn("could not tidy up after the controller before this one", "error", err)
	}
}
