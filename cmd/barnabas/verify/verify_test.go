package verify

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

func topics(t *testing.T, addr string) []string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	require.NoError(t, err)
	defer client.Close()
	listed, err := kadm.NewClient(client).ListTopics(t.Context())
	require.NoError(t, err)
	return listed.Names()
}

func TestRunUntilFinish(t *testing.T) {
	broker := testbroker.Start(t)
	r, err := Start(t.Context(), Options{Bootstrap: []string{broker.Addr()}, Rate: 2000, Partitions: 2})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.Acknowledged() > 100 }, time.Minute, 10*time.Millisecond)
	require.Contains(t, topics(t, broker.Addr()), r.Topic())
	report, err := r.Finish(t.Context())
	require.NoError(t, err)
	assert.True(t, report.OK, report.Faults)
	assert.Equal(t, report.Sent, report.Acknowledged)
	assert.GreaterOrEqual(t, r.Progress().Acknowledged, int64(100), "it may be asked afterwards, too")
	assert.Empty(t, topics(t, broker.Addr()), "what was made is deleted")
	assert.Equal(t, 3, report.Sessions)
	for _, v := range report.Views {
		assert.EqualValues(t, report.Acknowledged, v.Records, v.Name)
		assert.Equal(t, 2, v.Partitions, v.Name)
	}
}

// TestEndsEarly: no goroutine is left, and no topic, whenever a run ends.
func TestEndsEarly(t *testing.T) {
	broker := testbroker.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Verify(ctx, Options{Bootstrap: []string{broker.Addr()}, Duration: time.Hour, Rate: 1000}, func(Progress) {})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, topics(t, broker.Addr()))
}

// TestTheClusterGoesAway: when nobody answers in the end there is no judgement, and that doesn't take for ever.
func TestTheClusterGoesAway(t *testing.T) {
	broker := testbroker.Start(t)
	r, err := Start(t.Context(), Options{Bootstrap: []string{broker.Addr()}, Rate: 2000, Patience: time.Second})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.Acknowledged() > 100 }, time.Minute, 10*time.Millisecond)
	broker.Stop()
	_, err = r.Finish(t.Context())
	require.Error(t, err)
}

// TestARestart: a broker that is stopped and started is nothing that a client loses by.
func TestARestart(t *testing.T) {
	broker := testbroker.Start(t)
	for _, transactions := range []bool{false, true} {
		r, err := Start(t.Context(), Options{Bootstrap: []string{broker.Addr()}, Rate: 2000, Partitions: 2, Transactions: transactions, Tolerate: []history.Kind{history.Stale}})
		require.NoError(t, err)
		for range 2 {
			before := r.Acknowledged()
			require.Eventually(t, func() bool { return r.Acknowledged() > before+100 }, time.Minute, 10*time.Millisecond)
			broker.Restart()
		}
		report, err := r.Finish(t.Context())
		require.NoError(t, err)
		assert.True(t, report.OK, report.Faults)
		assert.Empty(t, report.Counts, "not even what would be tolerated")
		assert.Empty(t, report.Unread)
	}
}

// TestTheAnswerIsLost makes a topic twice, as a client does that loses the answer: it is the run's own when it is as was asked for.
func TestTheAnswerIsLost(t *testing.T) {
	broker := testbroker.Start(t)
	o := Options{Bootstrap: []string{broker.Addr()}, Partitions: 2, Configs: map[string]string{"segment.bytes": "1000000"}}.withDefaults(1)
	client, err := o.client()
	require.NoError(t, err)
	defer client.Close()
	c := &cluster{client, kadm.NewClient(client)}
	for range 2 {
		made, err := c.makeTopic(t.Context(), "own", o)
		require.NoError(t, err)
		require.True(t, made, "it is deleted in the end")
	}
	other := o
	other.Partitions = 3
	_, err = c.makeTopic(t.Context(), "own", other)
	require.ErrorContains(t, err, "exists already, with 2 partitions instead of 3")
	other = o
	other.Configs = map[string]string{"segment.bytes": "2000000"}
	_, err = c.makeTopic(t.Context(), "own", other)
	require.ErrorContains(t, err, "segment.bytes")
	other = o
	other.Topic = "own"
	made, err := c.makeTopic(t.Context(), "own", other)
	require.NoError(t, err)
	require.False(t, made, "somebody else's stays")
}
