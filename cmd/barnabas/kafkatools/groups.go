package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

// The actions of kafka-consumer-groups, and what a reset may go to.
func groupActions() []string {
	return []string{"list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex"}
}

func resetScenarios() []string {
	return []string{"to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file"}
}

func groupsTool() Tool {
	return Tool{
		Name:  "kafka-consumer-groups",
		About: "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset consumer group offsets.",
		options: []option{
			bootstrapOption(), commandConfigOption(),
			{name: "group", arg: "consumer group", many: true, about: "The consumer group we wish to act on."},
			{name: "topic", arg: "topic", many: true, about: "The topic whose offsets are to be deleted or reset, or partitions of it: topic1:0,1,2."},
			{name: "all-topics", about: "When resetting, consider all topics in which the group has committed."},
			{name: "all-groups", about: "Apply to all consumer groups."},
			{name: "list", about: "List all consumer groups."},
			{name: "describe", about: "Describe consumer groups and list their lag."},
			{name: "delete", about: "Delete consumer groups, with all that they committed."},
			{name: "timeout", arg: "timeout (ms)", bits: 64, preset: "5000", about: "How long to wait for the cluster."},
			{name: "reset-offsets", about: "Reset offsets of consumer groups without members. --dry-run (the default) only shows them, --execute does it, --export prints CSV."},
			{name: "delete-offsets", about: "Delete offsets of a consumer group."},
			{name: "dry-run", about: "Only show what would be reset."},
			{name: "execute", about: "Reset the offsets."},
			{name: "export", about: "Print what is reset as CSV."},
			{name: "to-offset", arg: "offset", bits: 64, about: "Reset to this offset."},
			{name: "from-file", arg: "file", about: "Reset to the offsets in a CSV file."},
			{name: "to-datetime", arg: "datetime", about: "Reset to the first record of this time: YYYY-MM-DDTHH:mm:SS.sss, in UTC unless it ends in another zone."},
			{name: "by-duration", arg: "duration", about: "Reset to the first record that isn't older: PnDTnHnMnS."},
			{name: "to-earliest", about: "Reset to the earliest offset."},
			{name: "to-latest", about: "Reset to the latest offset."},
			{name: "to-current", about: "Reset to what is committed, else to the latest offset."},
			{name: "shift-by", arg: "number-of-offsets", bits: 64, about: "Reset to so many records after what is committed, or before."},
			{name: "members", about: "With --describe: the members."},
			{name: "verbose", about: "With --describe: more columns."},
			{name: "offsets", about: "With --describe: the partitions, their offsets and lag. The default."},
			{name: "state", arg: "state,state", optional: true, about: "With --describe: the state of the groups. With --list: the states, or only groups in these."},
			{name: "type", arg: "type,type", optional: true, about: "With --list: the types, or only groups of these: classic, consumer."},
			{name: "validate-regex", arg: "regex", about: "Say whether a regular expression is one that brokers understand."},
		},
		run: func(ctx context.Context, c *call) error {
			action, err := c.checkGroups()
			if err != nil {
				return err
			}
			if action == "validate-regex" {
				c.validateRegex(c.text(action))
				return nil
			}
			err = c.groupCommand(ctx, map[string]func(context.Context, *cluster) error{
				"list": c.listGroups, "describe": c.describeGroups, "delete": c.deleteGroups, "reset-offsets": c.resetOffsets, "delete-offsets": c.deleteOffsets,
			}[action])
			var usage usageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			c.printError("Executing consumer group command failed due to %v", err)
			return nil // exits with 0, as Kafka's does
		},
	}
}

// printError prints as the tool does, on standard output.
func (c *call) printError(format string, args ...any) {
	fmt.Fprintf(c.Out, "\nError: "+format+"\n", args...)
}

// groupCommand connects with the tool's own patience.
func (c *call) groupCommand(ctx context.Context, f func(context.Context, *cluster) error) error {
	timeout := c.text("timeout")
	p, err := loadProperties(c.text("command-config"), map[string]string{"default.api.timeout.ms": timeout})
	if err != nil {
		return err
	}
	k, err := c.connect(ctx, c.text("bootstrap-server"), p, "adminclient-1")
	if err != nil {
		return err
	}
	defer k.Close()
	return f(ctx, k)
}

