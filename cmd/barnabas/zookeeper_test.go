package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// port is one that nobody listens on.
func port(t *testing.T) string {
	t.Helper()
	return freePorts(t, 1)[0]
}

// freePorts are different ones, below those that systems give to outgoing connections, of which there may be many before they are
// used.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	const lowest, beyond = 10_000, 32_768
	for tries := 0; len(ports) < n; tries++ {
		require.Less(t, tries, 100*n, "no port is free")
		port := strconv.Itoa(lowest + rand.IntN(beyond-lowest))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			defer l.Close() // all are held until there are enough
			ports = append(ports, port)
		}
	}
	return ports
}

// oneOfThree are the settings of a broker, counted from 0, that is started with the same file as two others.
func oneOfThree(t *testing.T, i int, port string) []string {
	return []string{"broker.log.dirs=" + filepath.Join(t.TempDir(), "data"), fmt.Sprintf("broker.broker.id=%d", i+1), "broker.broker.rack=" + string(rune('a'+i)),
		"broker.listeners=PLAINTEXT://127.0.0.1:" + port}
}

// TestThreeBrokersWithoutZooKeeperServe starts configs/memberlist-3.yaml three times, side by side: none serves before all are
// there.
func TestThreeBrokersWithoutZooKeeperServe(t *testing.T) {
	ports := freePorts(t, 6)
	var join []string
	for _, port := range ports[:3] {
		join = append(join, "127.0.0.1:"+port)
	}
	var serves [3]func() string
	for i := range serves {
		sets := append(oneOfThree(t, i, ports[3+i]), "election.memberlist.join=["+strings.Join(join, ",")+"]", "election.memberlist.bind="+join[i])
		serves[i], _ = launch(t, source{file: "../../configs/memberlist-3.yaml", sets: sets})
	}
	var at [3]string
	for i := range at {
		at[i] = serves[i]()
	}
	got := barnabas(t, nil, "cluster", "health", "--brokers", "3", "--wait", "1m", "-b", at[0])
	require.Equal(t, exitOK, got.code, got.err+got.out)
	roundTrip(t, at[0], "t", "through three")
	got = barnabas(t, nil, "topic", "describe", "t", "-b", at[2])
	require.Regexp(t, `0 +\d +\d+ +\d,\d,\d `, got.out)
}

// TestZooKeeperConfigurationsServe starts the files in configs/ that need a ZooKeeper.
func TestZooKeeperConfigurationsServe(t *testing.T) {
	ensemble := zktest.New(t, 1)
	election := func(root string) string { return "election.zookeeper.connect=" + ensemble.Connect() + root }
	data := func() string { return "broker.log.dirs=" + t.TempDir() }

	t.Run("zookeeper-3.yaml", func(t *testing.T) {
		var at [3]string
		for i := range at {
			at[i] = start(t, source{file: "../../configs/zookeeper-3.yaml", sets: append(oneOfThree(t, i, port(t)), election("/three"))})
		}
		got := barnabas(t, nil, "cluster", "health", "--brokers", "3", "--wait", "1m", "-b", at[0])
		require.Equal(t, exitOK, got.code, got.err+got.out)
		roundTrip(t, at[0], "t", "through three")
		got = barnabas(t, nil, "topic", "describe", "t", "-b", at[2])
		require.Regexp(t, `0 +\d +\d+ +\d,\d,\d `, got.out)
	})
	t.Run("cluster-3.yaml", func(t *testing.T) { swapOneKey(t, ensemble) })
	t.Run("zookeeper-listeners.yaml", func(t *testing.T) {
		free := freePorts(t, 2)
		clients, brokers := free[0], free[1]
		at := start(t, source{file: "../../configs/zookeeper-listeners.yaml", sets: []string{election("/listeners"), data(),
			"broker.listeners=CLIENTS://127.0.0.1:" + clients + ",BROKERS://127.0.0.1:" + brokers,
			"broker.advertised.listeners=CLIENTS://localhost:" + clients + ",BROKERS://127.0.0.1:" + brokers}})
		require.Equal(t, "localhost:"+clients+", BROKERS://127.0.0.1:"+brokers, at)
		roundTrip(t, "localhost:"+clients, "t", "through the clients' listener")
		for _, side := range []string{"localhost:" + clients, "127.0.0.1:" + brokers} {
			got := barnabas(t, nil, "cluster", "describe", "-b", side)
			require.Contains(t, got.out, side, "whoever comes through %s is sent elsewhere: %s", side, got.out+got.err)
		}
	})
	t.Run("zookeeper-offsets.yaml", func(t *testing.T) {
		at := start(t, source{file: "../../configs/zookeeper-offsets.yaml", sets: []string{election("/offsets"), data(),
			"offsets.zookeeper.connect=" + ensemble.Connect() + "/offsets", "broker.listeners=PLAINTEXT://127.0.0.1:0", "broker.group.initial.rebalance.delay.ms=0"}})
		roundTrip(t, at, "clicks", "a click")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client, err := kgo.NewClient(kgo.SeedBrokers(at), kgo.ConsumerGroup("counters"), kgo.ConsumeTopics("clicks"), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		require.NoError(t, err)
		defer client.Close()
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		require.NoError(t, client.CommitUncommittedOffsets(ctx))
		offsets, err := kadm.NewClient(client).FetchOffsets(ctx, "counters")
		require.NoError(t, err)
		require.Equal(t, int64(1), offsets["clicks"][0].At)
		conn, _, err := zk.Connect(strings.Split(ensemble.Connect(), ","), 5*time.Second, zk.WithLogInfo(false))
		require.NoError(t, err)
		defer conn.Close()
		text, _, err := conn.Get("/offsets/consumers/counters/offsets/clicks/0")
		require.NoError(t, err)
		require.Equal(t, "1", string(text))
	})
	for i, s := range snippets(t) {
		if needsZooKeeper(s) {
			t.Run(s.file, func(t *testing.T) {
				from := elsewhere(t, write(t, s.text))
				from.sets = append(from.sets, election(fmt.Sprintf("/snippet%d", i)))
				roundTrip(t, start(t, from), "t", s.file)
			})
		}
	}
}
