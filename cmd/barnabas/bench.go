package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/record"
)

func newBench(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put load on a broker and measure what it costs",
		Long: `Puts load on any broker that speaks Kafka's protocol, with ready-made requests so that the generator isn't the bottleneck.

--pid names the brokers' processes on this machine (Linux): then their processor time and memory are measured, too. Without
--topic a topic is made for the run and deleted after it.`,
	}
	cmd.AddCommand(newBenchProduce(a), newBenchConsume(a), newBenchLatency(a))
	return cmd
}

// benchFlags are what all loads have in common.
type benchFlags struct {
	bootstrap   string
	topic       string
	partitions  int32
	replicas    int16
	connections int
	duration    time.Duration
	warmUp      time.Duration
	pids        []int
	json        bool
}

func (f *benchFlags) flags(cmd *cobra.Command, connections int) {
	cmd.Flags().StringVarP(&f.bootstrap, "bootstrap", "b", defaultBootstrap, "a broker, HOST:PORT")
	cmd.Flags().StringVarP(&f.topic, "topic", "t", "", "a topic that exists (default: one for the run)")
	cmd.Flags().Int32Var(&f.partitions, "partitions", 1, "partitions of the topic for the run")
	cmd.Flags().Int16Var(&f.replicas, "replication-factor", 1, "replicas of each partition of the topic for the run")
	cmd.Flags().IntVarP(&f.connections, "connections", "n", connections, "connections")
	cmd.Flags().DurationVarP(&f.duration, "duration", "d", 10*time.Second, "how long it is measured")
	cmd.Flags().DurationVar(&f.warmUp, "warm-up", time.Second, "load before, which isn't measured")
	cmd.Flags().IntSliceVar(&f.pids, "pid", nil, "the brokers' processes, to measure their processor time and memory")
	cmd.Flags().BoolVar(&f.json, "json", false, "results as JSON, without a progress bar")
}

func newBenchProduce(a *app) *cobra.Command {
	var f benchFlags
	var p producing
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Produce ready-made batches",
		Example: `  barnabas bench produce --connections 4 --partitions 6 --pid $(pidof barnabas)
  barnabas bench produce --batch-size 1MiB --record-size 100 --codec lz4`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.bench(cmd, &f, func(ctx context.Context, load bench.Load) ([]*bench.Result, error) {
				r, err := p.run(ctx, a, load, "produce")
				return []*bench.Result{r}, err
			})
		},
	}
	f.flags(cmd, 1)
	p.flags(cmd)
	return cmd
}

func newBenchConsume(a *app) *cobra.Command {
	var f benchFlags
	fetch, fill := config.ByteSize(1<<20), config.ByteSize(1<<30)
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Fetch a topic, over and over",
		Example: `  barnabas bench consume --fetch-size 10MiB
  barnabas bench consume --topic clicks --connections 4`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.bench(cmd, &f, func(ctx context.Context, load bench.Load) ([]*bench.Result, error) {
				if f.topic == "" {
					if err := bench.Fill(ctx, load.Addr, load.Topic, int64(fill)); err != nil {
						return nil, err
					}
				}
				r, err := (&bench.Consume{Load: load, MaxBytes: int32(min(int64(fetch), 1<<31-1))}).Run(ctx)
				return []*bench.Result{r}, err
			})
		},
	}
	f.flags(cmd, 1)
	cmd.Flags().TextVar(&fetch, "fetch-size", fetch, "most bytes of one answer")
	cmd.Flags().TextVar(&fill, "fill", fill, "bytes to produce first into the topic for the run")
	return cmd
}

func newBenchLatency(a *app) *cobra.Command {
	var f benchFlags
	var p producing
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Produce one record a request: one at a time, then as many as the flags say",
		Example: `  barnabas bench latency --acks all --pid $(pidof barnabas)
  barnabas bench latency --connections 8 --in-flight 5`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.batch = 1
			return a.bench(cmd, &f, func(ctx context.Context, load bench.Load) ([]*bench.Result, error) {
				alone, one := p, load
				alone.inFlight, one.Connections = 1, 1
				first, err := alone.run(ctx, a, one, "one at a time")
				if err != nil {
					return nil, err
				}
				second, err := p.run(ctx, a, load, fmt.Sprintf("%d x %d in flight", load.Connections, p.inFlight))
				return []*bench.Result{first, second}, err
			})
		},
	}
	f.flags(cmd, 8)
	p.flags(cmd)
	_ = cmd.Flags().MarkHidden("batch-size") // one record is one record
	return cmd
}

