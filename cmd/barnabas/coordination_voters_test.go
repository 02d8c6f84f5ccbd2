package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// lonelyVoter starts the coordination of a cluster of one, and gives a file that names it. The port that it gets may be taken by
// somebody else before it is bound: then another one is tried.
func lonelyVoter(t *testing.T, options ...string) (file string) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		bind := l.Addr().String()
		l.Close()
		file = write(t, fmt.Sprintf("broker: {broker.id: 7, log.dirs: %s}\nelection: {memberlist: {%s}}\n", t.TempDir(), strings.Join(append(options, fmt.Sprintf("bind: %q", bind)), ", ")))
		a := newApp(nil, nil, nil, nil)
		a.parts = testParts(t)
		c, err := a.load(source{file: file})
		require.NoError(t, err)
		made, err := c.election.New(election.Settings{Settings: plugin.Settings{Logger: slog.New(slog.DiscardHandler)},
			DataDir: c.broker.LogDirs[0], Properties: c.layers.Static})
		require.NoError(t, err)
		if err := made.Start(t.Context()); err != nil {
			require.Less(t, attempt, 20, err.Error())
			continue
		}
		t.Cleanup(func() { assert.NoError(t, made.Stop(context.Background())) })
		require.Eventually(t, func() bool {
			_, err := made.Membership().ClusterID(t.Context(), "")
			return err == nil
		}, time.Minute, 20*time.Millisecond)
		return file
	}
}

func TestVotersOfAClusterOfOne(t *testing.T) {
	file := lonelyVoter(t)
	r := barnabas(t, nil, "coordination", "status", "-c", file)
	require.Equal(t, 0, r.code, r.err)
	assert.Regexp(t, `voters +1, of which 0 may fail`, r.out)
	assert.Regexp(t, `7-[0-9a-f]{16}.*leader +alive`, r.out)

	r = barnabas(t, nil, "coordination", "members", "-c", file, "-o", "yaml")
	require.Equal(t, 0, r.code, r.err)
	assert.Contains(t, r.out, "raft: leader")

	r = barnabas(t, nil, "coordination", "remove", "7", "-c", file)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.err, "the only voter")
	r = barnabas(t, nil, "coordination", "promote", "7", "-c", file)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.err, "votes already")
	r = barnabas(t, nil, "coordination", "promote", "8", "-c", file)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.err, "no server of raft's configuration")

	r = barnabas(t, nil, "coordination", "status", "-c", file, "--set", "election.memberlist.cluster=other")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.err, "belongs to the cluster")
}

// TestKeysOfAClusterOfOne rotates a key by the commands that operators have.
func TestKeysOfAClusterOfOne(t *testing.T) {
	const former, next = "MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="
	file := lonelyVoter(t, fmt.Sprintf("encryption_keys: [%q]", former))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	with := func(keys string) string {
		return write(t, strings.Replace(string(text), fmt.Sprintf("%q", former), keys, 1))
	}
	keys := func(code int, args ...string) result {
		t.Helper()
		r := barnabas(t, nil, append([]string{"coordination", "keys"}, args...)...)
		require.Equal(t, code, r.code, "%s%s", r.out, r.err)
		require.NotContains(t, r.out+r.err, former)
		require.NotContains(t, r.out+r.err, next)
		return r
	}
	listed := keys(0, "list", "-c", file)
	require.Regexp(t, `7 +127.* [0-9a-f]{16}`, listed.out)
	id := regexp.MustCompile(`[0-9a-f]{16}`).FindString(listed.out)
	keys(0, "add", "-c", with(fmt.Sprintf("%q, %q", former, next)))
	require.Contains(t, keys(1, "remove", id, "-c", file).err, "uses key "+id)
	require.NotContains(t, keys(0, "use", "-c", with(fmt.Sprintf("%q, %q", next, former))).out, id)
	require.Contains(t, keys(0, "remove", id, "-c", with(fmt.Sprintf("%q", next))).out, "no broker has key "+id)
	require.NotContains(t, keys(0, "list", "-c", with(fmt.Sprintf("%q", next)), "-o", "json").out, id)
	require.Contains(t, keys(1, "list", "-c", file).err, "none of the encryption keys")
	require.Equal(t, exitWrong, barnabas(t, nil, "coordination", "keys", "remove", "-c", file).code)
}

func TestVotersWrongly(t *testing.T) {
	standalone := write(t, "election: standalone\n")
	nowhere := write(t, "broker: {listeners: \"PLAINTEXT://127.0.0.1:0\"}\nelection: memberlist\n")
	for what, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"another coordination": {[]string{"status", "-c", standalone}, 2, "agree through standalone"},
		"no address":           {[]string{"members", "-c", nowhere}, 2, "give an address"},
		"nobody there":         {[]string{"status", "-c", nowhere, "--address", "127.0.0.1:1"}, 1, "127.0.0.1:1"},
		"nobody to order":      {[]string{"remove", "1", "-c", nowhere, "--address", "127.0.0.1:1", "--timeout", "1s"}, 1, ""},
		"no broker":            {[]string{"promote", "-c", nowhere}, 2, "BROKER"},
		"no such format":       {[]string{"status", "-c", nowhere, "-o", "xml"}, 2, "table, json or yaml"},
	} {
		t.Run(what, func(t *testing.T) {
			r := barnabas(t, nil, append([]string{"coordination"}, tt.args...)...)
			assert.Equal(t, tt.code, r.code, r.err)
			assert.Contains(t, r.err, tt.want)
		})
	}
}
