package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicPartition names a partition.
type topicPartition struct {
	topic  string
	number int32
}

func (p topicPartition) String() string { return fmt.Sprintf("%s-%d", p.topic, p.number) }

// The times of ListOffsets that stand for places in the log.
const (
	atLatest        = -1
	atEarliest      = -2
	atMaxTimestamp  = -3
	atEarliestLocal = -4
	atLatestTiered  = -5
	atPendingUpload = -6
)

// listedOffset is what a broker said of a partition: offset -1 for none.
type listedOffset struct {
	offset int64
	err    error
}

// listOffsets asks the leaders of partitions for offsets. A partition that no leader told of has an error.
func listOffsets(ctx context.Context, client *kgo.Client, of []topicPartition, time int64) (map[topicPartition]listedOffset, error) {
	all := map[topicPartition]listedOffset{}
	if len(of) == 0 {
		return all, nil
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	topics := map[string][]kmsg.ListOffsetsRequestTopicPartition{}
	var names []string
	for _, p := range of {
		if _, ok := topics[p.topic]; !ok {
			names = append(names, p.topic)
		}
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp, one.CurrentLeaderEpoch = p.number, time, -1
		topics[p.topic] = append(topics[p.topic], one)
	}
	for _, name := range names {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic, t.Partitions = name, topics[name]
		request.Topics = append(request.Topics, t)
	}
	failed := errors.New("no broker told of it")
	for _, shard := range client.RequestSharded(ctx, request) {
		if shard.Err != nil {
			failed = shard.Err
			for _, t := range shard.Req.(*kmsg.ListOffsetsRequest).Topics {
				for _, p := range t.Partitions {
					all[topicPartition{t.Topic, p.Partition}] = listedOffset{-1, shard.Err}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				all[topicPartition{t.Topic, p.Partition}] = listedOffset{p.Offset, said(kerr.ErrorForCode(p.ErrorCode), "")}
			}
		}
	}
	for _, p := range of {
		if _, ok := all[p]; !ok {
			all[p] = listedOffset{-1, failed}
		}
	}
	return all, ctx.Err()
}

func offsetsTool() Tool {
	return Tool{
		Name:  "kafka-get-offsets",
		About: "An interactive shell for getting topic-partition offsets.",
		options: []option{
			bootstrapOption(), commandConfigOption(),
			{name: "topic-partitions", arg: "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3", about: "Patterns of topics and partitions to get the offsets for: a regular expression for the topic, and a number, or a range without its upper end, for the partition. Either may be missing."},
			{name: "topic", arg: "topic", about: "The topic, or a regular expression. Without it, all topics."},
			{name: "partitions", arg: "partition ids", about: "Only these partitions, comma separated."},
			{name: "time", arg: "timestamp", preset: "latest", about: "A timestamp in milliseconds, or -1 or latest, -2 or earliest, -3 or max-timestamp, -4 or earliest-local, -5 or latest-tiered, -6 or earliest-pending-upload."},
			{name: "exclude-internal-topics", about: "Leave out internal topics."},
		},
		run: func(ctx context.Context, c *call) error {
			if err := c.getOffsets(ctx); err != nil {
				var usage usageError
				if errors.As(err, &usage) {
					return err
				}
				fmt.Fprintf(c.Err, "Error occurred: %v\n", err)
				return codeError(1)
			}
			return nil
		},
	}
}

// partitionPattern chooses partitions: of topics that match, those from first up to, but not with, beyond; with only, those alone.
type partitionPattern struct {
	topic         *regexp.Regexp
	first, beyond int64
	only          []int32
}

func (p partitionPattern) matches(topic string, number int32) bool {
	if len(p.only) > 0 && !slices.Contains(p.only, number) {
		return false
	}
	return p.topic.MatchString(topic) && p.first <= int64(number) && int64(number) < p.beyond
}

const allPartitions = int64(1) << 32

// partitionPatterns reads --topic-partitions, or --topic and --partitions.
func (c *call) partitionPatterns() ([]partitionPattern, error) {
	if c.has("topic-partitions") {
		if c.count("topic", "partitions") > 0 {
			return nil, errors.New("--topic-partitions cannot be used with --topic or --partitions")
		}
		var all []partitionPattern
		for _, rule := range strings.Split(c.text("topic-partitions"), ",") {
			p, err := parsePattern(rule)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return all, nil
	}
	p := partitionPattern{beyond: allPartitions}
	text := ".*"
	if c.has("topic") {
		text = c.text("topic")
	}
	var err error
	if p.topic, err = topicFilter(text); err != nil {
		return nil, err
	}
	if c.text("partitions") != "" {
		for _, number := range strings.Split(c.text("partitions"), ",") {
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("--partitions expects a comma separated list of numeric partition ids, but received: %s", c.text("partitions"))
			}
			p.only = append(p.only, int32(n))
		}
	}
	return []partitionPattern{p}, nil
}

// parsePattern reads TOPIC, TOPIC:N, TOPIC:N-M, TOPIC:N- and TOPIC:-M, in each of which the topic may be missing.
func parsePattern(rule string) (partitionPattern, error) {
	p := partitionPattern{beyond: allPartitions}
	topic, numbers, some := strings.Cut(rule, ":")
	if topic == "" {
		topic = ".*"
	}
	var err error
	if p.topic, err = topicFilter(topic); err != nil || !some || numbers == "" {
		return p, err
	}
	first, beyond, ranged := strings.Cut(numbers, "-")
	if first != "" {
		p.first, err = strconv.ParseInt(first, 10, 32)
		if !ranged {
			p.beyond = p.first + 1
		}
	}
	if beyond != "" && err == nil {
		p.beyond, err = strconv.ParseInt(beyond, 10, 32)
	}
	if err != nil || p.first < 0 {
		return p, fmt.Errorf("Invalid rule specification: %s", rule) //nolint:staticcheck // Kafka's words
	}
	return p, nil
}

func parseOffsetTime(text string) (int64, error) {
	names := map[string]int64{
		"latest": atLatest, "earliest": atEarliest, "max-timestamp": atMaxTimestamp,
		"earliest-local": atEarliestLocal, "latest-tiered": atLatestTiered, "earliest-pending-upload": atPendingUpload,
	}
	if at, ok := names[text]; ok {
		return at, nil
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("Malformed time argument %s. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long format timestamp", text) //nolint:staticcheck // Kafka's words
	}
	return at, nil
}

func (c *call) getOffsets(ctx context.Context) error {
	if err := c.require("bootstrap-server"); err != nil {
		return err
	}
	patterns, err := c.partitionPatterns()
	if err != nil {
		return err
	}
	at, err := parseOffsetTime(c.text("time"))
	if err != nil {
		return err
	}
	return c.administer(ctx, func(ctx context.Context, k *cluster) error {
		topics, err := k.admin.ListTopicsWithInternal(ctx)
		if err != nil {
			return err
		}
		var wanted []topicPartition
		for _, t := range topics.Sorted() {
			for _, p := range t.Partitions.Sorted() {
				matches := func(pattern partitionPattern) bool { return pattern.matches(p.Topic, p.Partition) }
				if slices.ContainsFunc(patterns, matches) && !(c.has("exclude-internal-topics") && t.IsInternal) {
					wanted = append(wanted, topicPartition{p.Topic, p.Partition})
				}
			}
		}
		if len(wanted) == 0 {
			return errors.New("Could not match any topic-partitions with the specified filters") //nolint:staticcheck // Kafka's words
		}
		offsets, err := listOffsets(ctx, k.Client, wanted, at)
		if err != nil {
			return err
		}
		slices.SortFunc(wanted, func(x, y topicPartition) int { return strings.Compare(x.String(), y.String()) }) // as texts, so that 10 comes before 2
		for _, p := range wanted {
			switch o := offsets[p]; {
			case o.err != nil:
				fmt.Fprintf(c.Err, "Skip getting offsets for topic-partition %s due to error: %v\n", p, o.err)
			case o.offset >= 0:
				fmt.Fprintf(c.Out, "%s:%d:%d\n", p.topic, p.number, o.offset)
			}
		}
		return nil
	})
}
