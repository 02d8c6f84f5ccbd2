package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/plugins/sdk/plugincheck"
	"github.com/barnabas-mq/barnabas/plugins/sdk/scaffold"
)

func newPlugin(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Write plug-ins of your own"}
	cmd.AddCommand(newPluginCheck(a), newPluginNew(a))
	return cmd
}

func newPluginCheck(a *app) *cobra.Command {
	var o plugincheck.Options
	var file string
	cmd := &cobra.Command{
		Use:   "check EXECUTABLE [ARGUMENT...]",
		Short: "Hold a plug-in against its contract, break it, and measure it",
		Long: `Starts the executable as a broker would, again and again: makes each check of its role's contract, kills and stops it while it
is used, sends nonsense, and measures what a call costs. Prints a report with a grade: A, B when calls cost more than they
should, F when a check failed. The exit code is 1 then.`,
		Example: `  barnabas plugin check ./geo
  barnabas plugin check --only 'clause 1.2' ./geo
  barnabas plugin check --config geo.yaml --env PATH python3 geo.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrong(errors.New("name the executable: " + cmd.UseLine()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Command, o.Args = args[0], args[1:]
			if file != "" {
				text, err := os.ReadFile(file)
				if err != nil {
					return wrong(fmt.Errorf("--config: %w", err))
				}
				o.Config = string(text)
			}
			if _, err := exec.LookPath(o.Command); err != nil && !errors.Is(err, exec.ErrDot) {
				return wrong(err)
			}
			return a.checkPlugin(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Role, "role", "", "partitioner, compression or offsets (default: the first that the plug-in has)")
	cmd.Flags().StringVar(&file, "config", "", "YAML file with the plug-in's own options; $DIR in it is an empty folder, another for each check")
	cmd.Flags().StringArrayVar(&o.Env, "env", nil, "a variable of the environment that the plug-in gets, NAME or NAME=VALUE (may be repeated)")
	cmd.Flags().BoolVar(&o.Forgets, "forgets", false, "the offsets store keeps nothing when its process ends")
	cmd.Flags().StringVar(&o.Only, "only", "", "part of the names of the checks to make, as the report has them (default: all)")
	cmd.Flags().DurationVar(&o.StartTimeout, "start-timeout", 10*time.Second, "how long the plug-in may take to start")
	cmd.Flags().DurationVar(&o.CallTimeout, "call-timeout", 2*time.Second, "how long the plug-in may take to answer")
	cmd.Flags().SetInterspersed(false) // what follows the executable is its own
	return cmd
}

// checkPlugin checks and prints the report.
func (a *app) checkPlugin(ctx context.Context, o plugincheck.Options) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	report := plugincheck.Run(ctx, o, nil)
	if err := report.Write(a.out); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if n := report.Failed(); n > 0 {
		return fmt.Errorf("%s failed", counted(n, "check"))
	}
	return nil
}

func newPluginNew(a *app) *cobra.Command {
	var o scaffold.Options
	var dir string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the repository of a new plug-in",
		Long:  "Writes a Go module with a plug-in that works, its tests, a configuration and a README, into a new folder. It builds, and passes `barnabas plugin check`.",
		Example: `  barnabas plugin new geo
  barnabas plugin new --role compression snappier --dir ./snappier`,
		Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name = args[0]
			if dir == "" {
				dir = o.Name
			}
			if v := version(); o.Replace == "" && regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(v) {
				o.Version = v
			}
			files, err := scaffold.Write(dir, o)
			if err != nil {
				return wrong(err)
			}
			options := ""
			if file := "check.yaml"; slices.Contains(files, file) { // it can't do without
				options = "--config " + file + " "
			}
			fmt.Fprintf(a.out, "%s: %s\n\ncd %s && go mod tidy && go build -o %s . && barnabas plugin check %s./%s\n", filepath.Clean(dir), strings.Join(files, ", "), dir, o.Name, options, o.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Role, "role", "partitioner", "what the plug-in is to be: "+strings.Join(scaffold.Roles(), ", "))
	cmd.Flags().StringVar(&o.Module, "module", "", "its Go module (default: example.com/NAME)")
	cmd.Flags().StringVar(&dir, "dir", "", "where to write it (default: NAME)")
	cmd.Flags().StringVar(&o.Replace, "replace", "", "folder with the source of Barnabas, to build against it instead of a released version")
	return cmd
}
