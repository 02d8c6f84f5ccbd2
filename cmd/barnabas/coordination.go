package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/election"
)

func newCoordination(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "coordination",
		Short: "Move, back up, restore and recover what brokers agree on; see and change who votes",
		Long: `What the brokers of a cluster agree on (topics with their ids, assignments, states and epochs; configurations; positions of producer
ids and broker ids; the cluster's id) is kept by the coordination that ` + "`election`" + ` chooses. These commands take it out and put it in as
a whole. Records are not part of it: they stay in the log directories, and with them groups and their offsets, which are records.

Configurations are named by their files, as for ` + "`serve`" + `: each is that of any one broker of the cluster.`,
	}
	cmd.AddCommand(newCoordinationBackup(a), newCoordinationCopy(a), newCoordinationExport(a), newCoordinationImport(a), newCoordinationRestore(a),
		newCoordinationStatus(a), newCoordinationMembers(a), newCoordinationPromote(a), newCoordinationRemove(a),
		newCoordinationKeys(a), newCoordinationRecover(a), newCoordinationReset(a))
	return cmd
}

// interruptible ends the context at Ctrl-C or SIGTERM, so that what was begun is undone.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

func newCoordinationExport(a *app) *cobra.Command {
	var from source
	var with []string
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the state of a cluster whose brokers are stopped into a file",
		Long: `Writes all that the coordination keeps into a new file, exactly: for ` + "`coordination import`" + `. The brokers must be stopped, or what they
agree on next would be missing; for a copy of a cluster that runs, there is ` + "`coordination backup`" + `.

With memberlist each broker has a store of its own, and what was agreed on shows in those of a majority of the brokers that vote: name
enough of the others by --with, on machines where their data_dir can be read. With one that votes alone, its store is enough.

The file is text, one JSON object a line, with a checksum. It may hold secrets, if configurations do, and is readable by its owner alone.`,
		Example: "  barnabas coordination export state.jsonl -c broker-1.yaml --with broker-2.yaml",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.exportTo(cmd.Context(), from, with, args[0], false)
		},
	}
	withFlag(cmd, &with)
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file of a broker")
	from.flagSet(cmd)
	return cmd
}

func newCoordinationBackup(a *app) *cobra.Command {
	var from source
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state of a cluster, which may be running, into a file",
		Long: `Writes all that the coordination keeps into a new file, for ` + "`coordination restore`" + `. Brokers may be running.

A backup is soon older than the cluster. Take one after topics were created or deleted, partitions moved, or configurations changed.`,
		Example: "  barnabas coordination backup state.jsonl -c broker-1.yaml",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.exportTo(cmd.Context(), from, nil, args[0], true)
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file of a broker")
	from.flagSet(cmd)
	return cmd
}

// withFlag adds --with to a command.
func withFlag(cmd *cobra.Command, with *[]string) {
	cmd.Flags().StringSliceVar(with, "with", nil, "the YAML files of further brokers, whose stores are needed to know what was agreed on")
}

func (a *app) exportTo(ctx context.Context, from source, with []string, path string, living bool) error {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	if _, err := os.Lstat(path); err == nil {
		return wrong(fmt.Errorf("%s exists: name a new file", path))
	}
	var dirs lockedDirs
	defer dirs.unlock()
	p, err := a.openPlace(from, &dirs, !living)
	if err != nil {
		return err
	}
	e, err := a.takeOut(ctx, p, with, &dirs, election.ExportOptions{Living: living})
	if err != nil {
		return err
	}
	info := election.DumpInfo{Source: p.c.election.Name(), Taken: time.Now(), Living: living}
	if err := writeFile(path, func(w io.Writer) error { return election.WriteDump(w, info, e.Dump) }); err != nil {
		return err
	}
	rows := append([][2]string{{"from", p.String()}, {"to", path}}, dumpRows(&e.Dump)...)
	return printRows(a.out, append(rows, omittedRows(e.Omitted)...))
}

// writeFile makes a file durable as a whole, or leaves none. An existing one is not replaced.
func writeFile(path string, write func(w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename, it never replaces
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// importing is how a command puts a dump into a coordination.
type importing struct {
	replace bool
	dryRun  bool
	force   bool
}

func (i *importing) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&i.replace, "replace", false, "take the place of an earlier state of the same cluster, which is lost")
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "say what would be done, and whether it could be begun, and change nothing")
	cmd.Flags().BoolVar(&i.force, "force", false, "go on when partitions will have no leader on the one broker that there will be")
}

