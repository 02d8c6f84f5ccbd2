package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/plugin"
)

func newPlugins(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "plugins",
		Short: "List the implementations in this binary, with their options",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			t := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
			list(t, a.parts.storage)
			list(t, a.parts.election)
			list(t, a.parts.partitioner)
			list(t, a.parts.compression)
			list(t, a.parts.offsets)
			describeFactory(t, gatewayKey, a.parts.gateway)
			return t.Flush()
		},
	}
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
