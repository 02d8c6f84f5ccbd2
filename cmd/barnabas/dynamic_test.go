package main

import (
	"context"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// refused opens n connections, asks something on each, and counts those that the broker closes instead of answering.
func refused(t *testing.T, hostPort string, n int) (closed int) {
	t.Helper()
	apiVersions := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}
	for range n {
		c, err := net.Dial("tcp", hostPort)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		if _, err := c.Write(apiVersions); err != nil {
			closed++
			continue
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			closed++
		}
	}
	return closed
}

// TestBrokerPropertiesChangeAtOnce changes properties of a broker and its topics' defaults while it runs, and looks for
// them before and after a restart.
func TestBrokerPropertiesChangeAtOnce(t *testing.T) {
	from := elsewhere(t, "")
	from.sets = append(from.sets, "broker.broker.id=3")
	t.Run("while it runs", func(t *testing.T) {
		hostPort := start(t, from)
		require.Zero(t, refused(t, hostPort, 8))
		client, err := kgo.NewClient(kgo.SeedBrokers(hostPort))
		require.NoError(t, err)
		defer client.Close()
		admin := kadm.NewClient(client)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		set := func(name, value string) {
			results, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, 3)
			require.NoError(t, err)
			for _, r := range results {
				require.NoError(t, r.Err)
			}
		}
		set("log.segment.bytes", "65536")
		_, err = admin.CreateTopics(ctx, 1, 1, nil, "t")
		require.NoError(t, err)
		described, err := admin.DescribeTopicConfigs(ctx, "t")
		require.NoError(t, err)
		for _, c := range described[0].Configs {
			if c.Key == "segment.bytes" {
				assert.Equal(t, strconv.Itoa(65536), *c.Value)
			}
		}
		set("max.connections.per.ip", "6")
		assert.NotZero(t, refused(t, hostPort, 8))
	})
	t.Run("after a restart", func(t *testing.T) {
		hostPort := start(t, from)
		assert.Equal(t, 2, refused(t, hostPort, 8))
	})
}

// TestTopicsAskForNoCodecThatIsMissing creates topics in a broker that was composed with one codec.
func TestTopicsAskForNoCodecThatIsMissing(t *testing.T) {
	from := elsewhere(t, "")
	from.sets = append(from.sets, "compression=[gzip]")
	client, err := kgo.NewClient(kgo.SeedBrokers(start(t, from)))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	there, missing := "gzip", "zstd"
	_, err = admin.CreateTopic(ctx, 1, 1, map[string]*string{"compression.type": &there}, "there")
	require.NoError(t, err)
	_, err = admin.CreateTopic(ctx, 1, 1, map[string]*string{"compression.type": &missing}, "missing")
	require.ErrorIs(t, err, kerr.InvalidConfig)
}