// producing are the flags of loads that produce.
type producing struct {
	inFlight int
	record   config.ByteSize
	batch    config.ByteSize
	acks     string
	codec    string
}

func (p *producing) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.inFlight, "in-flight", 5, "requests that a connection sends before it waits for an answer")
	cmd.Flags().TextVar(&p.record, "record-size", config.ByteSize(1<<10), "bytes of a record's value")
	cmd.Flags().TextVar(&p.batch, "batch-size", config.ByteSize(64<<10), "bytes of a batch before compression")
	cmd.Flags().StringVar(&p.acks, "acks", "all", "acknowledgements to wait for: 0, 1 or all")
	cmd.Flags().StringVar(&p.codec, "codec", "none", "compression: none, gzip, snappy, lz4 or zstd")
}

// parseAcks reads the name of an acknowledgement.
func parseAcks(text string) (int16, error) {
	if text == "all" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 16)
	if err != nil || n < -1 || n > 1 {
		return 0, wrong(fmt.Errorf("--acks: want 0, 1 or all, not %q", text))
	}
	return int16(n), nil
}

func (p *producing) run(ctx context.Context, a *app, load bench.Load, name string) (*bench.Result, error) {
	acks, err := parseAcks(p.acks)
	if err != nil {
		return nil, err
	}
	codec, err := record.ParseCodec(p.codec)
	if err != nil {
		return nil, wrong(fmt.Errorf("--codec: %w", err))
	}
	codecs, err := a.parts.codecs()
	if err != nil {
		return nil, err
	}
	if err := codecs.Start(ctx); err != nil {
		return nil, err
	}
	r, err := (&bench.Produce{Load: load, InFlight: p.inFlight, RecordSize: int(min(p.record, 1<<30)), BatchSize: int(min(p.batch, 1<<30)),
		Acks: acks, Codec: codec, Codecs: codecs}).Run(ctx)
	if err = errors.Join(err, codecs.Stop(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	r.Name = name
	return r, nil
}

// bench runs a load with a topic of its own, unless the flags name one, and prints the results.
func (a *app) bench(cmd *cobra.Command, f *benchFlags, run func(context.Context, bench.Load) ([]*bench.Result, error)) (err error) {
	target := remote{bootstrap: []string{f.bootstrap}, timeout: 10 * time.Second}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	client, err := target.open(ctx)
	if err != nil {
		return err
	}
	client.Close()
	load := bench.Load{Addr: f.bootstrap, Topic: f.topic, Connections: f.connections, Duration: f.duration, WarmUp: f.warmUp, Pids: f.pids}
	if load.Topic == "" {
		load.Topic = "barnabas-bench-" + strconv.FormatInt(time.Now().UnixMilli(), 36)
		if err := bench.CreateTopic(ctx, f.bootstrap, load.Topic, f.partitions, f.replicas); err != nil {
			return target.explain(err)
		}
		defer func() {
			err = errors.Join(err, bench.DeleteTopic(context.WithoutCancel(ctx), f.bootstrap, load.Topic))
		}()
	}
	if !f.json && a.terminal() {
		load.Progress = a.progress(f.duration)
	}
	results, err := run(ctx, load)
	if err != nil {
		return target.explain(err)
	}
	if f.json {
		return printJSON(a, results)
	}
	printResults(a, results, len(f.pids) > 0)
	return nil
}

func printJSON(a *app, results []*bench.Result) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(results)
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

func printResults(a *app, results []*bench.Result, cost bool) {
	t := newTable()
	header := table.Row{"load", "MiB/s", "records/s", "req/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "client CPU-s"}
	if cost {
		header = append(header, "broker CPU-s/GB", "CPU µs/req", "RSS MiB", "RssAnon MiB")
	}
	t.AppendHeader(header)
	number := func(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
	for _, r := range results {
		row := table.Row{r.Name, number(r.MiBPerSecond(), 1), number(r.RecordsPerSecond(), 0), number(r.RequestsPerSecond(), 0),
			number(r.Latency.P50/1e3, 3), number(r.Latency.P99/1e3, 3), number(r.Latency.P999/1e3, 3), number(r.Latency.Max/1e3, 3), number(r.ClientCPU, 2)}
		if cost && r.Broker != nil {
			row = append(row, number(r.CPUPerGB(), 3), number(r.CPUPerRequest(), 1), r.Broker.RSS>>20, r.Broker.RSSAnon>>20)
		}
		t.AppendRow(row)
	}
	fmt.Fprintln(a.out, t.Render())
}
