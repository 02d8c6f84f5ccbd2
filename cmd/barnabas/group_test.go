package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.yaml.in/yaml/v3"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/groups"
)

// administrator is a client to prepare what commands look at.
func administrator(t *testing.T, broker string) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

func commit(t *testing.T, admin *kadm.Client, group, topic string, offsets map[int32]int64) {
	t.Helper()
	var all kadm.Offsets
	for partition, at := range offsets {
		all.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	}
	require.NoError(t, admin.CommitAllOffsets(t.Context(), group, all))
}

// records writes n records into each of the partitions.
func records(t *testing.T, broker, topic string, n int, partitions ...string) {
	t.Helper()
	for _, p := range partitions {
		must(t, strings.Repeat("value\n", n), "produce", "-t", topic, "-b", broker, "-p", p)
	}
}

// views runs a command that prints groups as JSON.
func views(t *testing.T, args ...string) (list []groupView) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(must(t, "", append(args, "-o", "json")...)), &list))
	return list
}

// withoutDelay is a broker whose groups don't wait for more members.
func withoutDelay(t *testing.T) source {
	t.Helper()
	from := elsewhere(t, "")
	from.sets = append(from.sets, "broker.group.initial.rebalance.delay.ms=0")
	return from
}

func TestGroupLagAndDescribe(t *testing.T) {
	b := start(t, withoutDelay(t))
	admin := administrator(t, b)
	assert.Equal(t, "[]\n", must(t, "", "group", "list", "-b", b, "-o", "json"))
	assert.Equal(t, "[]\n", must(t, "", "group", "lag", "-b", b, "-o", "yaml"))
	must(t, "", "topic", "create", "t", "-p", "3", "-b", b)
	must(t, "", "topic", "create", "gone", "-b", b)
	records(t, b, "t", 5, "0", "1", "2")
	commit(t, admin, "idle", "t", map[int32]int64{0: 2, 1: 9}) // the second commit is behind the end
	commit(t, admin, "idle", "gone", map[int32]int64{0: 0})
	must(t, "", "topic", "delete", "gone", "-b", b)

	member, err := kgo.NewClient(kgo.SeedBrokers(b), kgo.ConsumerGroup("live"), kgo.ConsumeTopics("t"), kgo.ClientID("reader"), kgo.DisableAutoCommit())
	require.NoError(t, err)
	t.Cleanup(member.Close)
	require.Eventually(t, func() bool {
		got := typed(t, "", "group", "describe", "live", "-b", b)
		return got.code == exitOK && strings.Contains(got.out, "group live: stable, 1 member, ")
	}, time.Minute, 50*time.Millisecond)

	listed := must(t, "", "group", "list", "-b", b)
	assert.Regexp(t, `(?m)^ group +state +type +protocol +coordinator$`, listed)
	assert.Regexp(t, `(?m)^ idle +Empty +`, listed)
	assert.Regexp(t, `(?m)^ live +Stable +\S+ +consumer +`, listed)
	assert.NotContains(t, must(t, "", "group", "list", "--state", "stable,dead", "-b", b), "idle")

	var idle groupView
	require.Eventually(t, func() bool {
		idle = views(t, "group", "lag", "idle", "-b", b)[0]
		return len(idle.Offsets) == 2
	}, time.Minute, 50*time.Millisecond, "what is committed in a topic goes with it")
	assert.EqualValues(t, 3, idle.Lag)
	lags := make([][]int64, 2)
	for i, o := range idle.Offsets {
		lags[i] = []int64{int64(o.Partition), *o.Committed, *o.End, *o.Lag}
		assert.Nil(t, o.Member)
	}
	assert.Equal(t, [][]int64{{0, 2, 5, 3}, {1, 9, 5, 0}}, lags, "never negative")

	lag := must(t, "", "group", "lag", "-b", b)
	assert.Regexp(t, `(?m)^ group +topic +partition +committed +end +lag +client +host$`, lag)
	assert.Regexp(t, `(?m)^ idle +t +0 +2 +5 +3 +- +-$`, lag)
	assert.Regexp(t, `(?m)^ live +t +2 +- +5 +- +reader +\S+$`, lag, "nothing is committed")
	summary := must(t, "", "group", "lag", "--summary", "-b", b)
	assert.Regexp(t, `(?m)^ idle +empty +0 +2 +0 +0 +3$`, summary)
	assert.Regexp(t, `(?m)^ live +stable +1 +3 +3 +0 +-$`, summary)

	member.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"t": {1: {Epoch: -1, Offset: 4}}}, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
		assert.NoError(t, err)
	})
	live := views(t, "group", "lag", "live", "-b", b)[0]
	assert.EqualValues(t, 1, live.Lag)
	assert.Equal(t, 2, live.Uncommitted)
	assert.Len(t, live.Offsets, 3)
}

