package gossip

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// ErrNotNow says that a store isn't recovered, or isn't set aside: it could make two clusters of one, or lose what isn't lost.
var ErrNotNow = errors.New("refused")

// RecoverOptions say how Recover goes on.
type RecoverOptions struct {
	// With are coordinations of further members whose stores are at hand, as little started as this one.
	With []election.Coordination
	// Backup is the directory that the store is copied into before it is changed; it must not exist. Empty is one beside the store's.
	Backup string
	// Confirmed says that what is unknown may be lost. Without it nothing is changed.
	Confirmed bool
}

// Recovery is what Recover has found, and done.
type Recovery struct {
	Server      string        // whose store it is
	Voted       bool          // whether it had a vote
	Former      string        // the raft cluster that it was of
	RaftCluster string        // the one that it is of now; empty when nothing was changed
	Index, Term uint64        // of the last entry in the store: what was agreed on after that is lost
	Missing     []string      // the other servers that voted, whose entries are unknown
	Older       []string      // those whose stores are at hand, and have less than this one
	Waiting     []string      // servers without a store, which wait for a cluster to join
	Dump        election.Dump // the state, with epochs and positions of ids raised
	Backup      string        // the directory with the store as it was; empty when nothing was changed
}

// Recover makes the store of this server, which is stopped, that of a new raft cluster in which it alone votes: when most of the voters of the former
// one are lost for good. All that is in the store is kept, what was never committed included, and what only others had is lost. The cluster's
// own id stays, and epochs and ids go on far above any that were in use.
//
// ErrNotNow when a server of the former cluster, or of one that took its place, answers; when the stores at hand are those of a majority, or
// one of them has more than this one; and for a store of a server that votes alone. ErrInUse while a process has a store open, ErrEmpty when
// there is none, consensus.ErrCorrupt and others when it, or the backup, can't be read or written. Then nothing is changed. After a crash Recover
// is called again, and goes on from the backup; brokers don't start before that.
func (c *coordination) Recover(ctx context.Context, o RecoverOptions) (Recovery, error) {
	r, err := c.recover(ctx, o)
	if err != nil {
		return Recovery{}, fmt.Errorf("memberlist: recover: %w", err)
	}
	return r, nil
}

func (c *coordination) recover(ctx context.Context, o RecoverOptions) (r Recovery, err error) {
	at, err := c.enter(ctx)
	if err != nil {
		return r, err
	}
	if at == nil {
		return r, fmt.Errorf("%w: %s", election.ErrEmpty, c.server.(*host).dir)
	}
	defer func() { err = errors.Join(err, at.unlock()) }()
	if err := at.resume(); err != nil {
		return r, err
	}
	if at.stored == nil || at.stored.Machine.Kept().ClusterID == "" {
		return r, fmt.Errorf("%w: %s", election.ErrEmpty, at.h.dir)
	}
	r = Recovery{Server: at.id, Former: string(at.cluster), Index: at.stored.Index, Term: at.stored.Term, Dump: at.stored.Machine.Kept().Export()}
	for _, s := range at.stored.Servers {
		r.Voted = r.Voted || s.Voter && s.ID == at.id
	}
	if err := errors.Join(r.Dump.Validate(), r.Dump.Raise()); err != nil {
		return r, err
	}
	if r.Missing = otherVoters(at.stored.Servers, at.id); len(r.Missing) == 0 {
		return r, fmt.Errorf("%w: nothing has to be recovered: no other server votes, start its broker", ErrNotNow)
	}
	if err := at.compare(ctx, o.With, &r); err != nil {
		return r, err
	}
	if r.Waiting, err = at.othersAreGone(ctx); err != nil || !o.Confirmed {
		return r, err
	}
	plan := &unfinished{Index: r.Index + 1, Term: r.Term + 1, Backup: o.Backup}
	if at.unfinished != nil {
		plan.Backup = at.unfinished.Backup
	} else if err := at.backUp(plan); err != nil {
		return r, fmt.Errorf("no backup could be made, and so nothing was changed: %w", err)
	}
	if err := at.write(ctx, plan, &r.Dump); err != nil {
		return r, err
	}
	now, err := member.ReadIdentity(at.h.dir)
	if err != nil {
		return r, err
	}
	r.RaftCluster, r.Backup = string(now.Cluster()), plan.Backup
	return r, nil
}

// resume takes the store from the backup, when its recovery was begun and not finished.
func (o *offline) resume() (err error) {
	switch {
	case o.unfinished == nil:
		return nil
	case o.unfinished.Backup == "":
		return o.unfinished.err(o.h.dir)
	}
	former, err := member.ReadIdentity(o.unfinished.Backup)
	if err != nil {
		return err
	}
	o.cluster = former.Cluster()
	o.stored, err = consensus.ReadStore(o.unfinished.Backup, o.h.log)
	return err
}

