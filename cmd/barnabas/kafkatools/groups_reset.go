package kafkatools

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

// groupPlan is where one group is to go on reading.
type groupPlan struct {
	group   string
	offsets map[topicPartition]int64
}

func (p groupPlan) order() []topicPartition {
	var all []topicPartition
	for one := range p.offsets {
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y topicPartition) int {
		return cmp.Or(strings.Compare(x.topic, y.topic), cmp.Compare(x.number, y.number))
	})
	return all
}

func (c *call) resetOffsets(ctx context.Context, k *cluster) error {
	names, err := c.groupNames(ctx, k)
	if err != nil {
		return err
	}
	described, err := groups.Describe(ctx, k.admin, names...)
	if err != nil {
		return err
	}
	var plans []groupPlan
	for _, g := range described {
		plan := groupPlan{group: g.Name}
		if g.State != groups.Empty && g.State != groups.Dead {
			c.printError("Assignments can only be reset if the group '%s' is inactive, but the current state is %s.", g.Name, g.State)
		} else if plan.offsets, err = c.planReset(ctx, k, g.Name); err != nil {
			return err
		}
		if c.has("execute") && len(plan.offsets) > 0 {
			if err := commitPlan(ctx, k, plan); err != nil {
				return err
			}
		}
		plans = append(plans, plan)
	}
	if c.has("export") {
		fmt.Fprintln(c.Out, c.exported(plans))
		return nil
	}
	c.printPlans(plans)
	return nil
}

// commitPlan commits as somebody who is no member, which brokers refuse when the group has got members meanwhile.
func commitPlan(ctx context.Context, k *cluster, plan groupPlan) error {
	var offsets kadm.Offsets
	for p, at := range plan.offsets {
		offsets.Add(kadm.Offset{Topic: p.topic, Partition: p.number, At: at, LeaderEpoch: -1})
	}
	committed, err := k.admin.CommitOffsets(ctx, plan.group, offsets)
	if err == nil {
		err = committed.Error()
	}
	return said(err, "")
}

