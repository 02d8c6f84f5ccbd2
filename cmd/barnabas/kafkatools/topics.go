package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func topicsTool() Tool {
	return Tool{
		Name:  "kafka-topics",
		About: "This tool helps to create, delete, describe, or change a topic.",
		options: []option{
			bootstrapOption(), commandConfigOption(),
			{name: "list", about: "List all available topics."},
			{name: "create", about: "Create a new topic."},
			{name: "delete", about: "Delete a topic."},
			{name: "alter", about: "Alter the number of partitions. (Configurations: kafka-configs.)"},
			{name: "describe", about: "List details for the given topics."},
			{name: "topic", arg: "topic", about: "The topic. But for --create it may be a regular expression, or a list of such."},
			{name: "topic-id", arg: "topic id", about: "The id of the topic to describe."},
			{name: "config", arg: "name=value", many: true, about: "A configuration of the topic being created."},
			{name: "delete-config", arg: "name", many: true, about: "No longer supported."},
			{name: "partitions", arg: "# of partitions", bits: 32, about: "The number of partitions for the topic being created or altered."},
			{name: "replication-factor", arg: "replication factor", bits: 32, about: "The replicas of each partition of the topic being created."},
			{name: "replica-assignment", arg: "id:id,id:id,...", about: "The replicas of each partition of the topic being created or altered."},
			{name: "under-replicated-partitions", about: "When describing, show only partitions with replicas that aren't in sync."},
			{name: "unavailable-partitions", about: "When describing, show only partitions whose leader isn't available."},
			{name: "under-min-isr-partitions", about: "When describing, show only partitions with fewer replicas in sync than the configured minimum."},
			{name: "at-min-isr-partitions", about: "When describing, show only partitions with as many replicas in sync as the configured minimum."},
			{name: "topics-with-overrides", about: "When describing, show only topics that have configurations of their own."},
			{name: "if-exists", about: "When altering, deleting or describing, do it only if the topic exists."},
			{name: "if-not-exists", about: "When creating, that the topic exists is no error."},
			{name: "exclude-internal", about: "Leave out internal topics when listing or describing."},
			{name: "partition-size-limit-per-response", arg: "partitions", bits: 32, preset: "2000", about: "The most partitions that are asked for at once."},
		},
		run: func(ctx context.Context, c *call) error {
			action, err := c.checkTopics()
			if err != nil {
				return err
			}
			err = c.administer(ctx, func(ctx context.Context, k *cluster) error {
				return map[string]func(context.Context, *cluster) error{
					"list": c.listTopics, "create": c.createTopic, "alter": c.alterTopics, "describe": c.describeTopics, "delete": c.deleteTopics,
				}[action](ctx, k)
			})
			var usage usageError
			if err == nil || errors.As(err, &usage) || errors.As(err, new(missingTopic)) {
				return err
			}
			fmt.Fprintf(c.Out, "Error while executing topic command : %v\n", err)
			return codeError(1)
		},
	}
}

// The options that choose which partitions are described.
func partitionReports() []string {
	return []string{"under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions"}
}

// checkTopics finds what is wrong with the options, and gives the action.
func (c *call) checkTopics() (string, error) {
	action, err := c.exactlyOne("list", "describe", "create", "alter", "delete")
	if err != nil {
		return "", err
	}
	if !c.has("bootstrap-server") {
		return "", misused("--bootstrap-server must be specified")
	}
	if c.has("delete-config") {
		fmt.Fprintln(c.Err, "delete-config option is no longer supported: kafka-configs deletes configurations.")
	}
	if action == "describe" && c.has("if-exists") && c.count("topic", "topic-id") == 0 {
		return "", misused("--topic or --topic-id is required to describe a topic")
	}
	if action != "list" && action != "describe" {
		err = c.require("topic")
	}
	if action == "alter" && err == nil {
		if c.has("config") {
			err = misused("Option \"[config]\" can't be used with option \"[alter]\" (To alter topic configurations, the kafka-configs tool can be used.)")
		} else {
			err = c.require("partitions")
		}
	}
	errs := []error{
		err, c.only("config", action, "create"), c.only("partitions", action, "create", "alter"), c.only("replication-factor", action, "create"),
		c.only("replica-assignment", action, "create", "alter"), c.only("if-exists", action, "alter", "delete", "describe"),
		c.only("if-not-exists", action, "create"), c.only("exclude-internal", action, "list", "describe"), c.only("topics-with-overrides", action, "describe"),
		c.apart("topics-with-overrides", partitionReports()...),
	}
	if action == "create" {
		errs = append(errs, c.apart("replica-assignment", "partitions", "replication-factor"))
	}
	for _, report := range partitionReports() {
		errs = append(errs, c.only(report, action, "describe"))
	}
	for _, err := range errs {
		if err != nil {
			return "", err // the first, as with Kafka
		}
	}
	return action, nil
}

// only refuses an option with other actions than those.
func (c *call) only(name, action string, actions ...string) error {
	if c.has(name) && !slices.Contains(actions, action) {
		return misused("Option \"[%s]\" can't be used with option \"[%s]\"", name, action)
	}
	return nil
}

// topicFilter is a regular expression for whole names, in which a comma is another way to write "|", as Kafka's tools have it.
func topicFilter(text string) (*regexp.Regexp, error) {
	text = strings.Map(func(r rune) rune {
		if r == ' ' || r == '"' || r == '\'' {
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.TrimSpace(text), ",", "|"))
	filter, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return nil, misused("%s is an invalid regex: %v", text, err)
	}
	return filter, nil
}