func newCoordinationImport(a *app) *cobra.Command {
	var to source
	var how importing
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make what `coordination export` wrote the state of a cluster",
		Long: `Puts the state in a file into a coordination that is empty, as a whole or not at all. No broker may run. Epochs and ids go on above those
in the file.

The file must be the last word about the cluster: if brokers ran after it was written, use ` + "`coordination restore`" + `.`,
		Example: "  barnabas coordination import state.jsonl -c broker-1-new.yaml --dry-run",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.importFrom(cmd.Context(), to, args[0], how, false)
		},
	}
	cmd.Flags().StringVarP(&to.file, "config", "c", "", "the YAML file of a broker")
	to.flagSet(cmd)
	how.flags(cmd)
	return cmd
}

func newCoordinationRestore(a *app) *cobra.Command {
	var to source
	var how importing
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring back a cluster's state from a backup, when the coordination has lost it",
		Long: `Puts the state in a file that is older than the cluster into a coordination that is empty. No broker may run.

Brokers went on after the backup, and what they agreed on since is lost: topics that were created have logs that nobody serves, topics that
were deleted come back empty, and a replica that has fallen behind since counts as in sync as it did then; if it becomes leader, records
that were acknowledged without it are lost. So this is for when the coordination itself is lost, and before clients are let in, compare.

Leader epochs, controller epochs, producer ids and generated broker ids go on far above those in the file, so that none is given twice.`,
		Example: "  barnabas coordination restore state.jsonl -c broker-1.yaml --dry-run",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.importFrom(cmd.Context(), to, args[0], how, true)
		},
	}
	cmd.Flags().StringVarP(&to.file, "config", "c", "", "the YAML file of a broker")
	to.flagSet(cmd)
	how.flags(cmd)
	return cmd
}

func (a *app) importFrom(ctx context.Context, to source, path string, how importing, raise bool) error {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	f, err := os.Open(path)
	if err != nil {
		return wrong(err)
	}
	info, d, err := election.ReadDump(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if info.Living && !raise {
		return fmt.Errorf("%s was written while brokers were running, which have gone on since: `coordination restore` puts it in with epochs above theirs", path)
	}
	if raise {
		if err := d.Raise(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	var dirs lockedDirs
	defer dirs.unlock()
	p, err := a.openPlace(to, &dirs, true)
	if err != nil {
		return err
	}
	origin := fmt.Sprintf("%s (%s, %s)", path, info.Source, info.Taken.Format(time.RFC3339))
	if err := a.putIn(ctx, p, &d, how, origin, nil); err != nil {
		return err
	}
	if raise {
		fmt.Fprintf(a.err, "this is the state of %s: what brokers agreed on since is lost\n", info.Taken.Format(time.RFC3339))
	}
	return nil
}

func newCoordinationCopy(a *app) *cobra.Command {
	var from, to source
	var with []string
	var how importing
	cmd := &cobra.Command{
		Use:   "copy --from A.yaml --to B.yaml",
		Short: "Copy the state of a cluster from one coordination to another",
		Long: `Copies all that the coordination of one configuration keeps into that of another one: of another kind, or elsewhere. Both files are a broker's;
they differ in ` + "`election`" + `, and name the same log directories. All brokers must be stopped. The target must be empty, and is as empty
as before when the copy fails.

Afterwards start brokers with the new configuration only: on the old one they would go on from the same epochs, and tell clients another
story. The way back is another copy, with --replace.

From memberlist, --with names the files of further brokers, as for ` + "`coordination export`" + `. To memberlist, the broker that the file is of votes
alone at first; the others join it, and ` + "`coordination promote`" + ` lets them vote.`,
		Example: "  barnabas coordination copy --from broker-1.yaml --to broker-1-new.yaml --dry-run",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from.file == "" || to.file == "" {
				return wrong(errors.New("want --from and --to"))
			}
			return a.copyCoordination(cmd.Context(), from, with, to, how)
		},
	}
	cmd.Flags().StringVar(&from.file, "from", "", "the YAML file of a broker as it was")
	cmd.Flags().StringVar(&to.file, "to", "", "the YAML file of a broker as it is to be")
	withFlag(cmd, &with)
	how.flags(cmd)
	return cmd
}

func (a *app) copyCoordination(ctx context.Context, from source, with []string, to source, how importing) error {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	var dirs lockedDirs
	defer dirs.unlock()
	source, err := a.openPlace(from, &dirs, true)
	if err != nil {
		return err
	}
	target, err := a.openPlace(to, &dirs, true)
	if err != nil {
		return err
	}
	e, err := a.takeOut(ctx, source, with, &dirs, election.ExportOptions{})
	if err != nil {
		return err
	}
	return a.putIn(ctx, target, &e.Dump, how, source.String(), e.Omitted)
}
