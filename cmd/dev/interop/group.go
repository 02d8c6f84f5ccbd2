package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

const (
	groupPartitions = 6
	groupRecords    = 60 // a step
	groupTimeout    = 60 * time.Second
)

// groupChecks are the steps of the scenario, each a check.
func groupChecks() []string {
	return []string{"group: join", "group: second member", "group: kill -9 the first", "group: committed", "group: resume"}
}

// group is the life of one consumer group whose members are processes of one client. Records are produced and the
// group's state is asked for by the runner's own client.
type group struct {
	client installed
	args   probe.Args
	// replicas of each partition; 0 is 1
	replicas int16
	kgo      *kgo.Client
	adm      *kadm.Client
	members  []*member
	state    map[*member]*view
	sent     int            // records produced so far; their values are 0, 1, …
	seen     map[string]int // how often a value was seen
}

// view is what a member has told.
type view struct {
	owned     []int32
	committed map[int32]int64
	early     []string // records below what was committed before this member started
}

// playGroup plays the scenario and reports its steps. After a failed step the later ones fail without being tried.
func playGroup(ctx context.Context, c installed, bootstrap, prefix string) []probe.Result {
	g := &group{
		client: c, state: map[*member]*view{}, seen: map[string]int{},
		args: probe.Args{Bootstrap: bootstrap, Topic: prefix + "-group", Group: prefix + "-group"},
	}
	defer g.close()
	steps := []func(context.Context) error{g.first, g.second, g.killFirst, g.committed, g.resume}
	var results []probe.Result
	err := g.open(ctx, bootstrap)
	for i, name := range groupChecks() {
		r := probe.Result{Client: c.Name, Check: name, OK: true}
		if err == nil {
			step, cancel := context.WithTimeout(ctx, groupTimeout)
			err = steps[i](step)
			cancel()
			if err != nil {
				r.OK, r.Detail = false, err.Error()
			}
		} else {
			r.OK, r.Detail = false, "an earlier step failed"
			if i == 0 {
				r.Detail = err.Error()
			}
		}
		results = append(results, r)
	}
	return results
}

func (g *group) open(ctx context.Context, bootstrap ...string) error {
	var err error
	g.kgo, err = kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	g.adm = kadm.NewClient(g.kgo)
	_, err = g.adm.CreateTopic(ctx, groupPartitions, max(g.replicas, 1), nil, g.args.Topic)
	return err
}

func (g *group) close() {
	for _, m := range g.members {
		m.kill()
	}
	if g.kgo != nil {
		g.kgo.Close()
	}
}

func (g *group) join(name string) (*member, error) {
	m, err := g.client.join(name, g.args)
	if err != nil {
		return nil, err
	}
	g.members = append(g.members, m)
	g.state[m] = &view{committed: map[int32]int64{}}
	return m, nil
}

// produce writes the next n records, round the partitions.
func (g *group) produce(ctx context.Context, n int) error {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: g.args.Topic, Partition: int32(g.sent % groupPartitions), Value: []byte(strconv.Itoa(g.sent))}
		g.sent++
	}
	return g.kgo.ProduceSync(ctx, records...).FirstErr()
}

// until takes the events of the running members until done says so.
func (g *group) until(ctx context.Context, what string, done func() bool, running ...*member) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, m := range running {
			for more := true; more; {
				select {
				case e, ok := <-m.events:
					if !ok {
						return fmt.Errorf("waiting for %s: %s ended: %w\n%s", what, m.name, m.err, m.tail)
					}
					g.apply(m, e)
				default:
					more = false
				}
			}
		}
		if done() {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; %s", what, ctx.Err(), g.describe(running))
		}
	}
}

func (g *group) apply(m *member, e probe.Event) {
	v := g.state[m]
	switch e.Event {
	case probe.EventAssigned:
		v.owned = e.Partitions
	case probe.EventRecord:
		g.seen[e.Value]++
		if e.Offset < g.known()[e.Partition] {
			v.early = append(v.early, fmt.Sprintf("%d/%d", e.Partition, e.Offset))
		}
	case probe.EventCommitted:
		v.committed[e.Partition] = e.Offset
	}
}

// known is up to where members said that they had committed.
func (g *group) known() map[int32]int64 {
	k := map[int32]int64{}
	for _, v := range g.state {
		for p, o := range v.committed {
			k[p] = max(k[p], o)
		}
	}
	return k
}

func (g *group) describe(running []*member) string {
	text := fmt.Sprintf("%d of %d records seen", len(g.seen), g.sent)
	for _, m := range running {
		text += fmt.Sprintf(", %s owns %v", m.name, g.state[m].owned)
		if out := m.tail.String(); out != "" {
			text += "\n" + m.name + ": " + out
		}
	}
	return text
}

func (g *group) allSeen() bool { return len(g.seen) == g.sent }