// matchingTopics are the topics that --topic means, all without it, in order.
func (c *call) matchingTopics(ctx context.Context, k *cluster) ([]kadm.TopicDetail, error) {
	filter, err := topicFilter(".*")
	if c.has("topic") {
		filter, err = topicFilter(c.text("topic"))
	}
	if err != nil {
		return nil, err
	}
	all, err := k.admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return nil, err
	}
	var found []kadm.TopicDetail
	for _, t := range all.Sorted() {
		if filter.MatchString(t.Topic) && !(c.has("exclude-internal") && t.IsInternal) {
			found = append(found, t)
		}
	}
	return found, nil
}

// missingTopic says that a topic isn't there that should be.
type missingTopic struct{ what string }

func (m missingTopic) Error() string { return m.what + " does not exist as expected" }

// expectedTopics is matchingTopics where none is an error, unless --if-exists is given.
func (c *call) expectedTopics(ctx context.Context, k *cluster) ([]kadm.TopicDetail, error) {
	found, err := c.matchingTopics(ctx, k)
	if err == nil && len(found) == 0 && c.text("topic") != "" && !c.has("if-exists") {
		err = missingTopic{fmt.Sprintf("Topic '%s'", c.text("topic"))}
	}
	return found, err
}

func (c *call) listTopics(ctx context.Context, k *cluster) error {
	found, err := c.matchingTopics(ctx, k)
	if err != nil {
		return err
	}
	names := make([]string, len(found))
	for i, t := range found {
		names[i] = t.Topic
	}
	fmt.Fprintln(c.Out, strings.Join(names, "\n"))
	return nil
}

// assignment reads --replica-assignment: the replicas of each partition.
func (c *call) assignment() ([][]int32, error) {
	if c.text("replica-assignment") == "" {
		return nil, nil
	}
	var all [][]int32
	for i, text := range strings.Split(c.text("replica-assignment"), ",") {
		var replicas []int32
		for _, number := range strings.Split(text, ":") {
			id, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
			if err != nil {
				return nil, misused("--replica-assignment: want ID:ID,ID:ID, not %q", text)
			}
			if slices.Contains(replicas, int32(id)) {
				return nil, fmt.Errorf("Partition replica lists may not contain duplicate entries: %d", id) //nolint:staticcheck // Kafka's words
			}
			replicas = append(replicas, int32(id))
		}
		if i > 0 && len(replicas) != len(all[0]) {
			return nil, fmt.Errorf("Partition %d has different replication factor: %v", i, replicas) //nolint:staticcheck // Kafka's words
		}
		all = append(all, replicas)
	}
	return all, nil
}

func (c *call) createTopic(ctx context.Context, k *cluster) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = c.text("topic"), -1, -1
	assigned, err := c.assignment()
	if err != nil {
		return err
	}
	for i, replicas := range assigned {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
	}
	if c.has("replication-factor") {
		n := c.number("replication-factor")
		if n < 1 || n > math.MaxInt16 {
			return misused("The replication factor must be between 1 and %d inclusive", math.MaxInt16)
		}
		topic.ReplicationFactor = int16(n)
	}
	if c.has("partitions") {
		if c.number("partitions") < 1 {
			return misused("The partitions must be greater than 0")
		}
		topic.NumPartitions = int32(c.number("partitions"))
	}
	for _, pair := range c.values["config"] {
		name, value, ok := strings.Cut(pair, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || value == "" {
			return misused("requirement failed: Invalid topic config: all configs to be added must be in the format \"key=val\".")
		}
		one := kmsg.NewCreateTopicsRequestTopicConfig()
		one.Name, one.Value = name, &value
		topic.Configs = append(topic.Configs, one)
	}
	if strings.ContainsAny(topic.Topic, "._") {
		fmt.Fprintln(c.Out, "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.")
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	request.TimeoutMillis = int32(k.patience.Milliseconds())
	response, err := request.RequestWith(ctx, k.Client)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if errors.Is(err, kerr.TopicAlreadyExists) && c.has("if-not-exists") {
			return nil
		}
		if err != nil {
			return said(err, unnil(t.ErrorMessage))
		}
	}
	fmt.Fprintf(c.Out, "Created topic %s.\n", topic.Topic)
	return nil
}

func unnil(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (c *call) alterTopics(ctx context.Context, k *cluster) error {
	assigned, err := c.assignment()
	if err != nil {
		return err
	}
	found, err := c.expectedTopics(ctx, k)
	if err != nil || len(found) == 0 {
		return err
	}
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.TimeoutMillis = int32(k.patience.Milliseconds())
	for _, t := range found {
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = t.Topic, int32(c.number("partitions"))
		for i := len(t.Partitions); i < len(assigned); i++ {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = assigned[i]
			topic.Assignment = append(topic.Assignment, a)
		}
		request.Topics = append(request.Topics, topic)
	}
	response, err := request.RequestWith(ctx, k.Client)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return said(err, unnil(t.ErrorMessage))
		}
	}
	return nil
}

func (c *call) deleteTopics(ctx context.Context, k *cluster) error {
	found, err := c.expectedTopics(ctx, k)
	if err != nil || len(found) == 0 {
		return err
	}
	names := make([]string, len(found))
	for i, t := range found {
		names[i] = t.Topic
	}
	deleted, err := k.admin.DeleteTopics(ctx, names...)
	if err != nil {
		return err
	}
	for _, d := range deleted.Sorted() {
		if d.Err != nil {
			return said(d.Err, d.ErrMessage)
		}
	}
	return nil
}
