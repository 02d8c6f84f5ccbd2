package kafkatools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func consumerTool() Tool {
	return Tool{
		Name:  "kafka-console-consumer",
		About: "This tool helps to read data from Kafka topics and outputs it to standard output.",
		options: []option{
			bootstrapOption(), commandConfigOption(),
			{name: "topic", arg: "topic", about: "The topic to consume from."},
			{name: "include", arg: "regex", about: "Regular expression of the topics to consume from."},
			{name: "whitelist", arg: "regex", about: "The older name of --include."},
			{name: "partition", arg: "partition", bits: 32, about: "The partition to consume from: from its end, unless --offset says otherwise."},
			{name: "offset", arg: "offset", preset: "latest", about: "The offset to begin with, or earliest, or latest."},
			{name: "from-beginning", about: "Begin at the start of the log where nothing is committed."},
			{name: "group", arg: "group id", about: "The consumer group. Without it no group is used, and nothing is committed."},
			{name: "max-messages", arg: "n", bits: 32, about: "End after so many messages."},
			{name: "timeout-ms", arg: "ms", bits: 64, about: "End when no message came for so long."},
			{name: "isolation-level", arg: "level", preset: "read_uncommitted", about: "read_committed leaves out messages of transactions that aren't committed."},
			{name: "formatter", arg: "class", preset: formatterPackage + "DefaultMessageFormatter", about: "How to print messages: Default-, Logging- or NoOpMessageFormatter, OffsetsMessageFormatter or GroupMetadataMessageFormatter."},
			{name: "property", arg: "prop", many: true, about: "The older name of --formatter-property."},
			{name: "formatter-property", arg: "prop", many: true, about: "A setting of the formatter, NAME=VALUE: print.timestamp, print.key, print.offset, print.epoch, print.delivery, print.partition, print.headers, print.value, key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, headers.deserializer."},
			{name: "formatter-config", arg: "file", about: "Properties file for the formatter."},
			{name: "key-deserializer", arg: "class", about: "How to read keys: one of Kafka's own deserializers."},
			{name: "value-deserializer", arg: "class", about: "How to read values."},
			{name: "skip-message-on-error", about: "When a message can't be printed, go on with the next."},
			{name: "enable-systest-events", about: "Print shutdown_complete at the end."},
			{name: "consumer-property", arg: "prop", many: true, about: "The older name of --command-property."},
			{name: "command-property", arg: "prop", many: true, about: "A setting of the client, NAME=VALUE. It goes over --command-config."},
			{name: "consumer.config", arg: "file", about: "The older name of --command-config."},
		},
		run: func(ctx context.Context, c *call) error { return c.consume(ctx) },
	}
}

// consumption is what is to be read, and from where.
type consumption struct {
	group     string
	commits   bool
	every     time.Duration // between commits
	from      kgo.Offset
	patience  time.Duration // without messages; 0 is for ever
	most      int64         // messages; negative is any number
	committed bool          // leave out what isn't committed
}

func (c *call) consume(ctx context.Context) error {
	if c.count("topic", "include", "whitelist") != 1 {
		return misused("Exactly one of the following arguments is required: [topic], [include]")
	}
	switch {
	case c.has("partition") && !c.has("topic"):
		return misused("The topic is required when partition is specified.")
	case c.has("partition") && c.count("from-beginning", "offset") > 1:
		return misused("Options from-beginning and offset cannot be specified together.")
	case !c.has("partition") && c.has("offset"):
		return misused("The partition is required when offset is specified.")
	}
	if err := c.require("bootstrap-server"); err != nil {
		return err
	}
	p, err := c.clientProperties("consumer.config", "consumer-property")
	if err != nil {
		return err
	}
	what, err := c.consumption(p)
	if err != nil {
		return err
	}
	write, err := c.formatter()
	if err != nil {
		return err
	}
	k, err := c.connect(ctx, c.text("bootstrap-server"), p, "console-consumer", c.consumerOptions(what)...)
	if err != nil {
		return err
	}
	defer k.CloseAllowingRebalance()
	n, err := c.consumeAll(ctx, k, what, write)
	fmt.Fprintf(c.Err, "Processed a total of %d messages\n", n)
	if c.has("enable-systest-events") {
		fmt.Fprintln(c.Out, "shutdown_complete")
	}
	return err
}