func TestGroupReset(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	admin := administrator(t, b)
	must(t, "", "topic", "create", "t", "-p", "3", "-b", b)
	before := time.Now()
	records(t, b, "t", 10, "0", "1")
	offsets := func() map[int32]int64 {
		fetched, err := admin.FetchOffsets(t.Context(), "g")
		require.NoError(t, err)
		all := map[int32]int64{}
		fetched.Each(func(o kadm.OffsetResponse) { all[o.Partition] = o.At })
		return all
	}
	reset := func(args ...string) result {
		return typed(t, "", append([]string{"group", "reset", "g", "-b", b}, args...)...)
	}
	now := map[int32]int64{0: 4, 1: 8}
	commit(t, admin, "g", "t", now)

	got := reset("--all-topics", "--to-start")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "nothing is changed: --execute resets group g in 2 partitions")
	assert.Equal(t, now, offsets())

	for _, test := range []struct {
		args string
		want map[int32]int64 // what is committed afterwards
	}{
		{"--all-topics --to-start", map[int32]int64{0: 0, 1: 0}},
		{"--all-topics --to-end", map[int32]int64{0: 10, 1: 10}},
		{"--topic t:1 --to-offset 7", map[int32]int64{0: 10, 1: 7}},
		{"--all-topics --shift-by -4", map[int32]int64{0: 6, 1: 3}},
		{"--all-topics --shift-by 5", map[int32]int64{0: 10, 1: 8}},
		{"--topic t:0,1 --by-duration 1h", map[int32]int64{0: 0, 1: 0}},
		{"--topic t --to-time " + time.Now().Add(time.Hour).Format(time.RFC3339), map[int32]int64{0: 10, 1: 10, 2: 0}},
		{"--topic t --to-time " + before.Format(time.RFC3339Nano), map[int32]int64{0: 0, 1: 0, 2: 0}},
		{"--topic t:2 --to-offset 5", map[int32]int64{0: 0, 1: 0, 2: 0}},
	} {
		got := reset(append(strings.Fields(test.args), "--execute")...)
		require.Equal(t, exitOK, got.code, "%s: %s", test.args, got.err)
		assert.Contains(t, got.out, "group g is reset in")
		assert.Equal(t, test.want, offsets(), test.args)
	}
	got = reset("-t", "t:0,2", "--to-offset", "5", "-o", "yaml")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Equal(t, `group: g
executed: false
offsets:
  - topic: t
    partition: 0
    committed: 0
    start: 0
    end: 10
    new: 5
    adjusted: false
  - topic: t
    partition: 2
    committed: 0
    start: 0
    end: 0
    new: 0
    adjusted: true
`, got.out)

	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--all-topics", exitWrong, "want one of --to-start"},
		{"--all-topics --to-start --to-end", exitWrong, "not 2"},
		{"--to-start", exitWrong, "either --all-topics or --topic"},
		{"--to-start --all-topics -t t", exitWrong, "either --all-topics or --topic"},
		{"--to-start=false -t t", exitWrong, "--to-start: false"},
		{"--to-offset -1 -t t", exitWrong, "--shift-by goes back"},
		{"--to-time yesterday -t t", exitWrong, "--to-time: want a time"},
		{"--to-time 1960-01-01 -t t", exitWrong, "--to-time: want a time"},
		{"--by-duration -1h -t t", exitWrong, "--by-duration: want how long ago"},
		{"--to-start -t t:x", exitWrong, `not "t:x"`},
		{"--to-start -t t:1,1", exitWrong, "each once"},
		{"--to-start -t t: ", exitWrong, "the numbers of partitions"},
		{"--to-start -t t -t t:1", exitWrong, "each topic once"},
		{"--to-start -t :1", exitWrong, "each topic once"},
		{"--to-start -t t -o xml", exitWrong, "--output"},
		{"--to-start -t t:3", exitFailed, "topic t has no partition 3, only 3 partitions"},
		{"--to-start -t nope", exitFailed, "barnabas topic list"},
	} {
		got := reset(append(strings.Fields(test.args), "--execute")...)
		assert.Equal(t, test.code, got.code, "%s: %s", test.args, got.err)
		assert.Contains(t, got.err, test.want, test.args)
		assert.Empty(t, got.out, test.args)
	}
	got = typed(t, "", "group", "reset", "new", "--all-topics", "--to-end", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "it has committed nothing")
	got = typed(t, "", "group", "reset", "new", "-t", "t", "--shift-by", "1", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "t-0 has no committed offset to shift")
	must(t, "", "group", "reset", "new", "-t", "t:1", "--to-end", "-b", b, "--execute")
	assert.EqualValues(t, 0, views(t, "group", "lag", "new", "-b", b)[0].Lag)

	must(t, "", "topic", "delete", "t", "-b", b)
	must(t, "", "topic", "create", "t", "-b", b) // with fewer partitions
	records(t, b, "t", 1, "0")
	commit(t, administrator(t, b), "g", "t", map[int32]int64{0: 1})
	got = reset("--all-topics", "--to-start", "--execute")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "in 1 partition\n")
}

