package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/log/inspect"
)

// voterStore is a stopped broker's store of a coordination with voters.
type voterStore interface {
	election.Coordination
	Recover(ctx context.Context, o recoverOptions) (recovery, error)
	SetAside(ctx context.Context, confirmed bool) (setAside, error)
}

// openVoterStore opens a configuration whose broker is stopped, and can't be started until the directories are unlocked.
func (a *app) openVoterStore(from source, dirs *lockedDirs) (*place, voterStore, error) {
	p, err := a.openPlace(from, dirs, true)
	if err != nil {
		return nil, nil, err
	}
	store, ok := p.coordination.(voterStore)
	if !ok {
		return nil, nil, wrong(fmt.Errorf("%s: its brokers agree through %s: this is about clusters on %s", p.file, p.c.election.Name(), votersPlugin))
	}
	return p, store, nil
}

func newCoordinationRecover(a *app) *cobra.Command {
	var from source
	var with []string
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Bring back a cluster on memberlist whose voters are lost for good, from the store of one broker: WHAT OTHERS HAD AGREED ON IS LOST",
		Long: `Makes the store of one stopped broker that of a new raft cluster, in which this broker alone votes. This is for a cluster of which a
majority of the voters is lost for good, with their stores. Where enough voters can be started again, start them: nothing is lost then.

What the store holds is kept: topics with their ids, assignments, states, configurations. What the others had agreed on without this broker
is lost, and nobody can tell what that was: topics may be missing that exist, or be back that were deleted, and a replica may count as in
sync that has fallen behind since; when it becomes leader, records that were acknowledged without it are lost. So recover the store that has
most, on the machine where it is: name the others that are left by --with, and the command refuses where one of them has more.

It is refused while a broker of the former cluster answers, and before anything is changed the directory of the store is copied as it is; to undo
the recovery, put the copy back in its place. Without --accept-loss the command says what it has found, and changes nothing.

Controller epochs, leader epochs, broker epochs and ids go on far above any that the former cluster can have used, and its servers are
strangers to the new one. To let their brokers join it, set their stores aside (coordination reset), start them, and give votes to two of
them (coordination promote).`,
		Example: "  barnabas coordination recover -c broker-1.yaml --with broker-4.yaml\n  barnabas coordination recover -c broker-1.yaml --accept-loss",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.recoverCoordination(cmd.Context(), from, with, o)
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file of the broker whose store is recovered")
	from.flagSet(cmd)
	cmd.Flags().StringSliceVar(&with, "with", nil, "the YAML files of further brokers whose stores are left: none of them may have more")
	cmd.Flags().StringVar(&o.Backup, "backup", "", "the new directory to copy the store into before it is changed (default: beside the store's, with the time in its name)")
	cmd.Flags().BoolVar(&o.Confirmed, "accept-loss", false, "do it: what only lost brokers had agreed on is lost")
	return cmd
}

func (a *app) recoverCoordination(ctx context.Context, from source, with []string, o recoverOptions) error {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	var dirs lockedDirs
	defer dirs.unlock()
	p, store, err := a.openVoterStore(from, &dirs)
	if err != nil {
		return err
	}
	for _, file := range with {
		_, other, err := a.openVoterStore(source{file: file}, &dirs)
		if err != nil {
			return err
		}
		o.With = append(o.With, other)
	}
	look := o
	look.Confirmed = false
	r, err := store.Recover(ctx, look)
	if err != nil {
		return p.explain(err)
	}
	if err := p.matches(&r.Dump); err != nil {
		return err
	}
	if o.Confirmed {
		if r, err = store.Recover(ctx, o); err != nil {
			return p.explain(err)
		}
	}
	if err := printRows(a.out, p.recoveryRows(&r)); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "what was agreed on after entry %d of term %d is lost, and what that was isn't known; what is in the store may never have been agreed on\n", r.Index, r.Term)
	if r.Backup == "" {
		return errors.New("nothing was changed; to recover this store, and to lose what others had agreed on, add --accept-loss")
	}
	fmt.Fprintf(a.err, "start this broker; then, for each other one that has a store of the former cluster, `coordination reset` and start it, and `coordination promote` two of them\n")
	return nil
}

