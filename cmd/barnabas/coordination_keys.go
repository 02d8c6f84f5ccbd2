package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
)

func newCoordinationKeys(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Rotate the encryption keys of a cluster on memberlist while it runs",
		Long: `Changes the encryption_keys of all brokers while they run. Brokers keep what is changed until they stop, and start with the keys of their
configuration: so change that first, on all brokers, and then give the order.

  1. Write the new key behind the old one into encryption_keys of all brokers.   barnabas coordination keys add -c FILE
  2. Put the new key first.                                                      barnabas coordination keys use -c FILE
  3. Take the old key out.                                                       barnabas coordination keys remove OLD -c FILE

FILE is the configuration of any broker as it is by then. Keys are never shown: each has an id, a hash of it. A key on its way is encrypted
under the first one of FILE; to replace a key that strangers may have, who could listen, use TLS, or stop all brokers.

A broker that was down meanwhile, and has the keys of its configuration, is brought up to date by the same orders again.`,
	}
	cmd.AddCommand(newKeysList(a),
		newKeysOrder(a, "add", "Give all brokers the keys of the configuration, without using them", nil,
			func(ctx context.Context, v *voterAdmin, addresses, _ []string) (string, error) {
				return "all brokers have the keys of the configuration", v.AddKeys(ctx, addresses)
			}),
		newKeysOrder(a, "use", "Have all brokers use the first key of the configuration; refused unless all have it", nil,
			func(ctx context.Context, v *voterAdmin, addresses, _ []string) (string, error) {
				id, err := v.UseKey(ctx, addresses)
				return fmt.Sprintf("all brokers use key %s", id), err
			}),
		newKeysOrder(a, "remove", "Have all brokers forget a key; refused while one of them uses it", []string{"KEY"},
			func(ctx context.Context, v *voterAdmin, addresses, args []string) (string, error) {
				return fmt.Sprintf("no broker has key %s", args[0]), v.RemoveKey(ctx, addresses, args[0])
			}))
	return cmd
}

// newKeysOrder is a command that changes the keys of all brokers.
func newKeysOrder(a *app, use, short string, names []string, do func(ctx context.Context, v *voterAdmin, addresses, args []string) (string, error)) *cobra.Command {
	var v votersCommand
	ids := []string{"3fa0c41b9d27e586"} // an id as `keys list` shows them
	cmd := &cobra.Command{
		Use:     strings.Join(append([]string{use}, names...), " "),
		Short:   short,
		Example: "  barnabas coordination keys " + strings.Join(append([]string{use}, ids[:len(names)]...), " ") + " -c broker-1.yaml",
		Args:    exactly(names...),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, addresses, err := v.open(a)
			if err != nil {
				return err
			}
			defer admin.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), v.timeout)
			defer cancel()
			done, err := do(ctx, admin, addresses, args)
			if err == nil {
				fmt.Fprintln(a.out, done)
			}
			return err
		},
	}
	v.flags(cmd)
	return cmd
}

func newKeysList(a *app) *cobra.Command {
	var v votersCommand
	var out output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the ids of the keys that each broker has, and which one it uses",
		Example: "  barnabas coordination keys list -c broker-1.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			admin, addresses, err := v.open(a)
			if err != nil {
				return err
			}
			defer admin.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), v.timeout)
			defer cancel()
			all, err := admin.Keys(ctx, addresses)
			if err != nil {
				return err
			}
			if err := out.print(a, all, func() { a.printKeyHolders(all) }); err != nil {
				return err
			}
			var errs []error
			for _, h := range all {
				if h.Err != nil {
					errs = append(errs, fmt.Errorf("broker %s: %w", h.Broker, h.Err))
				}
			}
			return errors.Join(errs...)
		},
	}
	v.flags(cmd)
	out.flags(cmd)
	return cmd
}

func (a *app) printKeyHolders(all []keyHolder) {
	t := newTable()
	t.AppendHeader(table.Row{"broker", "address", "uses", "has, too"})
	for _, h := range all {
		used, more := "none", []string{}
		if h.Err != nil {
			used = "unknown"
		}
		for _, k := range h.Keys {
			if k.Used {
				used = k.ID
			} else {
				more = append(more, k.ID)
			}
		}
		t.AppendRow(table.Row{h.Broker, h.Address, used, strings.Join(more, ", ")})
	}
	fmt.Fprintln(a.out, t.Render())
}
