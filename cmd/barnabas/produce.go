package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/sdk/kgopartitioner"
)

// produceFlags are the flags of produce.
type produceFlags struct {
	at          remote
	topic       string
	file        string
	keys        string // separates key and value; "" means that there are no keys
	headers     []string
	codec       string
	acks        string
	partition   int32
	partitioner string
	config      string // "" is none
	create      bool
	maxLine     config.ByteSize
}

func newProduce(a *app) *cobra.Command {
	var f produceFlags
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Produce lines as records",
		Long: `Produces each line of the input as a record, and says at the end how many were acknowledged. The exit code is 1 when any was not.

A partitioner chooses the partition, unless --partition does: the one that --partitioner names, else the one that the topic
declares (barnabas.partitioner), else that of the configuration. There are ` + strings.Join(a.parts.partitioner.Names(), ", ") + `,
and what the file that --config names, a broker's, has under partitioners.`,
		Example: `  echo hello | barnabas produce -t greetings
  barnabas produce -t users --key-separator : --header source=import --codec zstd --file users.txt
  barnabas produce -t orders --config barnabas.yaml --header region=eu --file orders.txt`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.produce(cmd.Context(), &f, cmd.Flags().Changed("partition"))
		},
	}
	f.at.flags(cmd)
	cmd.Flags().StringVarP(&f.topic, "topic", "t", "", "the topic (required)")
	cmd.Flags().StringVarP(&f.file, "file", "f", "-", "what to read; - is the standard input")
	cmd.Flags().StringVarP(&f.keys, "key-separator", "K", "", "what separates a line's key from its value: lines must have it (default: no keys)")
	cmd.Flags().StringArrayVarP(&f.headers, "header", "H", nil, "a header for every record, NAME=VALUE (may be repeated)")
	cmd.Flags().StringVarP(&f.codec, "codec", "z", "none", "compression: none, gzip, snappy, lz4 or zstd")
	cmd.Flags().StringVar(&f.acks, "acks", "all", "acknowledgements to wait for: 0, 1 or all")
	cmd.Flags().Int32VarP(&f.partition, "partition", "p", 0, "send everything to this partition")
	cmd.Flags().StringVar(&f.partitioner, "partitioner", "", "what chooses the partitions (default: what the topic declares)")
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "the YAML file of a broker, for its partitioners")
	cmd.Flags().BoolVar(&f.create, "create", false, "let the broker create the topic, if it may")
	cmd.Flags().TextVar(&f.maxLine, "max-line", config.ByteSize(1<<20), "longest line")
	cmd.MarkFlagsMutuallyExclusive("partition", "partitioner")
	cmd.MarkFlagsMutuallyExclusive("partition", "config")
	return cmd
}

// options turns the flags into those of a client. p is nil when every record goes to the partition that it names.
func (f *produceFlags) options(p partitioner.Partitioner, failed func(error)) ([]kgo.Opt, error) {
	acks, err := parseAcks(f.acks)
	if err != nil {
		return nil, err
	}
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[f.codec]
	if !ok {
		return nil, wrong(fmt.Errorf("--codec: want none, gzip, snappy, lz4 or zstd, not %q", f.codec))
	}
	options := []kgo.Opt{
		kgo.DefaultProduceTopic(f.topic), kgo.ProducerBatchCompression(codec), kgo.RecordDeliveryTimeout(f.at.timeout),
		kgo.ProducerBatchMaxBytes(1000012), kgo.UnknownTopicRetries(1),
	}
	switch acks {
	case 0:
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case 1:
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	if f.create {
		options = append(options, kgo.AllowAutoTopicCreation())
	}
	if p == nil {
		return append(options, kgo.RecordPartitioner(kgo.ManualPartitioner())), nil
	}
	return append(options, kgo.RecordPartitioner(kgopartitioner.New(p, kgopartitioner.OnError(func(_ string, err error) { failed(err) })))), nil
}

func (f *produceFlags) recordHeaders() ([]kgo.RecordHeader, error) {
	var headers []kgo.RecordHeader
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return nil, wrong(fmt.Errorf("--header: want NAME=VALUE, not %q", h))
		}
		headers = append(headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return headers, nil
}

func (a *app) produce(ctx context.Context, f *produceFlags, fixed bool) (err error) {
	if f.topic == "" {
		return wrong(errors.New("--topic: name the topic to produce to"))
	}
	headers, err := f.recordHeaders()
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	var chooser partitioner.Partitioner
	if !fixed {
		if chooser, err = a.startPartitioner(ctx, f); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, chooser.Stop(context.WithoutCancel(ctx))) }()
	}
	results := &deliveries{}
	options, err := f.options(chooser, results.fail)
	if err != nil {
		return err
	}
	input, done, err := a.input(f.file)
	if err != nil {
		return err
	}
	defer done()
	client, err := f.at.open(ctx, options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if !f.create {
		if err := f.at.exists(ctx, client, f.topic, fixed, f.partition); err != nil {
			return err
		}
	}
	readErr := f.send(ctx, client, input, headers, results)
	flushErr := client.Flush(ctx)
	fmt.Fprintf(a.err, "%s acknowledged\n", counted(int(results.acknowledged.Load()), "record"))
	return errors.Join(readErr, flushErr, f.at.explain(results.error()))
}

