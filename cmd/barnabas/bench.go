package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
)

func newBench(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put load on a broker and measure what it costs",
		Long: `Puts load on any broker that speaks Kafka's protocol, with ready-made requests so that the generator isn't the bottleneck, or
through a full client (--client). The table has the generator's own processor time ("own"): where it comes near the number of
processors, the generator is what was measured.

With --rate, delays count from when a record was due, not from when it could be sent: a broker that stalls is charged for all
that was due meanwhile.

--pid names the brokers' processes on this machine (Linux): then their processor time and memory are measured, too. Without
--topic a topic is made for the run and deleted after it.`,
	}
	cmd.AddCommand(newBenchProduce(a), newBenchConsume(a), newBenchEndToEnd(a), newBenchLatency(a), newBenchFindRate(a), newBenchCatchUp(a), newBenchConnect(a))
	return cmd
}

// benchFlags are what all loads have in common.
type benchFlags struct {
	bootstrap   string
	topic       string
	partitions  int32
	replicas    int16
	properties  map[string]string
	connections int
	duration    time.Duration
	warmUp      time.Duration
	pids        []int
	output      output
	svg         string
}

// flags are for loads with a topic; connections is the default of --connections.
func (f *benchFlags) flags(cmd *cobra.Command, connections int) {
	f.base(cmd, connections)
	cmd.Flags().StringVarP(&f.topic, "topic", "t", "", "a topic that exists (default: one for the run)")
	cmd.Flags().Int32Var(&f.partitions, "partitions", 1, "partitions of the topic for the run")
	cmd.Flags().Int16Var(&f.replicas, "replication-factor", 1, "replicas of each partition of the topic for the run")
	cmd.Flags().StringToStringVar(&f.properties, "topic-config", nil, "configuration of the topic for the run, NAME=VALUE")
}

func (f *benchFlags) base(cmd *cobra.Command, connections int) {
	cmd.Flags().StringVarP(&f.bootstrap, "bootstrap", "b", defaultBootstrap, "a broker, HOST:PORT")
	cmd.Flags().IntVarP(&f.connections, "connections", "n", connections, "connections")
	cmd.Flags().DurationVarP(&f.duration, "duration", "d", 10*time.Second, "how long it is measured")
	cmd.Flags().DurationVar(&f.warmUp, "warm-up", time.Second, "load before, which isn't measured")
	cmd.Flags().IntSliceVar(&f.pids, "pid", nil, "the brokers' processes, to measure their processor time and memory")
	cmd.Flags().StringVar(&f.svg, "svg", "", "a file to draw charts of the results into")
	f.output.flags(cmd)
}

// load is what the flags say. The topic has no name yet, unless the flags name one.
func (f *benchFlags) load() bench.Load {
	return bench.Load{Addr: f.bootstrap, Topic: f.topic, Connections: f.connections, Duration: f.duration, WarmUp: f.warmUp, Pids: f.pids}
}

// check finds what is wrong with the flags: those of the load are checked by itself.
func (f *benchFlags) check(load interface{ Check() error }) error {
	if err := f.output.check(); err != nil {
		return err
	}
	switch {
	case strings.Contains(f.bootstrap, ","):
		return wrong(fmt.Errorf("--bootstrap: want one broker, HOST:PORT, not %q: it knows the others", f.bootstrap))
	case f.partitions < 0 || f.replicas < 0:
		return wrong(errors.New("--partitions and --replication-factor: want at least 1"))
	case f.topic != "" && len(f.properties) > 0:
		return wrong(errors.New("--topic-config is for a topic that is made for the run: leave it or --topic out"))
	}
	if err := load.Check(); err != nil {
		return wrong(fmt.Errorf("%w: barnabas bench --help says what the flags mean", err))
	}
	return nil
}

// bench runs a load on the topic that the flags name, or on one for the run, and prints the results.
func (a *app) bench(cmd *cobra.Command, f *benchFlags, run func(ctx context.Context, load bench.Load) ([]*bench.Result, error)) (err error) {
	return a.benchBare(cmd, f, func(ctx context.Context, load bench.Load) (_ []*bench.Result, err error) {
		if load.Topic == "" {
			load.Topic = "barnabas-bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
			if err := bench.CreateTopicWith(ctx, f.bootstrap, load.Topic, f.partitions, f.replicas, f.properties); err != nil {
				return nil, err
			}
			defer func() {
				err = errors.Join(err, bench.DeleteTopic(context.WithoutCancel(ctx), f.bootstrap, load.Topic))
			}()
		}
		return run(ctx, load)
	})
}

// benchBare runs a load without a topic, and prints the results.
func (a *app) benchBare(cmd *cobra.Command, f *benchFlags, run func(ctx context.Context, load bench.Load) ([]*bench.Result, error)) error {
	target := remote{bootstrap: []string{f.bootstrap}, timeout: 10 * time.Second}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	client, err := target.open(ctx)
	if err != nil {
		return err
	}
	client.Close()
	load := f.load()
	if f.output.format == "table" && a.terminal() {
		load.Progress = a.progress(f.duration)
	}
	results, err := run(ctx, load)
	if err != nil {
		return target.explain(err)
	}
	if f.svg != "" {
		if err := writeChart(f.svg, cmd.CommandPath(), results); err != nil {
			return err
		}
	}
	return f.output.print(a, results, func() { printResults(a, results) })
}

func writeChart(path, title string, results []*bench.Result) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	err = bench.WriteChart(f, title, results)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return nil
}

// progress shows a bar for each run of so long.
func (a *app) progress(of time.Duration) func(time.Duration, int64) {
	var bar *progressbar.ProgressBar
	return func(done time.Duration, bytes int64) {
		if bar == nil {
			bar = progressbar.NewOptions64(int64(of), progressbar.OptionSetWriter(a.err), progressbar.OptionSetWidth(30),
				progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false), progressbar.OptionThrottle(100*time.Millisecond))
		}
		bar.Describe(fmt.Sprintf("%6d MiB", bytes>>20))
		_ = bar.Set64(int64(done))
		if done >= of {
			bar = nil
		}
	}
}

// terminal says whether complaints go to a person's screen.
func (a *app) terminal() bool { return screen(a.err) }
