package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

func newTopicAlter(a *app) *cobra.Command {
	var at remote
	var change configChange
	cmd := &cobra.Command{
		Use:   "alter TOPIC...",
		Short: "Change the configuration of topics",
		Long: `Changes configurations of topics; others stay as they are. Each topic is changed as a whole or not at all.

--unset takes back what was set for the topic, so that the broker's value counts again. ` + "`barnabas topic describe --all-configs`" + `
shows what is in force, and ` + "`barnabas topic add-partitions`" + ` gives topics more partitions.`,
		Example: `  barnabas topic alter clicks --set retention.ms=86400000 --set compression.type=zstd
  barnabas topic alter clicks users --append cleanup.policy=compact --validate
  barnabas topic alter clicks --unset retention.ms`,
		Args: some("topics"),
		RunE: func(cmd *cobra.Command, names []string) error {
			changes, err := change.changes()
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				return wrong(errors.New("nothing to change: want --set, --append, --subtract or --unset"))
			}
			return at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
				alter := admin.AlterTopicConfigs
				if change.validate {
					alter = admin.ValidateAlterTopicConfigs
				}
				answers, err := alter(ctx, changes, once(names)...)
				return a.changed("topic", answers, err, change.validate)
			})
		},
	}
	at.flags(cmd)
	change.flags(cmd)
	return cmd
}
