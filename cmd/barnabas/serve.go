package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// server is a broker as the command sees it.
type server interface {
	plugin.Component
	// Advertised lists what clients are told to connect to. It is known once Start has returned.
	Advertised() []kafka.Listener
	// Failed is closed when the broker can't go on; Err says why.
	Failed() <-chan struct{}
	Err() error
}

// assembler makes a broker from a composition, without starting it.
type assembler func(c *composition, log *slog.Logger) (server, error)

// patience is how long a broker may take to stop by itself. It is more than recovery after a kill would cost.
const patience = 5 * time.Minute

func newServe(a *app) *cobra.Command {
	var from source
	var logs logOptions
	var pprofAt string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker",
		Long: `Runs a broker until SIGTERM or Ctrl-C; a second one ends it at once.

The configuration is the file named by -c or BARNABAS_CONFIG, else barnabas.yaml in the working directory or in
/etc/barnabas, else none: then a broker that stands alone listens on 127.0.0.1:9092 and keeps its data in ./data.

Over the file go environment variables, one for each key, such as BARNABAS_BROKER_LOG_DIRS=/data, BARNABAS_STORAGE=sendfile or
BARNABAS_STORAGE_SENDFILE_CHUNK=1MiB, and over those --set. With --kafka-environment those of Apache Kafka's container image, such as
KAFKA_NUM_PARTITIONS=3, count too; they go below the others.`,
		Example: `  barnabas serve
  barnabas serve -c barnabas.yaml
  barnabas serve --set broker.log.dirs=/data --set storage=sendfile`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := logs.over(defaultLogging()); err != nil { // before a file is looked for
				return err
			}
			c, err := a.load(from)
			if err != nil {
				return err
			}
			how, err := logs.over(c.logging)
			if err != nil {
				return err
			}
			log, levels, err := how.logger(a.err)
			if err != nil {
				return err
			}
			c.levels = levels
			log = slog.New(levels.Handler(logging.Root, log.Handler()))
			if pprofAt != "" {
				stopProfiles, err := profile(cmd.Context(), pprofAt)
				if err != nil {
					return err
				}
				defer stopProfiles()
			}
			signals := make(chan os.Signal, 2)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			defer signal.Stop(signals)
			return a.serve(cmd.Context(), c, log, signals)
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file")
	cmd.Flags().StringVar(&pprofAt, "pprof", "", "HOST:PORT at which to serve Go's profiles to whoever asks, for debugging (default: nowhere)")
	from.flagSet(cmd)
	logs.flags(cmd)
	return cmd
}

// errForced is the end of a broker that wasn't let finish.
var errForced = errors.New("stopped at once by a second signal: the data is recovered at the next start")

// serve runs a composed broker until a signal or the end of ctx.
func (a *app) serve(ctx context.Context, c *composition, log *slog.Logger, signals <-chan os.Signal) error {
	for _, warning := range c.warnings {
		log.Warn(warning)
	}
	broker, err := a.assemble(c, log)
	if err != nil {
		return fmt.Errorf("compose the broker: %w", err)
	}
	manager := serviceManager{log}
	manager.starting()
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- broker.Start(starting) }()
	select {
	case err = <-started:
	case s := <-signals:
		log.Info("stopping before the start is complete", "signal", s.String())
		cancel()
		select {
		case err = <-started:
		case <-signals:
			return errForced
		}
	}
	if interrupted := starting.Err() != nil; interrupted && errors.Is(err, context.Canceled) {
		err = nil // it was told to; what is left is to stop
	}
	if err != nil {
		stopping, done := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer done()
		return errors.Join(fmt.Errorf("start the broker: %w", err), broker.Stop(stopping))
	}
	if starting.Err() == nil {
		a.announce(c, broker)
		defer manager.ready(listening(broker), broker)()
		select {
		case s := <-signals:
			log.Info("stopping", "signal", s.String())
		case <-ctx.Done():
		case <-broker.Failed():
			manager.stopping()
			return errors.Join(fmt.Errorf("the broker could not go on: %w", broker.Err()), stop(context.WithoutCancel(ctx), broker, signals))
		}
	}
	manager.stopping()
	return stop(context.WithoutCancel(ctx), broker, signals)
}

// stop stops the broker, giving up when patience ends or another signal comes.
func stop(ctx context.Context, broker server, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- broker.Stop(ctx) }()
	select {
	case err := <-stopped:
		if err != nil {
			return fmt.Errorf("stop the broker: %w", err)
		}
		return nil
	case <-signals:
		return errForced
	}
}

// announce prints what runs, where it listens and where its data is.
func (a *app) announce(c *composition, broker server) {
	rows := append([][2]string{{"barnabas", version()}}, c.rows()...)
	if f, ok := broker.(*fronted); ok {
		rows = append(rows, [2]string{"http", f.front()})
		broker = f.server
	}
	if a, ok := broker.(administered); ok && a.AdminAddr() != nil {
		rows = append(rows, [2]string{"admin server", "http://" + a.AdminAddr().String()})
	}
	rows = append(rows, [2]string{"serving", listening(broker)})
	_ = printRows(a.out, rows) // a reader that is gone is no reason to stop serving
}

// listening lists what clients are told to connect to.
func listening(broker server) string {
	addresses := broker.Advertised()
	texts := make([]string, len(addresses))
	for i, l := range addresses {
		texts[i] = l.String()
	}
	return strings.Join(texts, ", ")
}