// recoveryRows describes a recovery for people.
func (p *place) recoveryRows(r *recovery) [][2]string {
	vote := "it had a vote"
	if !r.Voted {
		vote = "it had no vote"
	}
	rows := [][2]string{{"store", p.String()}, {"server", r.Server + "; " + vote},
		{"entries", fmt.Sprintf("up to %d of term %d", r.Index, r.Term)}, {"former raft cluster", r.Former}}
	for _, s := range r.Missing {
		rows = append(rows, [2]string{"voted, too", s})
	}
	for _, s := range r.Older {
		rows = append(rows, [2]string{"has no more", s})
	}
	for _, s := range r.Waiting {
		rows = append(rows, [2]string{"waits for a cluster", s})
	}
	rows = append(rows, dumpRows(&r.Dump)...)
	if n := p.outOfSync(&r.Dump); n > 0 {
		rows = append(rows, [2]string{"without a leader at first", counted(n, "partition") + ", of which this broker has no replica in sync"})
	}
	if strays := p.strays(&r.Dump); len(strays) > 0 {
		rows = append(rows, [2]string{"lost for certain", fmt.Sprintf("%d logs here are of topics that the store doesn't know: %s", len(strays), abridged(strays))})
	}
	if later := p.later(&r.Dump); len(later) > 0 {
		rows = append(rows, [2]string{"lost for certain", fmt.Sprintf("%d logs here have had leaders that the store doesn't know, so who is in sync isn't known: %s", len(later), abridged(later))})
	}
	if r.Backup == "" {
		return append(rows, [2]string{"done", "nothing"})
	}
	return append(rows, [2]string{"new raft cluster", r.RaftCluster}, [2]string{"backup", r.Backup})
}

// brokerID is the broker's id, -1 when it has none yet.
func (p *place) brokerID() int32 {
	id := p.c.broker.BrokerID
	for _, m := range p.metas {
		if id < 0 {
			id = m.BrokerID
		}
	}
	return id
}

// outOfSync is how many partitions have no in-sync replica on this broker.
func (p *place) outOfSync(d *election.Dump) (n int) {
	id := p.brokerID()
	for i := range d.Topics {
		for _, part := range d.Topics[i].Partitions {
			if part.State != nil && !slices.Contains(part.State.ISR, id) || part.State == nil && !slices.Contains(part.Replicas, id) {
				n++
			}
		}
	}
	return n
}

// later lists logs in the broker's directories in which there is a leader epoch that a recovered state, whose epochs are raised, doesn't come from.
func (p *place) later(d *election.Dump) (names []string) {
	for i := range d.Topics {
		for n, part := range d.Topics[i].Partitions {
			for _, dir := range p.dirs {
				path := filepath.Join(dir, d.Topics[i].Name+"-"+strconv.Itoa(n))
				text, err := os.ReadFile(filepath.Join(path, "leader-epoch-checkpoint"))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				epochs, rerr := inspect.ReadEpochs(text)
				if err != nil || rerr != nil || len(epochs) == 0 {
					continue // its broker will complain
				}
				known := int32(-1)
				if part.State != nil {
					known = part.State.LeaderEpoch - election.RaisedEpochs
				}
				if epochs[len(epochs)-1].Epoch > known {
					names = append(names, path)
				}
			}
		}
	}
	return names
}

func newCoordinationReset(a *app) *cobra.Command {
	var from source
	var confirmed bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Set the store of a stopped broker on memberlist aside, so that it joins a cluster as another server, without a vote",
		Long: `Renames the directory of the store, and removes nothing. When the broker starts again it has no store, and joins the cluster that
` + "`join`" + ` names: for a store that is damaged, for one of a cluster that was recovered from another one, and before an import that is to take the
place of a cluster. Records aren't touched.

It is refused for a broker that votes, as far as the others say or while none of them has a leader: take its vote first, or say --accept-loss.`,
		Example: "  barnabas coordination reset -c broker-4.yaml",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.resetCoordination(cmd.Context(), from, confirmed)
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file of the broker whose store is set aside")
	from.flagSet(cmd)
	cmd.Flags().BoolVar(&confirmed, "accept-loss", false, "go on though the store may be the one that the cluster needs")
	return cmd
}

func (a *app) resetCoordination(ctx context.Context, from source, confirmed bool) error {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	var dirs lockedDirs
	defer dirs.unlock()
	p, store, err := a.openVoterStore(from, &dirs)
	if err != nil {
		return err
	}
	done, err := store.SetAside(ctx, confirmed)
	if err != nil {
		return p.explain(err)
	}
	rows := [][2]string{{"store", p.String()}}
	if done.Server != "" {
		rows = append(rows, [2]string{"server", done.Server})
	}
	if done.Damage != nil {
		rows = append(rows, [2]string{"damage", strings.ReplaceAll(done.Damage.Error(), "\n", "; ")})
	}
	return printRows(a.out, append(rows, [2]string{"set aside", done.To}))
}
