package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Error codes of groups.
const (
	illegalGeneration   = 22
	unknownMember       = 25
	rebalanceInProgress = 27
	memberIDRequired    = 79
)

// quick lets members vanish within the test.
func quick() props { return props{"group.min.session.timeout.ms": "100"} }

// TestA13MemberIDRequired: a member id is asked for only where the client can understand that.
//
// segmentio/kafka-go#1435, redpanda-data/redpanda#4684, kafkaex/kafka_ex#539, KAFKA-7824, KIP-394
func TestA13MemberIDRequired(t *testing.T) {
	t.Parallel()
	n := begin(t, "", quick())
	c := n.dial()
	c.coordinator("g")
	for version := range int16(10) {
		group := "v" + string(rune('0'+version))
		c.coordinator(group)
		req := joinRequest(group, "", 6000, 6000)
		first := ask[*kmsg.JoinGroupResponse](c, version, req)
		if version < 4 {
			assert.Zero(t, first.ErrorCode, group)
			assert.NotEmpty(t, first.MemberID, group)
			continue
		}
		assert.Equal(t, int16(memberIDRequired), first.ErrorCode, group)
		require.NotEmpty(t, first.MemberID, group)
		req.MemberID = first.MemberID
		second := ask[*kmsg.JoinGroupResponse](c, version, req)
		assert.Zero(t, second.ErrorCode, group)
		assert.Equal(t, first.MemberID, second.MemberID, group)
		if version >= 5 {
			instance := "i1"
			static := joinRequest("static-"+group, "", 6000, 6000)
			static.InstanceID = &instance
			c.coordinator(static.Group)
			assert.Zero(t, ask[*kmsg.JoinGroupResponse](c, version, static).ErrorCode, static.Group)
		}
	}
	// An id that is never used is forgotten after the session timeout.
	for wait := 400 * time.Millisecond; ; wait *= 2 { // on a busy machine, that may take longer than it should
		group := fmt.Sprint("abandoned-", wait)
		c.coordinator(group)
		abandoned := ask[*kmsg.JoinGroupResponse](c, 4, joinRequest(group, "", 300, 300))
		require.Equal(t, int16(memberIDRequired), abandoned.ErrorCode)
		time.Sleep(wait)
		code := ask[*kmsg.JoinGroupResponse](c, 4, joinRequest(group, abandoned.MemberID, 300, 300)).ErrorCode
		if code == unknownMember {
			assert.True(t, n.groupEmpty(c, group))
			break
		}
		require.Zero(t, code)
		require.Less(t, wait, 30*time.Second, "the id isn't forgotten")
	}
}

// groupEmpty says whether a group has no members.
func (n *node) groupEmpty(c *conn, group string) bool {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	return len(ask[*kmsg.DescribeGroupsResponse](c, 4, req).Groups[0].Members) == 0
}

// TestA14CommitGenerations: who may commit. With both offset stores: the rules are the group's.
//
// KAFKA-2596 (apache/kafka#267), KAFKA-14499 (rules restated in apache/kafka#14067)
func TestA14CommitGenerations(t *testing.T) {
	t.Parallel()
	n := begin(t, "", quick())
	c := n.dial()
	c.createTopic("t", 1, nil)
	for version := int16(2); version <= 9; version++ {
		group := "g" + string(rune('0'+version))
		c.coordinator(group)
		commit := func(member string, generation int32, offset int64) int16 {
			return c.commit(version, group, member, generation, offset)
		}
		assert.Equal(t, int16(illegalGeneration), commit("", 5, 1), "b: a new group has no generation 5")
		assert.Equal(t, int64(-1), c.committed(group))
		assert.Zero(t, commit("", -1, 2), "a: no membership, no group")
		assert.Equal(t, int64(2), c.committed(group))

		member := c.join(group, "", 10_000, 10_000)
		require.Zero(t, member.ErrorCode)
		me, generation := member.MemberID, member.Generation
		assert.Equal(t, int16(rebalanceInProgress), commit(me, generation, 3), "f: between JoinGroup and SyncGroup")
		require.Zero(t, c.sync(group, me, generation, me).ErrorCode)
		assert.Equal(t, int16(illegalGeneration), commit(me, generation-1, 4), "c: an older generation")
		assert.Equal(t, int16(illegalGeneration), commit(me, generation+1, 4), "c: a newer generation")
		assert.Equal(t, int16(unknownMember), commit("stranger", generation, 5), "d: an unknown member")
		assert.Equal(t, int16(unknownMember), commit("", -1, 6), "e: no membership beside a live group")
		assert.Equal(t, int64(2), c.committed(group), "what was refused has changed nothing")
		assert.Zero(t, commit(me, generation, 7))
		assert.Equal(t, int64(7), c.committed(group))

		other := n.dial()
		other.send(other.frame(versioned(joinRequest(group, "", 10_000, 10_000), 3)))
		eventually(t, func() bool { return c.heartbeat(group, me, generation) == rebalanceInProgress }, "the rebalance")
		assert.Zero(t, commit(me, generation, 8), "g: while the group prepares a rebalance")
		assert.Equal(t, int64(8), c.committed(group))
		assert.Zero(t, c.leave(group, me))
		other.payload()
	}
	// Commits outlive kill -9.
	n.kill()
	n.start()
	c = n.dial()
	for version := int16(2); version <= 9; version++ {
		group := "g" + string(rune('0'+version))
		c.coordinator(group)
		assert.Equal(t, int64(8), c.committed(group))
	}
}