// checkGroups finds what is wrong with the options, and gives the action.
func (c *call) checkGroups() (string, error) {
	action, err := c.exactlyOne(groupActions()...)
	if err != nil {
		return "", err
	}
	if action == "validate-regex" {
		return action, nil
	}
	if err := c.require("bootstrap-server"); err != nil {
		return "", err
	}
	for _, name := range []string{"members", "verbose", "offsets"} {
		if c.has(name) && action != "describe" {
			return "", misused("Option(s) [%s] are unavailable given other options on the command line", name)
		}
	}
	if c.has("state") && action != "describe" && action != "list" || c.has("type") && action != "list" {
		return "", misused("Option(s) [state, type] are unavailable given other options on the command line")
	}
	switch action {
	case "describe":
		err = c.checkDescribe()
	case "delete":
		if c.count("group", "all-groups") == 0 {
			err = misused("Option [delete] takes one of these options: [group], [all-groups]")
		} else if c.has("topic") {
			err = misused("The consumer does not support topic-specific offset deletion from a consumer group.")
		}
	case "delete-offsets":
		if c.count("group", "topic") != 2 {
			err = misused("Option [delete-offsets] takes the following options: [group], [topic]")
		} else if len(c.values["group"]) > 1 {
			err = misused("Found multiple arguments for option group, but you asked for only one")
		}
	case "reset-offsets":
		err = c.checkReset()
	}
	if err == nil {
		err = c.apart("group", "all-groups", "list")
	}
	return action, err
}

func (c *call) checkDescribe() error {
	switch {
	case c.count("group", "all-groups") == 0:
		return misused("Option [describe] takes one of these options: [group], [all-groups]")
	case c.count("members", "offsets", "state") > 1:
		return misused("Option [describe] takes at most one of these options: [members], [offsets], [state]")
	case c.text("state") != "":
		return misused("Option [describe] does not take a value for [state]")
	}
	return nil
}

func (c *call) checkReset() error {
	switch {
	case c.count("dry-run", "execute") > 1:
		return misused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
	case c.count("group", "all-groups") == 0:
		return misused("Option [reset-offsets] takes one of these options: [group], [all-groups]")
	case c.count(resetScenarios()...) != 1:
		return misused("Option [reset-offsets] takes one of these options: [%s]", strings.Join(resetScenarios(), "], ["))
	case c.count("all-topics", "topic", "from-file") == 0:
		return misused("One of the reset scopes should be defined: --all-topics, --topic.")
	}
	if c.count("dry-run", "execute") == 0 {
		fmt.Fprintln(c.Err, "WARN: No action will be performed as the --execute option is missing.")
	}
	return c.apart("all-topics", "topic")
}

func (c *call) validateRegex(text string) {
	if _, err := regexp.Compile(text); err != nil {
		reason := err.Error()
		var at *syntax.Error
		if errors.As(err, &at) {
			reason = at.Code.String()
		}
		fmt.Fprintf(c.Out, "The regular expression `%s` is invalid: %s.\n", text, reason)
		return
	}
	fmt.Fprintf(c.Out, "The regular expression `%s` is valid.\n", text)
}

// consumerGroups lists groups of consumers, and such that have nothing but commits.
func consumerGroups(ctx context.Context, k *cluster) ([]kadm.ListedGroup, error) {
	listed, err := groups.List(ctx, k.admin)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(listed, func(g kadm.ListedGroup) bool {
		return !groups.Consumes(g) || g.ProtocolType != "" && g.ProtocolType != "consumer"
	}), nil
}

