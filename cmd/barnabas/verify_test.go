package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

func TestVerify(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	out := must(t, "", "verify", "--records", "2000", "-b", b, "--every-leader")
	assert.Contains(t, out, "2000 records sent, 2000 acknowledged")
	assert.Contains(t, out, "no fault found")
	assert.NotContains(t, must(t, "", "topic", "list", "-b", b), "barnabas-verify")

	out = must(t, "", "verify", "--records", "300", "-b", b, "--transactions", "--json", "-t", "mine", "--keep", "-p", "2", "-c", "segment.bytes=20000")
	var r verify.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	assert.True(t, r.OK)
	assert.Empty(t, r.Faults)
	assert.Empty(t, r.Unread)
	assert.EqualValues(t, 300, r.Acknowledged)
	assert.Positive(t, r.Committed)
	assert.Positive(t, r.Aborted)

	must(t, "by somebody else\n", "produce", "-t", "mine", "-b", b)
	out = must(t, "", "verify", "--records", "100", "-b", b, "--json", "-t", "mine")
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	assert.True(t, r.OK, "what others wrote before is not looked at")
	assert.Contains(t, must(t, "", "topic", "list", "-b", b), "mine", "what was there stays")
}

func TestVerifyRefuses(t *testing.T) {
	b := start(t, elsewhere(t, ""))
	must(t, "", "topic", "create", "compacted", "-b", b, "-c", "cleanup.policy=compact")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--tolerate lostt", exitWrong, `no kind of fault is called "lostt"; there are [lost duplicate`},
		{"--record-size 5", exitWrong, "record size"},
		{"--duration 0s", exitWrong, "--records or --duration"},
		{"-c x", exitWrong, "--config"},
		{"-n -1", exitWrong, "producers: -1"},
		{"-t compacted", exitFailed, "topic compacted is compacted"},
		{"-r 3", exitFailed, "INVALID_REPLICATION_FACTOR"},
	} {
		got := typed(t, "", append([]string{"verify", "-b", b, "-d", "100ms"}, strings.Fields(test.args)...)...)
		assert.Equal(t, test.code, got.code, "%s: %s", test.args, got.err)
		assert.Contains(t, got.err, test.want, test.args)
	}
	got := typed(t, "", "verify", "-b", "127.0.0.1:1", "--timeout", "1s")
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.err, "barnabas serve")
}

func TestVerifyPrintsFaults(t *testing.T) {
	var out strings.Builder
	a := newApp(nil, &out, &out, nil)
	a.printVerified(&verify.Report{Acknowledged: 5, Counts: map[history.Kind]int{history.Lost: 1}, Unread: []string{"partition 7"}, Complaints: map[string]int{"no luck": 3},
		Faults: []history.Fault{{Kind: history.Lost, Partition: 2, Detail: "gone", Views: []string{"replica on 3"}}}})
	for _, want := range []string{"lost", "an acknowledged record", "lost: partition 2: gone (replica on 3)", "not read: partition 7", "3 times: no luck"} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "no fault")
}