// versioned sets a request's version.
func versioned(req kmsg.Request, version int16) kmsg.Request {
	req.SetVersion(version)
	return req
}

// TestA15RebalanceNotStuck: a rebalance doesn't wait for who has gone.
//
// streamnative/kop#380, KAFKA-7909, KAFKA-9752
func TestA15RebalanceNotStuck(t *testing.T) {
	t.Parallel()
	n := begin(t, "", quick())
	const session, rebalance = 5000, 60_000
	type joined struct {
		resp *kmsg.JoinGroupResponse
		took time.Duration
	}
	// joining joins in the background.
	joining := func(group, member string, sessionMs int32) chan joined {
		done := make(chan joined, 1)
		c := n.dial()
		go func() {
			begin := time.Now()
			resp := c.join(group, member, sessionMs, rebalance)
			done <- joined{resp, time.Since(begin)}
		}()
		return done
	}
	soon := func(t *testing.T, done chan joined) *kmsg.JoinGroupResponse {
		t.Helper()
		select {
		case j := <-done:
			require.Zero(t, j.resp.ErrorCode)
			return j.resp
		case <-time.After(time.Minute):
			require.Fail(t, "the join waits for somebody who has gone")
			return nil
		}
	}
	// pair is a stable group of two, whose first member lives for long.
	pair := func(t *testing.T, c *conn, group string) (m1, m2 string, generation int32) {
		t.Helper()
		c.coordinator(group)
		first := c.join(group, "", 30_000, rebalance)
		require.Zero(t, first.ErrorCode)
		m1 = first.MemberID
		require.Zero(t, c.sync(group, m1, first.Generation, m1).ErrorCode)
		second := joining(group, "", session)
		eventually(t, func() bool { return c.heartbeat(group, m1, first.Generation) == rebalanceInProgress }, "a rebalance")
		again := c.join(group, m1, 30_000, rebalance)
		require.Zero(t, again.ErrorCode)
		m2 = soon(t, second).MemberID
		require.Zero(t, c.sync(group, m1, again.Generation, m1, m2).ErrorCode)
		require.Zero(t, n.dial().sync(group, m2, again.Generation).ErrorCode)
		return m1, m2, again.Generation
	}
	for name, goes := range map[string]func(c *conn, group, m2 string){
		"leaves":              func(c *conn, group, m2 string) { assert.Zero(t, c.leave(group, m2)) },
		"stops heartbeating":  func(*conn, string, string) {},
		"leaves with another": func(c *conn, group, m2 string) { pendingLeaves(t, c, group); assert.Zero(t, c.leave(group, m2)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, group := n.dial(), "g "+name
			m1, m2, generation := pair(t, c, group)
			third := joining(group, "", session)
			eventually(t, func() bool { return c.heartbeat(group, m1, generation) == rebalanceInProgress }, "a rebalance")
			first := joining(group, m1, 30_000)
			goes(c, group, m2)
			assert.Len(t, soon(t, first).Members, 2)
			soon(t, third)
		})
	}
	t.Run("an old client closes its socket while it joins", func(t *testing.T) {
		t.Parallel()
		c, group := n.dial(), "vanished"
		c.coordinator(group)
		first := c.join(group, "", 30_000, rebalance)
		m1 := first.MemberID
		require.Zero(t, c.sync(group, m1, first.Generation, m1).ErrorCode)
		gone := n.dial()
		gone.send(gone.frame(versioned(joinRequest(group, "", session, rebalance), 3)))
		eventually(t, func() bool { return c.heartbeat(group, m1, first.Generation) == rebalanceInProgress }, "a rebalance")
		_ = gone.Close()
		again := soon(t, joining(group, m1, 30_000))
		assert.Len(t, again.Members, 2, "who vanished counts as joined")
		require.Zero(t, c.sync(group, m1, again.Generation, m1).ErrorCode)
		eventually(t, func() bool { return c.heartbeat(group, m1, again.Generation) == rebalanceInProgress }, "it to expire")
		last := soon(t, joining(group, m1, 30_000))
		assert.Len(t, last.Members, 1)
		require.Zero(t, c.sync(group, m1, last.Generation, m1).ErrorCode)
		assert.Zero(t, c.heartbeat(group, m1, last.Generation))
	})
}

// pendingLeaves takes an id through MEMBER_ID_REQUIRED, and leaves with it.
func pendingLeaves(t *testing.T, c *conn, group string) {
	t.Helper()
	pending := ask[*kmsg.JoinGroupResponse](c, 4, joinRequest(group, "", 60_000, 60_000))
	require.Equal(t, int16(memberIDRequired), pending.ErrorCode)
	require.Zero(t, c.leave(group, pending.MemberID))
}
