package scale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	membersEach  = 2
	sessionLasts = 20 * time.Second
	heartbeats   = 3 * time.Second // from one to the next, as Java's clients send them
	ready        = 30 * time.Second
)

// groups has many groups with members, which then only say that they are alive; the broker is restarted meanwhile.
func groups(ctx context.Context, f *field) error {
	n, err := f.start(ctx, map[string]string{"group.initial.rebalance.delay.ms": "0"})
	if err != nil {
		return err
	}
	defer func() { n.Kill() }()
	if err := n.create(ctx, many, 2, 1, nil); err != nil {
		return err
	}
	p, err := n.probe(ctx)
	if err != nil {
		return err
	}
	defer p.client.Close()
	if _, _, err := p.measure(ctx, 5*time.Second); err != nil {
		return err
	}
	_, alone, err := p.measure(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	empty, err := n.settled(ctx)
	if err != nil {
		return err
	}
	c := &crowd{node: n}
	if err := n.coordinates(ctx); err != nil {
		return err
	}
	living, leave := context.WithCancel(ctx)
	defer c.running.Wait()
	defer leave()
	begin := time.Now()
	c.join(living, f.Groups)
	if err := c.stable(ctx, f.Groups); err != nil {
		return err
	}
	f.atMost(float64(f.Groups)/50, time.Since(begin).Seconds(), "s: %d groups of %d members become stable", f.Groups, membersEach)
	if err := c.watch(ctx, p, alone, empty); err != nil {
		return err
	}
	if err := n.Stop(); err != nil {
		return err
	}
	began := c.rebalances.Load()
	took, err := n.again(ctx)
	if err != nil {
		return err
	}
	f.atMost(2, took.Seconds(), "s: start with %d groups after a clean stop", f.Groups)
	if err := c.stable(ctx, f.Groups); err != nil {
		return err
	}
	if err := pause(ctx, 2*heartbeats); err != nil { // who is to join anew has heard of it
		return err
	}
	f.atMost(0, float64(c.rebalances.Load()-began), "members that had to join anew after it")
	wrong, err := n.wrongOffsets(ctx, f.Groups)
	if err != nil {
		return err
	}
	f.atMost(0, float64(wrong), "groups whose offsets aren't what they committed")
	leave()
	c.running.Wait()
	return c.end(ctx, empty)
}

// coordinates has the topic of the offsets made, which clients do when they look for their coordinator.
func (n *node) coordinates(ctx context.Context) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return await(ctx, time.Minute, "the groups have a coordinator", func() (bool, error) {
		found := kadm.NewClient(client).FindGroupCoordinators(ctx, groupName(0))
		return found.Error() == nil, nil
	})
}

// watch measures while all members only send heartbeats.
func (c *crowd) watch(ctx context.Context, p *probe, alone float64, empty holdings) error {
	before, err := c.node.settled(ctx)
	if err != nil {
		return err
	}
	beats := c.beats.Load()
	_, p99, err := p.measure(ctx, 15*time.Second)
	if err != nil {
		return err
	}
	after, err := c.node.holds(ctx)
	if err != nil {
		return err
	}
	f, all := c.node.f, float64(c.node.f.Groups)
	f.atMost(2*alone+2, p99, "ms: p99 beside them; without them %.2f", alone)
	f.atMost(100, (after.CPU-before.CPU).Seconds()*1e6/float64(c.beats.Load()-beats), "µs of CPU for each heartbeat, the records that measure delays included")
	f.atMost(64, float64(after.RSSAnon-empty.RSSAnon)/all/1e3, "KB of RssAnon for each group, its members' connections included")
	f.atMost(1.5*membersEach, float64(after.goroutines-empty.goroutines)/all, "goroutines for each group")
	return nil
}

// end sees that the groups of members that have gone are empty when their sessions end.
func (c *crowd) end(ctx context.Context, empty holdings) error {
	client, err := c.node.client()
	if err != nil {
		return err
	}
	defer client.Close()
	err = await(ctx, 2*sessionLasts, "groups without members are empty", func() (bool, error) {
		listed, err := kadm.NewClient(client).ListGroups(ctx, "Empty")
		return len(listed) >= c.node.f.Groups, err
	})
	if err != nil {
		return err
	}
	h, err := c.node.settled(ctx)
	if err != nil {
		return err
	}
	c.node.f.atMost(10, float64(h.descriptors-empty.descriptors)-50, "descriptors left when all members have gone, beside those of the offsets' partitions")
	c.node.f.atMost(20, float64(h.goroutines-empty.goroutines), "goroutines left then")
	return c.node.Stop()
}

// crowd is all members of all groups.
type crowd struct {
	node       *node
	running    sync.WaitGroup
	beats      atomic.Int64
	rebalances atomic.Int64 // how often a member had to join again
	joined     atomic.Int64 // members that have what to do
}

// join has all members join, a bounded number of them at once.
func (c *crowd) join(ctx context.Context, groups int) {
	slots := make(chan struct{}, 64)
	for g := range groups {
		for i := range membersEach {
			m := &member{crowd: c, group: groupName(g), number: i, offset: int64(g)}
			c.running.Go(func() { m.live(ctx, slots) })
		}
	}
}