// consumption reads options and properties.
func (c *call) consumption(p *properties) (consumption, error) {
	w := consumption{most: -1, group: p.get("group.id", "")}
	if c.has("group") {
		if w.group != "" && w.group != c.text("group") {
			return w, misused("The group ids provided in different places (directly using '--group', or via properties) do not match. Detected group ids: '%s', '%s'", c.text("group"), w.group)
		}
		w.group = c.text("group")
	}
	if w.group != "" && c.has("partition") {
		return w, misused("Options group and partition cannot be specified together.")
	}
	reset := p.get("auto.offset.reset", "")
	if reset != "" && reset != "earliest" && c.has("from-beginning") {
		return w, fmt.Errorf("Can't simultaneously specify --from-beginning and 'auto.offset.reset=%s', please remove one option", reset) //nolint:staticcheck // Kafka's words
	}
	w.from = kgo.NewOffset().AtEnd()
	switch {
	case c.has("offset"):
		switch at := strings.ToLower(c.text("offset")); at {
		case "earliest":
			w.from = kgo.NewOffset().AtStart()
		case "latest":
		default:
			n, err := strconv.ParseInt(at, 10, 64)
			if err != nil || n < 0 {
				return w, misused("The provided offset value '%s' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long.", at)
			}
			w.from = kgo.NewOffset().At(n)
		}
	case reset == "none":
		w.from = kgo.NoResetOffset()
	case reset == "earliest" || c.has("from-beginning"):
		w.from = kgo.NewOffset().AtStart()
	case reset != "" && reset != "latest":
		return w, fmt.Errorf("auto.offset.reset: want earliest, latest or none, not %q", reset)
	}
	var err error
	if w.every, err = p.millis("auto.commit.interval.ms", 5*time.Second); err != nil {
		return w, err
	}
	w.commits = p.get("enable.auto.commit", strconv.FormatBool(w.group != "")) == "true" && w.group != ""
	level := c.merge(p, "isolation.level", "isolation-level")
	if level != "read_committed" && level != "read_uncommitted" {
		return w, fmt.Errorf("isolation.level: want read_committed or read_uncommitted, not %q", level)
	}
	w.committed = level == "read_committed"
	if c.has("timeout-ms") && c.number("timeout-ms") >= 0 {
		w.patience = time.Duration(max(c.number("timeout-ms"), 1)) * time.Millisecond
	}
	if c.has("max-messages") {
		w.most = c.number("max-messages")
	}
	p.get("key.deserializer", "") // those of the formatter count
	p.get("value.deserializer", "")
	return w, nil
}

func (c *call) consumerOptions(w consumption) []kgo.Opt {
	options := []kgo.Opt{kgo.ConsumeResetOffset(w.from), kgo.FetchMaxWait(500 * time.Millisecond), kgo.AllowAutoTopicCreation()}
	if w.committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	switch {
	case c.has("partition"):
		return append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.text("topic"): {int32(c.number("partition")): w.from}}))
	case c.has("topic"):
		options = append(options, kgo.ConsumeTopics(c.text("topic")))
	default:
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:"+c.text("include")+c.text("whitelist")+")$"))
	}
	if w.group == "" {
		return options
	}
	options = append(options, kgo.ConsumerGroup(w.group), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.Balancers(kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()))
	return options
}

// consumeAll prints messages until there were enough, none came for too long, or ctx ends. It counts them.
func (c *call) consumeAll(ctx context.Context, k *cluster, w consumption, write func(*bufio.Writer, *kgo.Record) error) (n int64, err error) {
	out := bufio.NewWriter(c.Out)
	printed := map[topicPartition]*kgo.Record{} // the last of each partition, since the last commit
	committed := time.Now()
	commit := func() error {
		if !w.commits || len(printed) == 0 {
			return nil
		}
		var last []*kgo.Record
		for _, r := range printed {
			last = append(last, r)
		}
		clear(printed)
		committed = time.Now()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.patience)
		defer cancel()
		return k.CommitRecords(kgo.PreCommitFnContext(ctx, withoutMetadata), last...)
	}
	defer func() { err = errors.Join(err, out.Flush(), commit()) }()
	since := time.Now() // the last message
	for w.most < 0 || n < w.most {
		fetches, ended := c.poll(ctx, k, w, since)
		if ended {
			return n, nil
		}
		for records := fetches.RecordIter(); !records.Done() && (w.most < 0 || n < w.most); {
			r := records.Next()
			n, since = n+1, time.Now()
			if err := write(out, r); err != nil {
				if !c.has("skip-message-on-error") {
					return n, err
				}
				fmt.Fprintf(c.Err, "ERROR: Error processing message, skipping this message: %v\n", err)
			}
			printed[topicPartition{r.Topic, r.Partition}] = r
		}
		if err := out.Flush(); err != nil {
			return n, fmt.Errorf("Unable to write to standard out, closing consumer: %w", err) //nolint:staticcheck // Kafka's words
		}
		if time.Since(committed) >= w.every {
			if err := commit(); err != nil {
				return n, err
			}
		}
		k.AllowRebalance()
	}
	return n, nil
}

// withoutMetadata takes away what the client says of itself with a commit, which Kafka's doesn't.
func withoutMetadata(r *kmsg.OffsetCommitRequest) error {
	none := ""
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			r.Topics[i].Partitions[j].Metadata = &none
		}
	}
	return nil
}

// poll waits for messages. It says that it is time to end when ctx is done, patience is at its end, or a partition fails for good.
func (c *call) poll(ctx context.Context, k *cluster, w consumption, since time.Time) (kgo.Fetches, bool) {
	const look = time.Second // so often commits are due even where nothing comes
	wait := look
	if w.patience > 0 {
		wait = min(wait, w.patience-time.Since(since))
	}
	waiting, cancel := context.WithTimeout(ctx, max(wait, 0))
	defer cancel()
	fetches := k.PollFetches(waiting)
	if fetches.NumRecords() > 0 {
		return fetches, false
	}
	failed := false
	fetches.EachError(func(topic string, partition int32, err error) {
		var code *kerr.Error
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		case errors.As(err, &code) && code.Retriable: // such as a topic that isn't there: it may come
			fmt.Fprintf(c.Err, "WARN: topic %s, partition %d: %v\n", topic, partition, err)
		default:
			failed = true
			fmt.Fprintf(c.Err, "ERROR: Error processing message, terminating consumer process: topic %s, partition %d: %v\n", topic, partition, err)
		}
	})
	if ctx.Err() != nil || failed {
		return nil, true
	}
	if w.patience > 0 && time.Since(since) >= w.patience {
		fmt.Fprintf(c.Err, "ERROR: Error processing message, terminating consumer process: no message for %s\n", w.patience)
		return nil, true
	}
	return fetches, false
}