func TestGroupsWithMembersAreLeftAlone(t *testing.T) {
	b := start(t, withoutDelay(t))
	admin := administrator(t, b)
	must(t, "", "topic", "create", "t", "-b", b)
	records(t, b, "t", 3, "0")
	commit(t, admin, "g", "t", map[int32]int64{0: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	member, err := kgo.NewClient(kgo.SeedBrokers(b), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit())
	require.NoError(t, err)
	defer member.Close()
	require.NoError(t, member.PollFetches(ctx).Err())

	for _, args := range [][]string{
		{"group", "reset", "g", "--all-topics", "--to-end", "--execute", "-b", b},
		{"group", "reset", "g", "--all-topics", "--to-end", "-b", b},
		{"group", "delete", "g", "-b", b},
	} {
		got := typed(t, "", args...)
		assert.Equal(t, exitFailed, got.code, args)
		assert.Contains(t, got.err, "it has members, which have to stop first", args)
		assert.Empty(t, got.out, args)
	}
	lag := views(t, "group", "describe", "g", "-b", b)[0]
	assert.EqualValues(t, 2, lag.Lag)
	require.Len(t, lag.Members, 1)
	assert.Equal(t, map[string][]int32{"t": {0}}, lag.Members[0].Assigned)
	assert.Equal(t, lag.Members[0].ID, *lag.Offsets[0].Member)

	member.Close()
	got := typed(t, "", "group", "delete", "g", "nope", "g", "-b", b)
	assert.Equal(t, exitFailed, got.code)
	assert.Equal(t, "group g deleted\n", got.out)
	assert.Contains(t, got.err, "no such group: nope")
	for _, args := range [][]string{{"describe", "g"}, {"lag", "g"}} {
		got := typed(t, "", append([]string{"group", "-b", b}, args...)...)
		assert.NotEqual(t, exitOK, got.code, args)
		got = typed(t, "", append([]string{"group"}, append(args, "-b", b)...)...)
		assert.Equal(t, exitFailed, got.code, args)
		assert.Contains(t, got.err, "no such group: g: `barnabas group list` shows all", args)
	}
}

func marshalled(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func TestGroupsThatCannotBeReadWhole(t *testing.T) {
	list := []groups.Group{{Name: "g", Offsets: []groups.Offset{
		{Topic: "gone", Committed: 4, End: groups.Unknown, Err: kerr.UnknownTopicOrPartition},
		{Topic: "t", Committed: 4, End: groups.Unknown, Err: kerr.LeaderNotAvailable},
		{Topic: "t", Partition: 1, Committed: groups.Unknown, End: 7, Err: kerr.UnstableOffsetCommit},
		{Topic: "t", Partition: 2, Committed: groups.Unknown, End: groups.Unknown, Err: kerr.LeaderNotAvailable},
	}}, {Name: "nothing"}}
	text := lagTable(list).Render()
	assert.Regexp(t, `(?m)^ g +gone +0 +4 +\? +\? +- +-$`, text)
	assert.Regexp(t, `(?m)^ g +t +0 +4 +\? +\? +`, text)
	assert.Regexp(t, `(?m)^ g +t +1 +\? +7 +\? +`, text)
	assert.Regexp(t, `(?m)^ g +t +2 +- +\? +\? +`, text)
	assert.Regexp(t, `(?m)^ nothing( +-){7}$`, text)
	assert.Regexp(t, `(?m)^ g +0 +4 +0 +4 +-$`, lagSummary(list).Render())
	err := unread(list)
	require.ErrorContains(t, err, "group g: the lag in t-0 isn't known: LEADER_NOT_AVAILABLE")
	assert.NotContains(t, err.Error(), "gone", "a deleted topic is no failure")
	text = marshalled(t, viewGroups(list, true, true)[1])
	assert.Contains(t, text, `"members":[],"offsets":[]`)
	assert.NotContains(t, marshalled(t, viewGroups(list, false, false)[0]), "offsets")
	view := viewGroups(list, true, true)[0]
	assert.Equal(t, 4, view.Unread)
	assert.Nil(t, view.Offsets[0].Lag)
	assert.Contains(t, view.Offsets[1].Error, "LEADER_NOT_AVAILABLE")
}

func TestGroupRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"group describe":            "wants the names of groups",
		"group delete":              "wants the names of groups",
		"group list x":              "wants 0 arguments",
		"group list -o xml":         `--output: want table, json or yaml, not "xml"`,
		"group lag g -o JSON":       `not "JSON"`,
		"group describe g -o x":     `not "x"`,
		"group reset --to-start":    "wants 1 arguments",
		"group lag --timeout 0s":    "--timeout",
		"group reset g --to-offset": "--to-offset",
	} {
		got := typed(t, "", strings.Fields(args)...)
		assert.Equal(t, exitWrong, got.code, args)
		assert.Contains(t, got.err, want, args)
	}
	for _, args := range [][]string{{"group", "lag", ""}, {"group", "delete", "g", ""}, {"group", "reset", "", "--to-end", "-t", "t"}} {
		assert.Equal(t, exitWrong, typed(t, "", args...).code, args)
	}
}

func TestOutput(t *testing.T) {
	type inner struct {
		Name string   `json:"a_name"`
		Null *int     `json:"null"`
		None []string `json:"none"`
		Text string   `json:"text"`
	}
	value := []inner{{Name: "7", None: []string{}, Text: "<a: \"b\"> # \u2028é"}, {Name: "true", None: []string{"null", "- x"}, Text: "two\nlines"}, {Name: "~"}}
	read := func(format string) []byte {
		var out bytes.Buffer
		o := output{format}
		require.NoError(t, o.check())
		require.NoError(t, o.print(newApp(nil, &out, nil, nil), value, func() { out.WriteString("table") }))
		return out.Bytes()
	}
	assert.Equal(t, "table", string(read("table")))
	var fromJSON []inner
	require.NoError(t, json.Unmarshal(read("json"), &fromJSON))
	assert.Equal(t, value, fromJSON)
	assert.Contains(t, string(read("json")), "<a: ")

	var generic any
	text := read("yaml")
	require.NoError(t, yaml.Unmarshal(text, &generic))
	again, err := json.Marshal(generic)
	require.NoError(t, err)
	want, err := json.Marshal(value)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(again))
	assert.Contains(t, string(text), "- a_name: \"7\"\n  \"null\": null\n  none: []\n", "types survive, and no braces are left")
}