func (c *call) printPlans(plans []groupPlan) {
	group, topic := 15, 15
	for _, plan := range plans {
		group = max(group, len(plan.group))
		for p := range plan.offsets {
			topic = max(topic, len(p.topic))
		}
	}
	columns := []int{group, topic, 10}
	if len(plans) > 0 {
		fmt.Fprint(c.Out, "\n"+padded(columns, "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
	}
	for _, plan := range plans {
		for _, p := range plan.order() {
			fmt.Fprint(c.Out, "\n"+padded(columns, plan.group, p.topic, p.number, plan.offsets[p]))
		}
	}
	fmt.Fprintln(c.Out)
}

// exported gives the plans as CSV, without the group where one alone is asked for.
func (c *call) exported(plans []groupPlan) string {
	var b strings.Builder
	for _, plan := range plans {
		for _, p := range plan.order() {
			if len(c.values["group"]) != 1 {
				b.WriteString(quoted(plan.group) + ",")
			}
			fmt.Fprintf(&b, "%s,%d,%d\n", quoted(p.topic), p.number, plan.offsets[p])
		}
	}
	return b.String()
}

// quoted quotes a cell when the library that Kafka uses does (Jackson): when it has to be, and when it is too long to look.
func quoted(text string) string {
	const looksAt = 24
	special := func(r rune) bool { return r == '"' || r == ',' || r < ' ' }
	if len(text) > looksAt || strings.ContainsFunc(text, special) {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

// planReset works out where a group is to go on reading.
func (c *call) planReset(ctx context.Context, k *cluster, group string) (map[topicPartition]int64, error) {
	committed, err := committedOffsets(ctx, k, group)
	if err != nil {
		return nil, err
	}
	var of []topicPartition
	switch {
	case c.has("all-topics"):
		for p := range committed {
			of = append(of, p)
		}
	case c.has("topic"):
		var unknown []string
		if of, unknown, err = c.resetPartitions(ctx, k, c.values["topic"]); err == nil && len(unknown) > 0 {
			err = errors.New("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.")
		}
		if err != nil {
			return nil, err
		}
	}
	if err := partitionsThere(ctx, k, of); err != nil {
		return nil, err
	}
	switch {
	case c.has("to-earliest"):
		return k.placesOf(ctx, of, atEarliest)
	case c.has("to-latest"):
		return k.placesOf(ctx, of, atLatest)
	case c.has("to-datetime"):
		at, err := parseDateTime(c.text("to-datetime"))
		if err != nil {
			return nil, err
		}
		return c.offsetsAt(ctx, k, of, at)
	case c.has("by-duration"):
		ago, err := parseDuration(c.text("by-duration"))
		if err != nil {
			return nil, err
		}
		return c.offsetsAt(ctx, k, of, time.Now().Add(-ago).UnixMilli())
	case c.has("to-current"):
		return k.currentOffsets(ctx, of, committed)
	}
	wanted, err := c.wantedOffsets(group, of, committed)
	if err != nil {
		return nil, err
	}
	return c.intoLog(ctx, k, wanted)
}

// wantedOffsets are the offsets of --to-offset, --shift-by and --from-file, which may be outside of the log.
func (c *call) wantedOffsets(group string, of []topicPartition, committed map[topicPartition]int64) (map[topicPartition]int64, error) {
	wanted := map[topicPartition]int64{}
	switch {
	case c.has("from-file"):
		plan, err := readPlan(c.text("from-file"), c.values["group"])
		if err != nil {
			return nil, err
		}
		if plan[group] == nil {
			c.printError("No reset plan for group %s found.", group)
		}
		return plan[group], nil
	case c.has("to-offset"):
		for _, p := range of {
			wanted[p] = c.number("to-offset")
		}
	default:
		for _, p := range of {
			at, ok := committed[p]
			if !ok {
				return nil, misused("Cannot shift offset for partition %s since there is no current committed offset", p)
			}
			wanted[p] = shifted(at, c.number("shift-by"))
		}
	}
	return wanted, nil
}

// shifted adds without overflow; offset isn't negative.
func shifted(offset, by int64) int64 {
	if sum := offset + by; by < 0 || sum >= offset {
		return sum
	}
	return math.MaxInt64
}

// committedOffsets are what a group has committed.
func committedOffsets(ctx context.Context, k *cluster, group string) (map[topicPartition]int64, error) {
	all, err := groups.Committed(ctx, k.admin, group)
	if err != nil {
		return nil, err
	}
	committed := map[topicPartition]int64{}
	for _, o := range all[group] {
		if o.Err != nil {
			return nil, said(o.Err, "")
		}
		committed[topicPartition{o.Topic, o.Partition}] = o.Committed
	}
	return committed, nil
}

// resetPartitions reads arguments of --topic: TOPIC, which stands for all its partitions, and TOPIC:N,N. Topics that aren't there
// are told apart; partitions that are named are taken as they are.
func (c *call) resetPartitions(ctx context.Context, k *cluster, args []string) (of []topicPartition, unknown []string, err error) {
	var whole []string
	for _, arg := range args {
		topic, list, some := strings.Cut(arg, ":")
		if !some {
			whole = append(whole, topic)
			continue
		}
		if topic == "" || list == "" || strings.Contains(list, ":") {
			return nil, nil, misused("Invalid topic arg '%s', expected topic name and partitions", arg)
		}
		for _, number := range strings.Split(list, ",") {
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				return nil, nil, misused("Invalid partition '%s' specified in topic arg '%s'", number, arg)
			}
			of = append(of, topicPartition{topic, int32(n)})
		}
	}
	if len(whole) == 0 {
		return of, nil, nil
	}
	topics, err := k.admin.ListTopicsWithInternal(ctx, whole...)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range whole {
		t, ok := topics[name]
		if !ok || t.Err != nil {
			unknown = append(unknown, name)
			continue
		}
		for _, n := range t.Partitions.Numbers() {
			of = append(of, topicPartition{name, n})
		}
	}
	return of, unknown, nil
}

// partitionsThere wants partitions to exist and to have leaders.
func partitionsThere(ctx context.Context, k *cluster, of []topicPartition) error {
	if len(of) == 0 {
		return nil
	}
	var names []string
	for _, p := range of {
		names = append(names, p.topic)
	}
	topics, err := k.admin.ListTopicsWithInternal(ctx, slices.Compact(sorted(names))...)
	if err != nil {
		return err
	}
	var missing, leaderless []string
	for _, p := range of {
		switch d, ok := topics[p.topic].Partitions[p.number]; {
		case !ok:
			missing = append(missing, p.String())
		case d.Leader < 0:
			leaderless = append(leaderless, p.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("The partitions \"%s\" do not exist", strings.Join(sorted(missing), ",")) //nolint:staticcheck // Kafka's words
	}
	if len(leaderless) > 0 {
		return fmt.Errorf("The partitions \"%s\" have no leader", strings.Join(sorted(leaderless), ",")) //nolint:staticcheck // Kafka's words
	}
	return nil
}

// placesOf asks for offsets of which each has to be known.
func (k *cluster) placesOf(ctx context.Context, of []topicPartition, at int64) (map[topicPartition]int64, error) {
	listed, err := listOffsets(ctx, k.Client, of, at)
	if err != nil {
		return nil, err
	}
	all := map[topicPartition]int64{}
	for p, o := range listed {
		if o.err != nil {
			return nil, fmt.Errorf("%s: %w", p, o.err)
		}
		all[p] = o.offset
	}
	return all, nil
}

// offsetsAt are the first offsets that aren't older than a time, and the end where there is none.
func (c *call) offsetsAt(ctx context.Context, k *cluster, of []topicPartition, at int64) (map[topicPartition]int64, error) {
	all, err := k.placesOf(ctx, of, at)
	if err != nil {
		return nil, err
	}
	var late []topicPartition
	for _, p := range (groupPlan{offsets: all}).order() {
		if all[p] < 0 {
			late = append(late, p)
			fmt.Fprintf(c.Out, "\nWarn: Partition %d from topic %s is empty. Falling back to latest known offset.\n", p.number, p.topic)
		}
	}
	ends, err := k.placesOf(ctx, late, atLatest)
	for p, end := range ends {
		all[p] = end
	}
	return all, err
}

// currentOffsets are what is committed, else the ends.
func (k *cluster) currentOffsets(ctx context.Context, of []topicPartition, committed map[topicPartition]int64) (map[topicPartition]int64, error) {
	all := map[topicPartition]int64{}
	var without []topicPartition
	for _, p := range of {
		if at, ok := committed[p]; ok {
			all[p] = at
		} else {
			without = append(without, p)
		}
	}
	ends, err := k.placesOf(ctx, without, atLatest)
	for p, end := range ends {
		all[p] = end
	}
	return all, err
}

// intoLog moves offsets that are outside of the log to its nearer end.
func (c *call) intoLog(ctx context.Context, k *cluster, wanted map[topicPartition]int64) (map[topicPartition]int64, error) {
	of := groupPlan{offsets: wanted}.order()
	starts, err := k.placesOf(ctx, of, atEarliest)
	if err != nil {
		return nil, err
	}
	ends, err := k.placesOf(ctx, of, atLatest)
	if err != nil {
		return nil, err
	}
	for _, p := range of {
		to := min(max(wanted[p], min(starts[p], ends[p])), ends[p])
		if to != wanted[p] {
			fmt.Fprintf(c.Err, "WARN: New offset (%d) is outside of the log of topic partition %s. Value will be set to %d.\n", wanted[p], p, to)
			wanted[p] = to
		}
	}
	return wanted, nil
}

// readPlan reads a file of --export: "topic,partition,offset" for the one group that is named, or with a group in front.
func readPlan(file string, named []string) (map[string]map[topicPartition]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reader := csv.NewReader(f)
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	plan := map[string]map[topicPartition]int64{}
	for i, row := range rows {
		if len(row) == 3 && len(named) == 1 {
			row = append([]string{named[0]}, row...)
		}
		if len(row) != 4 {
			return nil, fmt.Errorf("%s: entry %d: want [GROUP,]TOPIC,PARTITION,OFFSET, not %q", file, i+1, row)
		}
		number, err := strconv.ParseInt(strings.TrimSpace(row[2]), 10, 32)
		offset, err2 := strconv.ParseInt(strings.TrimSpace(row[3]), 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", file, i+1, err)
		}
		if plan[row[0]] == nil {
			plan[row[0]] = map[topicPartition]int64{}
		}
		plan[row[0]][topicPartition{row[1], int32(number)}] = offset
	}
	return plan, nil
}

// parseDateTime reads a time of ISO 8601, UTC unless it says otherwise, into milliseconds since 1970.
func parseDateTime(text string) (int64, error) {
	_, clock, ok := strings.Cut(text, "T")
	if !ok {
		return 0, fmt.Errorf("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format") //nolint:staticcheck // Kafka's words
	}
	if !strings.ContainsAny(clock, "+-Z") {
		text += "Z"
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("Unparseable date: %q: want YYYY-MM-DDTHH:mm:SS.sss", text) //nolint:staticcheck // Kafka's words
}

// parseDuration reads a duration of ISO 8601 as java.time.Duration does: PnDTnHnMn.nS, in capitals or not, with a sign anywhere.
func parseDuration(text string) (time.Duration, error) {
	found := regexp.MustCompile(`(?i)^([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d{0,9})?)S)?)?$`).FindStringSubmatch(text)
	if found == nil || strings.EqualFold(found[3], "T") || found[2]+found[3] == "" {
		return 0, fmt.Errorf("Text cannot be parsed to a Duration: %q: want PnDTnHnMnS", text) //nolint:staticcheck // Kafka's words
	}
	seconds := 0.0
	for i, unit := range map[int]float64{2: 86400, 4: 3600, 5: 60, 6: 1} {
		n, _ := strconv.ParseFloat(strings.TrimSuffix(found[i], "."), 64) // nothing is 0
		seconds += n * unit
	}
	if found[1] == "-" {
		seconds = -seconds
	}
	if math.Abs(seconds) > math.MaxInt64/float64(2*time.Second) {
		return 0, fmt.Errorf("%s is too long", text)
	}
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond, nil
}
