package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

func newPlugins(a *app) *cobra.Command {
	var from source
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "List the implementations in this binary, with their options",
		Long: `Lists the implementations in this binary by role, with their options. With a configuration it starts the plug-ins that
run as processes of their own, and lists what they say of themselves.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
			list(t, a.parts.storage)
			list(t, a.parts.election)
			list(t, a.parts.partitioner)
			list(t, a.parts.compression)
			list(t, a.parts.offsets)
			describeFactory(t, gatewayKey, a.parts.gateway)
			var err error
			if from.file != "" {
				err = a.listProcesses(cmd.Context(), t, from)
			}
			return errors.Join(err, t.Flush())
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "a YAML file, for the plug-ins that it names which run as processes of their own")
	return cmd
}

// hosted is an implementation that runs as a process of its own.
type hosted interface {
	plugin.Component
	// Describe gives what it calls itself, and its process: 0 when it doesn't run.
	Describe() (name, version string, pid int)
}

// listProcesses starts the processes that a configuration names, one after the other, and lists them.
func (a *app) listProcesses(ctx context.Context, w io.Writer, from source) error {
	c, err := a.load(from)
	if err != nil {
		return err
	}
	settings := plugin.Settings{Logger: slog.New(slog.DiscardHandler)}
	var errs []error
	show := func(role string, made any, err error) {
		p, ok := made.(hosted)
		if err == nil && ok {
			err = showProcess(ctx, w, role, p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", role, err))
		}
	}
	fmt.Fprintln(w, "processes")
	for _, choice := range c.partitioners {
		made, err := choice.New(partitioner.Settings{Settings: settings})
		show("partitioner "+choice.Name(), made, err)
	}
	for _, choice := range c.compression {
		made, err := choice.New(compression.Settings{Settings: settings})
		show("compression "+codecOf(choice), made, err)
	}
	if c.offsets.Name() == "remote" { // others need a log, even to be made
		made, err := c.offsets.New(offsets.Settings{Settings: settings})
		show("offsets", made, err)
	}
	return errors.Join(errs...)
}

// showProcess starts one process, lists it, and stops it.
func showProcess(ctx context.Context, w io.Writer, role string, p hosted) error {
	if err := p.Start(ctx); err != nil {
		return err
	}
	name, version, pid := p.Describe()
	if pid == 0 {
		name, version = "doesn't start", "its fallback serves"
	}
	fmt.Fprintf(w, "  %s\t%s %s, process %d\n", role, name, version, pid)
	return p.Stop(context.WithoutCancel(ctx))
}

// list prints one role: each implementation, and below it its options.
func list[S, T any](w io.Writer, registry plugin.Registry[S, T]) {
	fmt.Fprintf(w, "%s\n", registry.Role())
	for _, name := range registry.Names() {
		factory, err := registry.Get(name)
		if err != nil {
			continue // the name came from the registry itself
		}
		describeFactory(w, "  "+name, factory)
	}
}

// describeFactory prints a factory, and its options further in.
func describeFactory[S, T any](w io.Writer, name string, factory plugin.Factory[S, T]) {
	fmt.Fprintf(w, "%s\t%s\n", name, factory.Summary())
	for _, o := range factory.Options() {
		fmt.Fprintf(w, "    %s\t%s, default %s: %s\n", o.Name, o.Type, orNone(o.Default), o.Doc)
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