// owns says whether the members share all partitions, each with some and none with another's.
func (g *group) owns(members ...*member) bool {
	var all []int32
	for _, m := range members {
		owned := g.state[m].owned
		if len(owned) == 0 {
			return false
		}
		all = append(all, owned...)
	}
	slices.Sort(all)
	return len(all) == groupPartitions && len(slices.Compact(all)) == groupPartitions
}

// first: one member gets all partitions and all records.
func (g *group) first(ctx context.Context) error {
	a, err := g.join("the first member")
	if err != nil {
		return err
	}
	if err := g.until(ctx, "all partitions", func() bool { return g.owns(a) }, a); err != nil {
		return err
	}
	if err := g.produce(ctx, groupRecords); err != nil {
		return err
	}
	return g.until(ctx, "all records", g.allSeen, a)
}

// second: with another member, both have partitions and together get all records.
func (g *group) second(ctx context.Context) error {
	a := g.members[0]
	b, err := g.join("the second member")
	if err != nil {
		return err
	}
	if err := g.until(ctx, "both to share the partitions", func() bool { return g.owns(a, b) }, a, b); err != nil {
		return err
	}
	if err := g.produce(ctx, groupRecords); err != nil {
		return err
	}
	return g.until(ctx, "all records", g.allSeen, a, b)
}

// killFirst: when the first is killed while records come in, the second takes over all partitions and misses none.
func (g *group) killFirst(ctx context.Context) error {
	a, b := g.members[0], g.members[1]
	if err := g.produce(ctx, groupRecords/2); err != nil {
		return err
	}
	a.kill()
	if err := g.produce(ctx, groupRecords/2); err != nil {
		return err
	}
	if err := g.until(ctx, "the second to own all partitions", func() bool { return g.owns(b) }, b); err != nil {
		return err
	}
	// What the first read and had no time to tell is not missing: it was read, and is committed or read again.
	if err := g.until(ctx, "the commits to reach the end", func() bool { return g.atEnd(ctx) == nil }, b); err != nil {
		return errors.Join(err, g.atEnd(ctx))
	}
	// These came when only the second was there to read them. It commits what it read at its own pace, and what it tells of it may come after.
	late := func() error {
		for v := g.sent - groupRecords/2; v < g.sent; v++ {
			if g.seen[strconv.Itoa(v)] == 0 {
				return fmt.Errorf("record %d was not seen", v)
			}
		}
		return nil
	}
	if err := g.until(ctx, "the second to tell what it has read", func() bool { return late() == nil }, b); err != nil {
		return errors.Join(err, late())
	}
	if early := g.state[b].early; len(early) > 0 {
		return fmt.Errorf("the second read again what had been committed: %v", early)
	}
	return nil
}

// atEnd says in which partition the group's committed offset is not the end, nil when it is in all.
func (g *group) atEnd(ctx context.Context) error {
	committed, err := g.adm.FetchOffsets(ctx, g.args.Group)
	if err != nil {
		return err
	}
	ends, err := g.adm.ListEndOffsets(ctx, g.args.Topic)
	if err != nil {
		return err
	}
	for p := range int32(groupPartitions) {
		c, ok := committed.Lookup(g.args.Topic, p)
		e, _ := ends.Lookup(g.args.Topic, p)
		if !ok || c.At != e.Offset {
			return fmt.Errorf("partition %d: committed %d of %d", p, c.At, e.Offset)
		}
	}
	return nil
}

// committed: the second leaves; the broker tells an empty group, its offsets at the end of every partition.
func (g *group) committed(ctx context.Context) error {
	if err := g.members[1].leave(ctx); err != nil {
		return err
	}
	described, err := g.adm.DescribeGroups(ctx, g.args.Group)
	if err != nil {
		return err
	}
	if d := described[g.args.Group]; d.State != "Empty" || len(d.Members) != 0 {
		return fmt.Errorf("the group is %s with %d members after all have left", d.State, len(d.Members))
	}
	return g.atEnd(ctx)
}

// resume: a third member gets what is new and nothing old.
func (g *group) resume(ctx context.Context) error {
	old := maps.Clone(g.seen)
	g.seen = map[string]int{}
	c, err := g.join("the third member")
	if err != nil {
		return err
	}
	if err := g.until(ctx, "all partitions", func() bool { return g.owns(c) }, c); err != nil {
		return err
	}
	before := g.sent
	if err := g.produce(ctx, groupPartitions*2); err != nil {
		return err
	}
	if err := g.until(ctx, "the new records", func() bool { return len(g.seen) >= groupPartitions*2 }, c); err != nil {
		return err
	}
	for value := range g.seen {
		if n, _ := strconv.Atoi(value); n < before || old[value] > 0 {
			return fmt.Errorf("record %s came again", value)
		}
	}
	return c.leave(ctx)
}
