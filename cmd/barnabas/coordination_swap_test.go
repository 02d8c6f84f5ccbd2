package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// swapping is three brokers whose files are configs/cluster-3.yaml, changed as its head says.
type swapping struct {
	t         *testing.T
	zookeeper string
	brokers   []string // their addresses
	gossip    []string // where each is reached by the others
	data      []string
}

// files are the three files with one of the coordinations chosen: nothing else differs from those with the other one.
func (c *swapping) files(election string) (files []string) {
	c.t.Helper()
	text, err := os.ReadFile("../../configs/cluster-3.yaml")
	require.NoError(c.t, err)
	for i := range c.brokers {
		own := string(text)
		for _, change := range [][2]string{
			{"\n  broker.id: 1 ", "\n  group.initial.rebalance.delay.ms: 0\n  offsets.topic.num.partitions: 3\n  controlled.shutdown.retry.backoff.ms: 200\n  broker.id: " + strconv.Itoa(i+1) + " "},
			{"\n  broker.rack: a ", "\n  broker.rack: " + string(rune('a'+i)) + " "},
			{"\n  listeners: PLAINTEXT://127.0.0.1:9092\n", "\n  listeners: PLAINTEXT://" + c.brokers[i] + "\n"},
			{"\n  log.dirs: ./data/1\n", "\n  log.dirs: " + c.data[i] + "\n"},
			{"connect: 127.0.0.1:2181/barnabas ", "connect: " + c.zookeeper + " "},
			{`join: ["127.0.0.1:19092", "127.0.0.1:19093", "127.0.0.1:19094"]`, `join: ["` + strings.Join(c.gossip, `", "`) + "\"]\n    bind: " + c.gossip[i]},
			{"\nelection: zookeeper ", "\nelection: " + election + " "},
		} {
			require.Equal(c.t, 1, strings.Count(own, change[0]), "%q", change[0])
			own = strings.Replace(own, change[0], change[1], 1)
		}
		files = append(files, write(c.t, own))
	}
	return files
}

// swapOneKey takes three brokers from ZooKeeper to memberlist, back, and there again, with data, a group, a configuration and a producer that
// goes on: each time they are stopped, one command copies what they agreed on, and one key of their files says another name.
func swapOneKey(t *testing.T, ensemble *zktest.Ensemble) {
	j := newJourney(t, 3)
	c := swapping{t: t, zookeeper: ensemble.Connect() + "/either", brokers: j.brokers}
	for _, port := range freePorts(t, 3) {
		c.gossip = append(c.gossip, "127.0.0.1:"+port)
		c.data = append(c.data, t.TempDir()+"/data")
	}
	zookeeper, memberlist := c.files("zookeeper"), c.files("memberlist")
	j.visit(zookeeper...)

	out := must(t, "", "coordination", "copy", "--from", zookeeper[0], "--to", memberlist[0])
	require.Contains(t, out, "2 topics, 6 partitions")
	j.stay(memberlist, func() { // at first the broker that the file is of votes alone
		for _, id := range []string{"2", "3"} {
			require.Eventually(t, func() bool {
				return barnabas(t, nil, "coordination", "promote", id, "-c", memberlist[0]).code == exitOK
			}, time.Minute, 100*time.Millisecond)
		}
		require.Contains(t, must(t, "", "coordination", "status", "-c", memberlist[2]), "3, of which 1 may fail")
	})

	got := barnabas(t, nil, "coordination", "copy", "--from", memberlist[0], "--to", zookeeper[0], "--replace")
	require.Equal(t, exitFailed, got.code, "one of three voters may not know what the other two have agreed on: %s", got.out)
	require.Contains(t, got.err, "--with")
	must(t, "", "coordination", "copy", "--from", memberlist[0], "--with", memberlist[1], "--to", zookeeper[0], "--replace")
	j.visit(zookeeper...)

	got = barnabas(t, nil, "coordination", "copy", "--from", zookeeper[1], "--to", memberlist[1], "--replace")
	require.Equal(t, exitFailed, got.code, "the stores of the others would go on without it: %s", got.out)
	require.Contains(t, got.err, "coordination reset")
	for _, file := range memberlist {
		must(t, "", "coordination", "reset", "-c", file, "--accept-loss") // each says that it votes, and nobody answers
	}
	must(t, "", "coordination", "copy", "--from", zookeeper[1], "--to", memberlist[1])
	j.visit(memberlist...)
}