// groupNames are the groups that are meant.
func (c *call) groupNames(ctx context.Context, k *cluster) ([]string, error) {
	if !c.has("all-groups") {
		names := slices.Clone(c.values["group"])
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	listed, err := consumerGroups(ctx, k)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, g := range listed {
		names = append(names, g.Group)
	}
	return names, nil
}

// words reads a comma separated list of which each must be one of those that are valid, in capitals or not.
func words(text, what string, valid []string) ([]string, error) {
	var all []string
	for _, word := range strings.Split(text, ",") {
		at := slices.IndexFunc(valid, func(v string) bool { return strings.EqualFold(v, strings.TrimSpace(word)) })
		if at < 0 {
			return nil, misused("Invalid %s list '%s'. Valid %ss are: %s", what, text, what, strings.Join(valid, ", "))
		}
		all = append(all, valid[at])
	}
	return all, nil
}

func (c *call) listGroups(ctx context.Context, k *cluster) error {
	var states, types []string
	var err error
	if c.text("state") != "" {
		if states, err = words(c.text("state"), "state", []string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"}); err != nil {
			return err
		}
	}
	if c.text("type") != "" {
		if types, err = words(c.text("type"), "type", []string{"Classic", "Consumer"}); err != nil {
			return err
		}
	}
	listed, err := consumerGroups(ctx, k)
	if err != nil {
		return err
	}
	width := 15
	var shown [][]any
	for _, g := range listed {
		kind, state := "Unknown", "Unknown"
		if g.GroupType != "" {
			kind = strings.ToUpper(g.GroupType[:1]) + strings.ToLower(g.GroupType[1:])
		}
		if g.State != "" {
			state = g.State
		}
		if len(states) > 0 && !slices.Contains(states, state) || len(types) > 0 && !slices.Contains(types, kind) {
			continue
		}
		cells := []any{g.Group}
		if c.has("type") {
			cells = append(cells, kind)
		}
		if c.has("state") {
			cells = append(cells, state)
		}
		width = max(width, len(g.Group))
		shown = append(shown, cells)
	}
	header := []any{"GROUP"}
	widths := []int{width + 10}
	for _, name := range []string{"type", "state"} {
		if c.has(name) {
			header, widths = append(header, strings.ToUpper(name)), append(widths, 20)
		}
	}
	if len(header) == 1 { // names alone, as they are
		header, widths = nil, nil
	}
	if header != nil {
		fmt.Fprintln(c.Out, padded(widths, header...))
	}
	for _, cells := range shown {
		fmt.Fprintln(c.Out, padded(widths, cells...))
	}
	return nil
}

func (c *call) deleteGroups(ctx context.Context, k *cluster) error {
	names, err := c.groupNames(ctx, k)
	if err != nil {
		return err
	}
	var done, failed []string
	if len(names) > 0 {
		deleted, err := k.admin.DeleteGroups(ctx, names...)
		for _, name := range names {
			d, ok := deleted[name]
			switch {
			case !ok:
				failed = append(failed, fmt.Sprintf("* Group '%s' could not be deleted due to: %v", name, err))
			case d.Err != nil:
				failed = append(failed, fmt.Sprintf("* Group '%s' could not be deleted due to: %s", name, javaException(d.Err, d.ErrMessage)))
			default:
				done = append(done, "'"+name+"'")
			}
		}
	}
	if len(failed) == 0 {
		fmt.Fprintf(c.Out, "Deletion of requested consumer groups (%s) was successful.\n", strings.Join(done, ", "))
		return nil
	}
	c.printError("Deletion of some consumer groups failed:")
	fmt.Fprintln(c.Out, strings.Join(failed, "\n"))
	if len(done) > 0 {
		fmt.Fprintf(c.Out, "\nThese consumer groups were deleted successfully: %s\n", strings.Join(done, ", "))
	}
	return nil
}

// javaException is an error of a broker as Java prints the exception that Kafka's client makes of it.
func javaException(err error, message string) string {
	var code *kerr.Error
	if !errors.As(err, &code) {
		return err.Error()
	}
	name := ""
	for _, word := range strings.Split(code.Message, "_") {
		name += word[:1] + strings.ToLower(word[1:])
	}
	switch {
	case errors.Is(err, kerr.NonEmptyGroup):
		name = "GroupNotEmpty"
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		name = "GroupAuthorization"
	}
	if message == "" {
		message = code.Description
	}
	return "org.apache.kafka.common.errors." + name + "Exception: " + message
}

func (c *call) deleteOffsets(ctx context.Context, k *cluster) error {
	group := c.text("group")
	partitions, unknown, err := c.resetPartitions(ctx, k, c.values["topic"])
	if err != nil {
		return err
	}
	var set kadm.TopicsSet
	for _, p := range partitions {
		set.Add(p.topic, p.number)
	}
	results := map[topicPartition]error{}
	for _, topic := range unknown {
		results[topicPartition{topic, -1}] = kerr.UnknownTopicOrPartition
	}
	var whole error
	if len(set) > 0 {
		var deleted kadm.DeleteOffsetsResponses
		if deleted, whole = k.admin.DeleteOffsets(ctx, group, set); whole == nil {
			whole = deleted.Error()
		}
		for _, p := range partitions {
			results[p] = whole
			if err, ok := deleted[p.topic][p.number]; ok {
				results[p] = err
			}
		}
	}
	switch {
	case whole == nil:
		fmt.Fprintf(c.Out, "Request succeeded for deleting offsets from group %s.\n", group)
	case errors.Is(whole, kerr.InvalidGroupID), errors.Is(whole, kerr.GroupIDNotFound), errors.Is(whole, kerr.GroupAuthorizationFailed), errors.Is(whole, kerr.NonEmptyGroup):
		c.printError("%v", said(whole, ""))
	case errors.Is(whole, kerr.GroupSubscribedToTopic), errors.Is(whole, kerr.TopicAuthorizationFailed), errors.Is(whole, kerr.UnknownTopicOrPartition):
		c.printError("Encountered some partition-level error, see the follow-up details.")
	default:
		c.printError("Encountered some unknown error: %v", whole)
	}
	c.printDeleted(results)
	return nil
}

func (c *call) printDeleted(results map[topicPartition]error) {
	width := 15
	var order []topicPartition
	for p := range results {
		width = max(width, len(p.topic))
		order = append(order, p)
	}
	slices.SortFunc(order, func(x, y topicPartition) int {
		return strings.Compare(fmt.Sprint(x.topic, x.number), fmt.Sprint(y.topic, y.number))
	})
	widths := []int{width, 10, 15}
	fmt.Fprint(c.Out, "\n"+padded(widths, "TOPIC", "PARTITION", "STATUS"))
	for _, p := range order {
		number, status := any(p.number), "Successful"
		if p.number < 0 {
			number = "-"
		}
		if err := results[p]; err != nil {
			status = "Error: " + said(err, "").Error()
		}
		fmt.Fprint(c.Out, "\n"+padded(widths, p.topic, number, status))
	}
	fmt.Fprintln(c.Out)
}