func groupName(g int) string { return fmt.Sprintf("group-%04d", g) }

// stable waits until all members of all groups have joined and heard what they have to do.
func (c *crowd) stable(ctx context.Context, groups int) error {
	return await(ctx, 3*time.Minute, "all groups are stable", func() (bool, error) {
		return int(c.joined.Load()) == groups*membersEach, nil
	})
}

// member is one member of a group, with a connection of its own.
type member struct {
	crowd  *crowd
	group  string
	number int
	offset int64 // what it commits

	conn       *conn
	id         string
	generation int32
}

// live keeps the member in its group until ctx ends: it joins, and sends heartbeats. When the connection breaks, it comes back as
// whom it was.
func (m *member) live(ctx context.Context, slots chan struct{}) {
	in, first := false, true
	leave := func() {
		if in {
			in = false
			m.crowd.joined.Add(-1)
		}
	}
	defer leave()
	for ctx.Err() == nil {
		var err error
		if m.conn == nil {
			m.conn, err = dial(ctx, m.crowd.node.options.Addr)
		}
		if err == nil && m.generation == 0 {
			leave()
			if first { // later nobody may wait: another member's join may wait for this one
				slots <- struct{}{}
			}
			err = m.enter()
			if first {
				<-slots
				first = false
			}
		}
		if err == nil {
			err = m.beat()
		}
		switch {
		case err == nil:
			if !in {
				in = true
				m.crowd.joined.Add(1)
			}
			_ = pause(ctx, heartbeats)
		case errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.UnknownMemberID):
			if m.generation != 0 {
				m.crowd.rebalances.Add(1)
			}
			m.generation = 0
			if errors.Is(err, kerr.UnknownMemberID) {
				m.id = ""
			}
		default:
			leave()
			if m.conn != nil {
				m.conn.close()
				m.conn = nil
			}
			_ = pause(ctx, 100*time.Millisecond)
		}
	}
	if m.conn != nil {
		m.conn.close()
	}
}

// enter joins the group, gets what there is to do and commits an offset.
func (m *member) enter() error {
	join := kmsg.NewPtrJoinGroupRequest()
	join.SetVersion(5)
	join.Group, join.ProtocolType = m.group, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = int32(sessionLasts.Milliseconds()), int32(ready.Milliseconds())
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", []byte{0, 1, 0, 0, 0, 1, 0, 4, 'm', 'a', 'n', 'y', 0, 0, 0, 0}
	join.Protocols = append(join.Protocols, protocol)
	var joined *kmsg.JoinGroupResponse
	for {
		join.MemberID = m.id
		answer, err := m.conn.ask(join)
		if err != nil {
			return err
		}
		joined = answer.(*kmsg.JoinGroupResponse)
		err = kerr.ErrorForCode(joined.ErrorCode)
		if errors.Is(err, kerr.MemberIDRequired) {
			m.id = joined.MemberID
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	m.id = joined.MemberID
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.SetVersion(3)
	sync.Group, sync.MemberID, sync.Generation = m.group, m.id, joined.Generation
	if joined.LeaderID == m.id {
		for _, other := range joined.Members {
			a := kmsg.NewSyncGroupRequestGroupAssignment()
			a.MemberID, a.MemberAssignment = other.MemberID, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
			sync.GroupAssignment = append(sync.GroupAssignment, a)
		}
	}
	answer, err := m.conn.ask(sync)
	if err == nil {
		err = kerr.ErrorForCode(answer.(*kmsg.SyncGroupResponse).ErrorCode)
	}
	if err != nil {
		return err
	}
	if err := m.commit(joined.Generation); err != nil {
		return err
	}
	m.generation = joined.Generation
	return nil
}

// commit commits an offset of the partition that has the member's number.
func (m *member) commit(generation int32) error {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.SetVersion(7)
	request.Group, request.MemberID, request.Generation = m.group, m.id, generation
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = many
	partition := kmsg.NewOffsetCommitRequestTopicPartition()
	partition.Partition, partition.Offset = int32(m.number), m.offset
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	answer, err := m.conn.ask(request)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
}

// beat sends a heartbeat.
func (m *member) beat() error {
	request := kmsg.NewPtrHeartbeatRequest()
	request.SetVersion(3)
	request.Group, request.MemberID, request.Generation = m.group, m.id, m.generation
	answer, err := m.conn.ask(request)
	if err != nil {
		return err
	}
	m.crowd.beats.Add(1)
	return kerr.ErrorForCode(answer.(*kmsg.HeartbeatResponse).ErrorCode)
}

// wrongOffsets counts the groups that don't have the offsets that their members committed.
func (n *node) wrongOffsets(ctx context.Context, groups int) (wrong int, err error) {
	client, err := n.client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for g := range groups {
		offsets, err := kadm.NewClient(client).FetchOffsets(ctx, groupName(g))
		if err != nil {
			return 0, err
		}
		for i := range int32(membersEach) {
			if o, ok := offsets.Lookup(many, i); !ok || o.At != int64(g) {
				wrong++
				break
			}
		}
	}
	return wrong, nil
}
