package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/kill"
)

// killRounds is how often each storage's broker is killed.
const killRounds = 20

func (d *dev) killCommand() *cobra.Command {
	var storage string
	var rounds int
	c := &cobra.Command{
		Use:   "kill",
		Short: "Kill a broker under load, again and again, and see that nothing is lost",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return d.kill(c.Context(), storage, rounds) },
	}
	c.Flags().StringVar(&storage, "storage", "", "mmap or sendfile (default: one after the other)")
	c.Flags().IntVar(&rounds, "rounds", killRounds, "how many times each is killed")
	return c
}

func (d *dev) kill(ctx context.Context, storage string, rounds int) error {
	bin, err := d.tools.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return err
	}
	storages := []string{storage}
	if storage == "" {
		storages = []string{"mmap", "sendfile"}
	}
	for _, s := range storages {
		if err := d.killOne(ctx, bin, s, rounds); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (d *dev) killOne(ctx context.Context, bin, storage string, rounds int) error {
	dir, cleanup, err := d.env.TempDir("kill-")
	if err != nil {
		return err
	}
	got, err := kill.Run(ctx, kill.Options{
		Binary: bin, Dir: dir, Storage: storage, Rounds: rounds, Least: 200 * time.Millisecond, Most: 1500 * time.Millisecond, Say: d.env.Say,
	})
	if err != nil {
		return fmt.Errorf("%w\nthe files are in %s", err, dir)
	}
	cleanup()
	d.env.Say("%s: killed %d times; %d records acknowledged, each there once, in order; %d look-ups; %d segments with %d batches, %d index entries agree",
		storage, got.Kills, got.Acknowledged, got.Lookups, got.Files.Segments, got.Files.Batches, got.Files.OffsetEntries+got.Files.TimeEntries)
	return nil
}
