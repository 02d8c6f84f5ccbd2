package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// healthAnswer is what an admin server answers about health.
type healthAnswer struct {
	Status string        `json:"status"`
	Checks []healthCheck `json:"checks"`
}

type healthCheck struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func newHealth(a *app) *cobra.Command {
	var at watched
	var out output
	cmd := &cobra.Command{
		Use:   "health [live|ready|all]",
		Short: "Check whether a broker is alive, ready, and well",
		Long: `Asks a broker's admin server how it is, and fails with exit code 1 when a check does: for health checks of containers, whose images
have no curl.

  live   the process is of use; it doesn't depend on the cluster
  ready  the broker serves clients (the default)
  all    also what is only worth a look, which fails nothing`,
		Example: "  barnabas health\n  barnabas health live --admin 127.0.0.1:9644",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && healthPaths()[args[0]] == "" {
				return wrong(fmt.Errorf("want live, ready or all, not %q", args))
			}
			return nil
		},
		ValidArgs: []string{"live", "ready", "all"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(out.check(), at.check()); err != nil {
				return err
			}
			which := "ready"
			if len(args) > 0 {
				which = args[0]
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			answers := map[string]healthAnswer{}
			var failures []error
			for _, address := range at.admin {
				status, body, err := at.get(ctx, address, healthPaths()[which], nil)
				var h healthAnswer
				if err == nil && (json.Unmarshal(body, &h) != nil || h.Status == "") {
					err = refusal(address, status, body)
				}
				if err != nil {
					failures = append(failures, err)
					continue
				}
				answers[address] = h
				if status != http.StatusOK {
					failures = append(failures, fmt.Errorf("the broker at %s is not %s", address, map[string]string{"live": "alive", "ready": "ready", "all": "well"}[which]))
				}
			}
			err := out.print(a, answers, func() {
				for _, address := range at.admin {
					for _, c := range answers[address].Checks {
						fmt.Fprintf(a.out, "%s  %-4s  %-18s %s\n", address, c.Status, c.Name, c.Reason)
					}
				}
			})
			return errors.Join(append(failures, err)...)
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	return cmd
}

// healthPaths are where an admin server answers about health.
func healthPaths() map[string]string {
	return map[string]string{"live": "/livez", "ready": "/readyz", "all": "/healthz"}
}
