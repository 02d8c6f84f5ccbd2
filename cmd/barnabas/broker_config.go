package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// brokerConfigView is the configuration of a broker as it is printed for programs.
type brokerConfigView struct {
	Broker  *int32       `json:"broker"` // null for the default of all
	Configs []configView `json:"configs"`
}

func newBrokerConfig(a *app) *cobra.Command {
	var at remote
	var out output
	var change configChange
	var all bool
	cmd := &cobra.Command{
		Use:   "config [BROKER]",
		Short: "Show and change the dynamic configuration of a broker, or the default of all brokers",
		Long: `Shows what was set for a broker while it ran, or, without BROKER, for all brokers of the cluster. With --all-configs it shows what is in
force on the broker, and where it comes from. What was set for one broker goes over what was set for all, and that over the
broker's own file.

With --set, --append, --subtract or --unset it changes it. Not every property can be changed while a broker runs: the broker
refuses the others.`,
		Example: `  barnabas broker config
  barnabas broker config 1 --all-configs --output json
  barnabas broker config --set log.retention.ms=86400000
  barnabas broker config 2 --unset message.max.bytes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return wrong(fmt.Errorf("%s wants one broker, or none for all: %s", cmd.CommandPath(), cmd.UseLine()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []int32
			for _, arg := range args {
				id, err := parseBroker(arg)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			if all && len(ids) == 0 {
				return wrong(fmt.Errorf("--all-configs: name the broker: %s", cmd.UseLine()))
			}
			if err := out.check(); err != nil {
				return err
			}
			changes, err := change.changes()
			if err != nil {
				return err
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				if len(changes) == 0 {
					return a.showBrokerConfig(ctx, admin, out, ids, all)
				}
				alter := admin.AlterBrokerConfigs
				if change.validate {
					alter = admin.ValidateAlterBrokerConfigs
				}
				answers, err := alter(ctx, changes, ids...)
				what := "broker"
				if len(ids) == 0 {
					what = "the default of all brokers"
				}
				return a.changed(what, answers, err, change.validate)
			})
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	change.flags(cmd)
	cmd.Flags().BoolVar(&all, "all-configs", false, "the whole configuration, not only what was set while the broker ran")
	return cmd
}

// showBrokerConfig prints the configuration of one broker, or of all where there is no id.
func (a *app) showBrokerConfig(ctx context.Context, admin *kadm.Client, out output, ids []int32, all bool) error {
	described, err := admin.DescribeBrokerConfigs(ctx, ids...)
	if err != nil {
		return fmt.Errorf("describe the configuration: %w", err)
	}
	places := []string{"DYNAMIC_DEFAULT_BROKER_CONFIG"}
	view, what := brokerConfigView{}, "all brokers"
	if len(ids) > 0 {
		view.Broker, what = &ids[0], fmt.Sprintf("broker %d", ids[0])
		places = append(places, "DYNAMIC_BROKER_CONFIG")
	}
	if all {
		places = nil
	}
	for _, d := range described {
		if d.Err != nil {
			return fmt.Errorf("describe the configuration of %s: %w", what, detailed(d.Err, d.ErrMessage))
		}
		view.Configs = viewConfigs(d.Configs, places...)
	}
	return out.print(a, view, func() {
		if len(view.Configs) == 0 {
			fmt.Fprintf(a.out, "nothing was set for %s\n", what)
			return
		}
		fmt.Fprintln(a.out, configTable(view.Configs).Render())
	})
}