// compare looks at the stores that are at hand, besides this one.
func (o *offline) compare(ctx context.Context, with []election.Coordination, r *Recovery) (err error) {
	have := map[string]bool{o.id: true}
	for _, w := range with {
		c, ok := w.(*coordination)
		if !ok {
			return fmt.Errorf("%w: another kind of coordination", election.ErrInvalid)
		}
		other, err := c.enter(ctx)
		if err != nil {
			return err
		}
		if other == nil {
			continue
		}
		defer other.unlock() //nolint:errcheck // of a directory that was only read
		switch {
		case other.stored == nil:
			continue
		case other.cluster != o.cluster:
			return fmt.Errorf("%w: %s is of the raft cluster %s, this store of %s", ErrNotNow, other.h.dir, other.cluster, o.cluster)
		case other.stored.Beyond(o.stored):
			return fmt.Errorf("%w: the store in %s has more, entries up to %d of term %d, than this one, up to %d of term %d: recover that one",
				ErrNotNow, other.h.dir, other.stored.Index, other.stored.Term, o.stored.Index, o.stored.Term)
		}
		have[other.id] = true
		r.Older = append(r.Older, fmt.Sprintf("%s in %s, up to entry %d of term %d", other.id, other.h.dir, other.stored.Index, other.stored.Term))
	}
	if err := majority(o.stored.Servers, have); err == nil {
		return fmt.Errorf("%w: the stores of a majority of the voters are at hand: start their brokers, and nothing is lost", ErrNotNow)
	}
	return nil
}

// backUp copies the directory to where the plan says, or beside it, and sees that the copy can be read. It says in the plan where that is.
func (o *offline) backUp(plan *unfinished) (err error) {
	if plan.Backup == "" {
		plan.Backup = filepath.Clean(o.h.dir) + ".before-recovery-" + time.Now().UTC().Format("20060102T150405Z")
	}
	if plan.Backup, err = filepath.Abs(plan.Backup); err != nil {
		return err
	}
	if err := os.Mkdir(plan.Backup, 0o700); err != nil { // the state may hold secrets
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(plan.Backup))
		}
	}()
	if err := os.CopyFS(plan.Backup, os.DirFS(o.h.dir)); err != nil {
		return err
	}
	if err := filepath.WalkDir(plan.Backup, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, durable(path))
	}); err != nil {
		return err
	}
	if err := durable(filepath.Dir(plan.Backup)); err != nil {
		return err
	}
	copied, err := consensus.ReadStore(plan.Backup, o.h.log)
	if err != nil {
		return err
	}
	if copied == nil || copied.Index != o.stored.Index || copied.Term != o.stored.Term {
		return fmt.Errorf("%s isn't what was copied there", plan.Backup)
	}
	_, err = member.ReadIdentity(plan.Backup)
	return err
}

// Aside is what SetAside has found, and done.
type Aside struct {
	Server string // whose store it is; empty when that can't be read
	Damage error  // why the store can't be read, if so
	To     string // where it is now; empty when nothing was changed
}

// SetAside renames the directory of the store of this server, which is stopped, so that its broker comes back as another server, without a vote. A
// damaged store is set aside, too, and nothing is removed.
//
// ErrNotNow, unless confirmed, for a store of a server that has a vote, as far as the others say, or without others that have a leader, the
// store. ErrInUse while a process has it open, ErrEmpty when there is none. Then nothing is changed.
func (c *coordination) SetAside(ctx context.Context, confirmed bool) (Aside, error) {
	a, err := c.setAside(ctx, confirmed)
	if err != nil {
		return Aside{}, fmt.Errorf("memberlist: set aside: %w", err)
	}
	return a, nil
}

func (c *coordination) setAside(ctx context.Context, confirmed bool) (a Aside, err error) {
	at, err := c.lock(ctx)
	if err != nil {
		return a, err
	}
	if at == nil {
		return a, fmt.Errorf("%w: %s", election.ErrEmpty, c.server.(*host).dir)
	}
	defer func() { err = errors.Join(err, at.unlock()) }()
	a.Damage = at.read()
	a.Server = at.id
	if a.Damage == nil && at.id == "" {
		entries, err := os.ReadDir(at.h.dir)
		if err != nil || len(entries) == 0 {
			return a, errors.Join(fmt.Errorf("%w: %s", election.ErrEmpty, at.h.dir), err)
		}
		a.Damage = fmt.Errorf("%s has no %s", at.h.dir, member.IdentityFile)
	}
	if !confirmed {
		if err := at.spared(ctx); err != nil {
			return a, err
		}
	}
	to := filepath.Clean(at.h.dir) + ".aside-" + time.Now().UTC().Format("20060102T150405Z")
	if _, err := os.Lstat(to); err == nil {
		return a, fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	if err := os.Rename(at.h.dir, to); err != nil {
		return a, fmt.Errorf("%w: where the directory is a disk of its own, move what is in it elsewhere by hand", err)
	}
	a.To = to
	return a, durable(filepath.Dir(to))
}

// spared says whether the cluster can do without this store: nil when its server has no vote.
func (o *offline) spared(ctx context.Context) error {
	if o.damagedOrVotes() {
		others, err := o.hear(ctx)
		if err != nil {
			return err
		}
		if o.id == "" {
			return fmt.Errorf("%w: whose store this is can't be read: see that `coordination members` of another broker doesn't show it as a voter, and confirm", ErrNotNow)
		}
		for _, s := range others {
			if s.Leader == "" {
				continue
			}
			for _, m := range s.Members {
				if m.Server == o.id && m.Raft != "follower" && m.Raft != "none" {
					return fmt.Errorf("%w: server %s votes: take its vote first (coordination remove %s)", ErrNotNow, o.id, o.id)
				}
			}
			return nil // who leads knows who votes; one that took the place of the former cluster doesn't know this server
		}
		return fmt.Errorf("%w: as far as is known server %s votes, and no server answers that has a leader: its store may be what the cluster has to be recovered from", ErrNotNow, o.id)
	}
	return nil
}

func (o *offline) damagedOrVotes() bool {
	if o.stored == nil {
		return o.unfinished != nil || o.cluster != "" || o.id == ""
	}
	for _, s := range o.stored.Servers {
		if s.Voter && s.ID == o.id {
			return true
		}
	}
	return false
}
