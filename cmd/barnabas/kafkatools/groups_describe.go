package kafkatools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

// describeGroups shows the partitions, the members or the state of groups.
func (c *call) describeGroups(ctx context.Context, k *cluster) error {
	names, err := c.groupNames(ctx, k)
	if err != nil || len(names) == 0 {
		return err
	}
	read := groups.Describe
	if c.count("members", "state") == 0 {
		read = groups.Read
	}
	list, err := read(ctx, k.admin, names...)
	if err != nil {
		return err
	}
	for _, g := range list {
		if g.State == groups.Dead { // Kafka's brokers before 4.0 say so, and later ones that there is none
			return fmt.Errorf("org.apache.kafka.common.errors.GroupIdNotFoundException: Group %s not found.", g.Name) //nolint:staticcheck // Kafka's words
		}
	}
	switch {
	case c.has("members"):
		for _, g := range list {
			c.printMembers(g)
		}
	case c.has("state"):
		brokers, err := k.admin.ListBrokers(ctx)
		if err != nil {
			return err
		}
		addresses := map[int32]string{}
		for _, b := range brokers {
			addresses[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		}
		for _, g := range list {
			c.printState(g, addresses[g.Coordinator])
		}
	default:
		for _, g := range list {
			c.printOffsets(g)
		}
	}
	return nil
}

// noteState says on standard error what is to be known of a group's state, and whether there is something to show.
func (c *call) noteState(g groups.Group, rows int) bool {
	switch g.State {
	case groups.Empty:
		fmt.Fprintf(c.Err, "\nConsumer group '%s' has no active members.\n", g.Name)
	case "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling":
		fmt.Fprintf(c.Err, "\nWarning: Consumer group '%s' is rebalancing.\n", g.Name)
	}
	return rows > 0
}

// orDash stands a dash for what isn't there.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func dashNegative(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// printOffsets shows partitions: those of each member, the one that has most first, then those of nobody.
func (c *call) printOffsets(g groups.Group) {
	if !c.noteState(g, len(g.Offsets)) {
		return
	}
	ordered := make([]*groups.Member, 0, len(g.Members))
	for i := range g.Members {
		ordered = append(ordered, &g.Members[i])
	}
	slices.SortStableFunc(ordered, func(x, y *groups.Member) int { return cmp.Compare(y.Partitions(), x.Partitions()) })
	var rows [][]any
	widths := []int{len(g.Name), 0, 0, 0} // of group, topic, member and host
	add := func(o groups.Offset) {
		member, host, client := "-", "-", "-"
		if o.Member != nil {
			member, host, client = o.Member.ID, o.Member.Host, o.Member.Client
		}
		lag := "-"
		if o.Committed >= 0 && o.End >= 0 {
			lag = strconv.FormatInt(o.End-o.Committed, 10)
		}
		row := []any{g.Name, o.Topic, o.Partition}
		if c.has("verbose") {
			row = append(row, dashNegative(int64(o.LeaderEpoch)))
		}
		rows = append(rows, append(row, dashNegative(o.Committed), dashNegative(o.End), lag, member, host, client))
		widths[1], widths[2], widths[3] = max(widths[1], len(o.Topic)), max(widths[2], len(member)), max(widths[3], len(host))
	}
	for _, m := range append(ordered, nil) {
		for _, o := range g.Offsets {
			if o.Member == m {
				add(o)
			}
		}
	}
	header := []any{"GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"}
	columns := []int{max(15, widths[0]), max(15, widths[1]), 10, 15, 15, 15, max(15, widths[2]), max(15, widths[3])}
	if c.has("verbose") {
		header, columns = slices.Insert(header, 3, any("LEADER-EPOCH")), slices.Insert(columns, 3, 15)
	}
	fmt.Fprint(c.Out, "\n"+padded(columns, header...))
	for _, row := range rows {
		fmt.Fprint(c.Out, "\n"+padded(columns, row...))
	}
	fmt.Fprintln(c.Out)
}

// assignment is what a member reads, as text: TOPIC:N,N;TOPIC:N.
func assignment(of map[string][]int32) string {
	var texts []string
	for _, topic := range slices.Sorted(maps.Keys(of)) {
		if numbers := slices.Sorted(slices.Values(of[topic])); len(numbers) > 0 {
			texts = append(texts, topic+":"+joined(numbers))
		}
	}
	return orDash(strings.Join(texts, ";"))
}

func (c *call) printMembers(g groups.Group) {
	any1 := c.noteState(g, len(g.Members))
	header := []any{"GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"}
	columns := []int{15, 15, 15, 15, 15}
	withInstance := false
	current, target := 20, 20
	if any1 {
		for _, m := range g.Members {
			for i, text := range []string{g.Name, m.ID, m.Host, m.Client} {
				columns[i] = max(columns[i], len(text))
			}
			withInstance = withInstance || m.Instance != ""
			current, target = max(current, len(assignment(m.Assigned))), max(target, len(assignment(m.Target)))
		}
	}
	if withInstance {
		width := 17
		for _, m := range g.Members {
			width = max(width, len(m.Instance))
		}
		header, columns = slices.Insert(header, 2, any("GROUP-INSTANCE-ID")), slices.Insert(columns, 2, width)
	}
	if c.has("verbose") {
		header = append(header, "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")
		columns = append(columns, 15, current, 15, target)
	}
	line := func(cells []any) {
		text := padded(columns, cells...)
		if !c.has("verbose") {
			text += " "
		}
		fmt.Fprintln(c.Out, text)
	}
	fmt.Fprintln(c.Out)
	line(header)
	for _, m := range g.Members {
		cells := []any{g.Name, m.ID, m.Host, m.Client, m.Partitions()}
		if withInstance {
			cells = slices.Insert(cells, 2, any(m.Instance))
		}
		if c.has("verbose") {
			cells = append(cells, dashNegative(int64(m.Epoch)), assignment(m.Assigned), dashNegative(int64(g.TargetEpoch)), assignment(m.Target))
		}
		line(cells)
	}
}

func (c *call) printState(g groups.Group, address string) {
	c.noteState(g, 1)
	coordinator := fmt.Sprintf("%s  (%d)", address, g.Coordinator)
	header := []any{"GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"}
	cells := []any{g.Name, coordinator, orDash(g.Assignor), g.State, len(g.Members)}
	columns := []int{max(15, len(g.Name)), max(25, len(coordinator)), 20, 20}
	if c.has("verbose") {
		header = slices.Insert(header, 4, any("GROUP-EPOCH"), any("TARGET-ASSIGNMENT-EPOCH"))
		cells = slices.Insert(cells, 4, any(dashNegative(int64(g.Epoch))), any(dashNegative(int64(g.TargetEpoch))))
		columns = append(columns, 15, 25)
	}
	fmt.Fprint(c.Out, "\n"+padded(columns, header...))
	fmt.Fprintln(c.Out, "\n"+padded(columns, cells...))
}
