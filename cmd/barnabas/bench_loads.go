package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/record"
)

func newBenchProduce(a *app) *cobra.Command {
	var f benchFlags
	var p producing
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Produce ready-made batches",
		Example: `  barnabas bench produce --connections 4 --partitions 6 --pid $(pidof barnabas)
  barnabas bench produce --batch-size 1MiB --record-size 100 --codec lz4
  barnabas bench produce --rate 50000 --idempotent --svg produce.svg
  barnabas bench produce --client --linger 5ms --keys 1000 --output json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			load, err := p.load(cmd, &f)
			if err != nil {
				return err
			}
			if err := f.check(load); err != nil {
				return err
			}
			return a.bench(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				r, err := p.run(ctx, a, load, l)
				return []*bench.Result{r}, err
			})
		},
	}
	f.flags(cmd, 1)
	p.flags(cmd)
	p.rates(cmd)
	return cmd
}

func newBenchConsume(a *app) *cobra.Command {
	var f benchFlags
	fetch, fill := config.ByteSize(1<<20), config.ByteSize(1<<30)
	client := false
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Fetch a topic, over and over",
		Example: `  barnabas bench consume --fetch-size 10MiB
  barnabas bench consume --topic clicks --connections 4
  barnabas bench consume --client --partitions 6`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := &bench.Consume{Load: f.load(), MaxBytes: int32(min(int64(fetch), 1<<31-1)), Client: client}
			if err := f.check(load); err != nil {
				return err
			}
			return a.bench(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				if err := fillIfOwn(ctx, &f, l, fill); err != nil {
					return nil, err
				}
				load.Load = l
				r, err := load.Run(ctx)
				return []*bench.Result{r}, err
			})
		},
	}
	f.flags(cmd, 1)
	cmd.Flags().TextVar(&fetch, "fetch-size", fetch, "most bytes of one answer")
	cmd.Flags().TextVar(&fill, "fill", fill, "bytes to produce first into the topic for the run")
	cmd.Flags().BoolVar(&client, "client", false, "consume through franz-go, one client for each connection, which reads every record")
	return cmd
}

// fillIfOwn fills a topic that was made for the run.
func fillIfOwn(ctx context.Context, f *benchFlags, l bench.Load, fill config.ByteSize) error {
	if f.topic != "" {
		return nil
	}
	return bench.Fill(ctx, l.Addr, l.Topic, int64(fill))
}

func newBenchEndToEnd(a *app) *cobra.Command {
	var f benchFlags
	var p producing
	consumers := 0
	cmd := &cobra.Command{
		Use:     "end-to-end",
		Aliases: []string{"e2e"},
		Short:   "Measure how long records take from producers to consumers",
		Long: `Produces records that begin with the nanosecond at which they were due, consumes them at the same time, and measures how long
each took. All records have to arrive.`,
		Example: `  barnabas bench end-to-end --rate 5000 --pid $(pidof barnabas)
  barnabas bench end-to-end --rate 20000 --batch-size 16KiB --partitions 6 --connections 3 --consumers 3
  barnabas bench end-to-end --rate 5000 --client --svg delay.svg`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			load, err := p.load(cmd, &f)
			if err != nil {
				return err
			}
			e := &bench.EndToEnd{Produce: *load, Consumers: consumers}
			if err := f.check(e); err != nil {
				return err
			}
			return a.bench(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				e.Load = l
				r, err := e.Run(ctx)
				return []*bench.Result{r}, err
			})
		},
	}
	f.flags(cmd, 1)
	p.flags(cmd)
	p.rates(cmd)
	cmd.Flags().IntVar(&consumers, "consumers", 0, "connections that fetch, each some of the partitions (default: one for each leader)")
	setDefault(cmd, "batch-size", "1B")
	return cmd
}

// setDefault gives a flag that commands share a default of its own for this one.
func setDefault(cmd *cobra.Command, name, value string) {
	flag := cmd.Flags().Lookup(name)
	if err := flag.Value.Set(value); err != nil {
		panic(err) // a constant that isn't one
	}
	flag.DefValue = value
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
			load, err := p.load(cmd, &f)
			if err != nil {
				return err
			}
			if err := f.check(load); err != nil {
				return err
			}
			return a.bench(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				alone, one := *load, l
				alone.InFlight, one.Connections = 1, 1
				if alone.Client && alone.Idempotent { // has a number of its own
					alone.InFlight = load.InFlight
				}
				first, err := p.run(ctx, a, &alone, one)
				if err != nil {
					return nil, err
				}
				second, err := p.run(ctx, a, load, l)
				if err != nil {
					return nil, err
				}
				first.Name, second.Name = "one at a time", fmt.Sprintf("%d x %d in flight", l.Connections, p.inFlight)
				return []*bench.Result{first, second}, nil
			})
		},
	}
	f.flags(cmd, 8)
	p.flags(cmd)
	_ = cmd.Flags().MarkHidden("batch-size") // one record is one record
	return cmd
}

func newBenchFindRate(a *app) *cobra.Command {
	var f benchFlags
	var p producing
	maxP99, endToEnd, consumers := 10*time.Millisecond, false, 0
	cmd := &cobra.Command{
		Use:   "find-rate",
		Short: "Find the highest rate of records that a broker sustains",
		Long: `Measures at rates that close in on the highest one that is sustained: all that is due can be sent and is answered, and 99 % of the
delays, counted from when records were due, are within --max-p99. Each rate is measured for --duration, and once more before it is taken
for too high; about eight rates are tried.`,
		Example: `  barnabas bench find-rate --record-size 1000 --max-p99 5ms --duration 5s
  barnabas bench find-rate --end-to-end --connections 4 --partitions 4 --svg rates.svg`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			load, err := p.load(cmd, &f)
			if err != nil {
				return err
			}
			e := &bench.EndToEnd{Produce: *load, Consumers: consumers}
			if endToEnd {
				err = f.check(e)
			} else {
				err = f.check(load)
			}
			if err != nil {
				return err
			}
			if maxP99 <= 0 {
				return wrong(fmt.Errorf("--max-p99: want a positive duration, not %s", maxP99))
			}
			if consumers != 0 && !endToEnd {
				return wrong(errors.New("--consumers needs --end-to-end"))
			}
			return a.bench(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				search := bench.Search{MaxP99: maxP99, Run: func(ctx context.Context, rate float64) (*bench.Result, error) {
					if endToEnd {
						e.Load, e.Rate = l, rate
						return e.Run(ctx)
					}
					load.Rate = rate
					return p.run(ctx, a, load, l)
				}}
				best, all, err := search.Find(ctx)
				if err == nil {
					best.Name = "highest sustained"
				}
				return all, err
			})
		},
	}
	f.flags(cmd, 1)
	p.flags(cmd)
	p.clientFlags(cmd)
	cmd.Flags().DurationVar(&maxP99, "max-p99", maxP99, "the longest 99th percentile of the delays that is taken")
	cmd.Flags().BoolVar(&endToEnd, "end-to-end", false, "measure from producers to consumers, as bench end-to-end does")
	cmd.Flags().IntVar(&consumers, "consumers", 0, "with --end-to-end: connections that fetch (default: one for each leader)")
	return cmd
}

func newBenchCatchUp(a *app) *cobra.Command {
	var f benchFlags
	fetch, fill := config.ByteSize(1<<20), config.ByteSize(1<<30)
	cold := ""
	cmd := &cobra.Command{
		Use:   "catch-up",
		Short: "Read a topic once from start to end, from a cold and a warm page cache",
		Long: `Reads a whole topic as a consumer does that was away. With --cold the kernel first forgets what it has cached of the broker's
files (posix_fadvise, Linux), so that they come from the disk; then the topic is read once more, from memory. What a process has
mapped isn't forgotten: for a cold run with a storage that maps its files, start the broker anew before, on a --topic that is there.
A note says how much was still cached.`,
		Example: `  barnabas bench catch-up --fill 4GiB --cold /var/lib/barnabas
  barnabas bench catch-up --topic clicks --fetch-size 10MiB`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.warmUp = 0
			load := &bench.Consume{Load: f.load(), MaxBytes: int32(min(int64(fetch), 1<<31-1)), Once: true}
			if err := f.check(load); err != nil {
				return err
			}
			if cold != "" {
				if _, err := bench.DropCache(cold); err != nil {
					return wrong(fmt.Errorf("--cold: %w", err))
				}
			}
			return a.bench(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				if err := fillIfOwn(ctx, &f, l, fill); err != nil {
					return nil, err
				}
				load.Load, load.Progress = l, nil // how long it takes isn't known
				var all []*bench.Result
				if cold != "" {
					left, err := bench.DropCache(cold)
					if err != nil {
						return nil, err
					}
					if left > 0.01 {
						fmt.Fprintf(a.err, "%.0f %% of the bytes below %s are still cached: a process has mapped them\n", 100*left, cold)
					}
					r, err := load.Run(ctx)
					if err != nil {
						return nil, err
					}
					r.Name, all = "cold", append(all, r)
				}
				r, err := load.Run(ctx)
				if err != nil {
					return nil, err
				}
				r.Name = "warm"
				return append(all, r), nil
			})
		},
	}
	f.flags(cmd, 1)
	cmd.Flags().TextVar(&fetch, "fetch-size", fetch, "most bytes of one answer")
	cmd.Flags().TextVar(&fill, "fill", fill, "bytes to produce first into the topic for the run")
	cmd.Flags().StringVar(&cold, "cold", "", "the broker's data directory, on this machine: read from the disk first")
	_ = cmd.Flags().MarkHidden("warm-up") // it would warm the cache
	setDefault(cmd, "duration", "10m0s")
	cmd.Flags().Lookup("duration").Usage = "how long a reading may take"
	return cmd
}

func newBenchConnect(a *app) *cobra.Command {
	var f benchFlags
	rate := 0.0
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Connect, ask one question, hang up, over and over",
		Example: `  barnabas bench connect --connections 8 --rate 2000
  barnabas bench connect --duration 5s --pid $(pidof barnabas)`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := &bench.Churn{Load: f.load(), Rate: rate}
			if err := f.check(load); err != nil {
				return err
			}
			return a.benchBare(cmd, &f, func(ctx context.Context, l bench.Load) ([]*bench.Result, error) {
				load.Load = l
				r, err := load.Run(ctx)
				return []*bench.Result{r}, err
			})
		},
	}
	f.base(cmd, 4)
	cmd.Flags().Lookup("connections").Usage = "connections at a time"
	cmd.Flags().Float64Var(&rate, "rate", 0, "connections a second, together (default: as many as go)")
	return cmd
}

// producing are the flags of loads that produce.
type producing struct {
	inFlight   int
	record     config.ByteSize
	batch      config.ByteSize
	acks       string
	codec      string
	keys       int
	idempotent bool
	rate       float64
	client     bool
	linger     time.Duration
}

func (p *producing) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.inFlight, "in-flight", 5, "requests that a connection sends before it waits for an answer")
	cmd.Flags().TextVar(&p.record, "record-size", config.ByteSize(1<<10), "bytes of a record's value")
	cmd.Flags().TextVar(&p.batch, "batch-size", config.ByteSize(64<<10), "bytes of a batch before compression; at least one record")
	cmd.Flags().StringVar(&p.acks, "acks", "all", "acknowledgements to wait for: 0, 1 or all")
	cmd.Flags().StringVar(&p.codec, "codec", "none", "compression: none, gzip, snappy, lz4 or zstd")
	cmd.Flags().IntVar(&p.keys, "keys", 0, "give records keys, of so many different ones")
	cmd.Flags().BoolVar(&p.idempotent, "idempotent", false, "each connection is an idempotent producer")
}

// rates are the flags of loads that may have a rate.
func (p *producing) rates(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&p.rate, "rate", 0, "records a second, by all connections together (default: as many as go)")
	p.clientFlags(cmd)
}

func (p *producing) clientFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.client, "client", false, "go through franz-go, one client for each connection, rather than ready-made requests")
	cmd.Flags().DurationVar(&p.linger, "linger", 0, "with --client: how long to wait for more records before a batch is sent")
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

// load is what the flags say.
func (p *producing) load(cmd *cobra.Command, f *benchFlags) (*bench.Produce, error) {
	acks, err := parseAcks(p.acks)
	if err != nil {
		return nil, err
	}
	if acks == 0 && cmd.Flags().Changed("in-flight") {
		return nil, wrong(errors.New("--in-flight: with --acks 0 there are no answers to wait for: leave it out"))
	}
	codec, err := record.ParseCodec(p.codec)
	if err != nil {
		return nil, wrong(fmt.Errorf("--codec: %w", err))
	}
	return &bench.Produce{Load: f.load(), Rate: p.rate, InFlight: p.inFlight, RecordSize: int(min(p.record, 1<<30)), BatchSize: int(min(p.batch, 1<<30)),
		Keys: p.keys, Acks: acks, Idempotent: p.idempotent, Codec: codec, Client: p.client, Linger: p.linger}, nil
}

// run puts the load on a topic. It brings the codecs.
func (p *producing) run(ctx context.Context, a *app, load *bench.Produce, l bench.Load) (r *bench.Result, err error) {
	codecs, err := a.parts.codecs()
	if err != nil {
		return nil, err
	}
	if err := codecs.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, codecs.Stop(context.WithoutCancel(ctx))) }()
	load.Load, load.Codecs = l, codecs
	return load.Run(ctx)
}