// exists sees that a topic is there, so that what is typed isn't lost.
func (r *remote) exists(ctx context.Context, client *kgo.Client, topic string, fixed bool, partition int32) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopicsWithInternal(ctx, topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return r.explain(fmt.Errorf("topic %s: %w", topic, err))
	}
	if n := len(topics[topic].Partitions); fixed && (partition < 0 || int(partition) >= n) {
		return wrong(fmt.Errorf("--partition: topic %s has %s, counted from 0: there is no %d", topic, counted(n, "partition"), partition))
	}
	return nil
}

// startPartitioner makes and starts the partitioner that is named, or that the topic declares.
func (a *app) startPartitioner(ctx context.Context, f *produceFlags) (partitioner.Partitioner, error) {
	all, err := a.partitionersOf(f.config)
	if err != nil {
		return nil, err
	}
	name := f.partitioner
	if name == "" {
		if name, err = f.at.declaredPartitioner(ctx, f.topic); err != nil {
			return nil, err
		}
	}
	chosen := all[0]
	if name != "" {
		at := slices.IndexFunc(all, func(n namedPartitioner) bool { return n.name == name })
		if at < 0 {
			return nil, wrong(unknownPartitioner(f, name, all))
		}
		chosen = all[at]
	}
	p, err := chosen.New(partitioner.Settings{Settings: plugin.Settings{Logger: slog.New(slog.NewTextHandler(a.err, nil))}})
	if err != nil {
		return nil, err
	}
	return p, p.Start(ctx)
}

// partitionersOf lists the partitioners of a broker's configuration, or, without one, those of this binary.
func (a *app) partitionersOf(file string) ([]namedPartitioner, error) {
	if file == "" {
		return choosePartitioners(config.Section{}, a.parts.partitioner)
	}
	c, err := a.load(source{file: file})
	if err != nil {
		return nil, err
	}
	return c.partitioners, nil
}

func unknownPartitioner(f *produceFlags, name string, all []namedPartitioner) error {
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.name
	}
	text := fmt.Sprintf("unknown partitioner %q", name)
	if near := config.Nearest(name, names); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	text += "; there are: " + strings.Join(names, ", ")
	if f.partitioner == "" {
		return fmt.Errorf("topic %s declares its partitioner: %s. --config names the file that has it, --partitioner chooses another", f.topic, text)
	}
	return fmt.Errorf("--partitioner: %s", text)
}

// declaredPartitioner is the partitioner that a topic declares, "" when it declares none, as with brokers that know no such thing,
// and when there is no such topic, for which others have the right words.
func (r *remote) declaredPartitioner(ctx context.Context, topic string) (string, error) {
	client, err := r.open(ctx)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	described, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return "", r.explain(fmt.Errorf("ask for the configuration of topic %s: %w", topic, err))
	}
	for _, resource := range described {
		for _, c := range resource.Configs {
			if c.Key == "barnabas.partitioner" {
				return c.MaybeValue(), nil
			}
		}
	}
	return "", nil
}

// input opens what to read.
func (a *app) input(name string) (io.Reader, func(), error) {
	if name == "-" {
		return a.in, func() {}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, wrong(fmt.Errorf("--file: %w", err))
	}
	return file, func() { _ = file.Close() }, nil
}

// deliveries counts what became of the records. It may be used from any goroutine.
type deliveries struct {
	acknowledged atomic.Int64
	lost         atomic.Int64
	first        atomic.Pointer[error]
}

func (d *deliveries) fail(err error) { d.first.CompareAndSwap(nil, &err) }

func (d *deliveries) done(_ *kgo.Record, err error) {
	if err == nil {
		d.acknowledged.Add(1)
		return
	}
	d.lost.Add(1)
	d.fail(err)
}

func (d *deliveries) error() error {
	if p := d.first.Load(); p != nil {
		return fmt.Errorf("%s not acknowledged: %w", counted(int(d.lost.Load()), "record"), *p)
	}
	return nil
}

// send produces each line until the input or ctx ends, or a record was refused.
func (f *produceFlags) send(ctx context.Context, client *kgo.Client, input io.Reader, headers []kgo.RecordHeader, results *deliveries) error {
	lines := bufio.NewScanner(input)
	longest := int(min(f.maxLine, 1<<30))
	lines.Buffer(make([]byte, 0, min(longest, 64<<10)), longest)
	lines.Split(wholeLines)
	for number := 1; lines.Scan() && ctx.Err() == nil && results.first.Load() == nil; number++ {
		value := lines.Text() // a copy: the client keeps it
		r := &kgo.Record{Partition: f.partition, Headers: headers}
		if f.keys != "" {
			key, rest, ok := strings.Cut(value, f.keys)
			if !ok {
				return fmt.Errorf("line %d has no %q between key and value: it and what follows were not sent", number, f.keys)
			}
			r.Key, value = []byte(key), rest
		}
		r.Value = []byte(value)
		client.Produce(ctx, r, results.done)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the input: %w (--max-line allows %s)", err, f.maxLine)
	}
	return ctx.Err()
}

// wholeLines cuts lines at "\n" and keeps what else is in them: a "\r" is the sender's.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
