package main

import (
	"context"
	"errors"
	"fmt"
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
	var out output
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "List the implementations in this binary, with their options",
		Long: `Lists the implementations in this binary by role, with their options. With a configuration it starts the plug-ins that
run as processes of their own, and lists what they say of themselves.`,
		Example: `  barnabas plugins
  barnabas plugins -c barnabas.yaml --output json | jq '.processes'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			v := a.viewPlugins()
			var failed error
			if from.file != "" {
				v.Processes, failed = a.startProcesses(cmd.Context(), from)
			}
			if v.Processes == nil && failed != nil {
				return failed // it's the configuration that is wrong
			}
			return errors.Join(failed, out.print(a, v, func() { a.printPlugins(v) }))
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "a YAML file, for the plug-ins that it names which run as processes of their own")
	out.flags(cmd)
	return cmd
}

// pluginsView is what can be chosen from, as it is printed for programs.
type pluginsView struct {
	Roles     []roleView    `json:"roles"`
	Processes []processView `json:"processes"` // null when no configuration was given
}

type roleView struct {
	Role            string               `json:"role"`
	Implementations []implementationView `json:"implementations"`
}

type implementationView struct {
	Name    string       `json:"name"`
	Summary string       `json:"summary"`
	Options []optionView `json:"options"`
}

type optionView struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"default"` // as it would stand in the YAML file, "" for none
	Doc     string `json:"doc"`
}

// processView is a plug-in that runs as a process of its own.
type processView struct {
	Plugin  string `json:"plugin"` // its role, and its name there
	Name    string `json:"name"`   // what it calls itself
	Version string `json:"version"`
	Process int    `json:"process"` // 0: it doesn't start, and its fallback serves
}

func (a *app) viewPlugins() pluginsView {
	return pluginsView{Roles: []roleView{
		viewRole(a.parts.storage),
		viewRole(a.parts.election),
		viewRole(a.parts.partitioner),
		viewRole(a.parts.compression),
		viewRole(a.parts.offsets),
		{Role: gatewayKey, Implementations: []implementationView{viewFactory(gatewayKey, a.parts.gateway)}},
	}}
}

// viewRole lists the implementations of one role.
func viewRole[S, T any](registry plugin.Registry[S, T]) roleView {
	v := roleView{Role: registry.Role(), Implementations: []implementationView{}}
	for _, name := range registry.Names() {
		if factory, err := registry.Get(name); err == nil { // always: the name came from the registry itself
			v.Implementations = append(v.Implementations, viewFactory(name, factory))
		}
	}
	return v
}

func viewFactory[S, T any](name string, factory plugin.Factory[S, T]) implementationView {
	v := implementationView{Name: name, Summary: factory.Summary(), Options: []optionView{}}
	for _, o := range factory.Options() {
		v.Options = append(v.Options, optionView(o))
	}
	return v
}

// printPlugins prints each role, in it each implementation, and below that its options.
func (a *app) printPlugins(v pluginsView) {
	t := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, role := range v.Roles {
		indent := "  "
		if role.Role == gatewayKey { // there is only one
			indent = ""
		} else {
			fmt.Fprintln(t, role.Role)
		}
		for _, one := range role.Implementations {
			fmt.Fprintf(t, "%s%s\t%s\n", indent, one.Name, one.Summary)
			for _, o := range one.Options {
				fmt.Fprintf(t, "    %s\t%s, default %s: %s\n", o.Name, o.Type, orNone(o.Default), o.Doc)
			}
		}
	}
	if v.Processes != nil {
		fmt.Fprintln(t, "processes")
	}
	for _, p := range v.Processes {
		if p.Process == 0 {
			fmt.Fprintf(t, "  %s\tdoesn't start: its fallback serves\n", p.Plugin)
			continue
		}
		fmt.Fprintf(t, "  %s\t%s %s, process %d\n", p.Plugin, p.Name, p.Version, p.Process)
	}
	_ = t.Flush() // as every table, to a place that takes it
}

// hosted is an implementation that runs as a process of its own.
type hosted interface {
	plugin.Component
	// Describe gives what it calls itself, and its process: 0 when it doesn't run.
	Describe() (name, version string, pid int)
}

// startProcesses starts the processes that a configuration names, one after the other, and lists them: nil when the configuration is
// wrong, those that could be started otherwise.
func (a *app) startProcesses(ctx context.Context, from source) ([]processView, error) {
	c, err := a.load(from)
	if err != nil {
		return nil, err
	}
	settings := plugin.Settings{Logger: slog.New(slog.DiscardHandler)}
	list := []processView{}
	var errs []error
	start := func(name string, made any, err error) {
		p, ok := made.(hosted)
		if err == nil && ok {
			var v processView
			if v, err = askProcess(ctx, name, p); err == nil {
				list = append(list, v)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	for _, choice := range c.partitioners {
		made, err := choice.New(partitioner.Settings{Settings: settings})
		start("partitioner "+choice.Name(), made, err)
	}
	for _, choice := range c.compression {
		made, err := choice.New(compression.Settings{Settings: settings})
		start("compression "+codecOf(choice), made, err)
	}
	if c.offsets.Name() == "remote" { // others need a log, even to be made
		made, err := c.offsets.New(offsets.Settings{Settings: settings})
		start("offsets", made, err)
	}
	return list, errors.Join(errs...)
}

// askProcess starts one process, asks it what it is, and stops it.
func askProcess(ctx context.Context, plugin string, p hosted) (processView, error) {
	if err := p.Start(ctx); err != nil {
		return processView{}, err
	}
	v := processView{Plugin: plugin}
	v.Name, v.Version, v.Process = p.Describe()
	return v, p.Stop(context.WithoutCancel(ctx))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
