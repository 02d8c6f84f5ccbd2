package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// load makes a topic for a load on a broker.
func load(t *testing.T, b *brokertest.Broker, topic string, partitions int32) Load {
	require.NoError(t, CreateTopic(t.Context(), b.Addr(), topic, partitions, 1))
	return Load{Addr: b.Addr(), Topic: topic, Connections: 2, Duration: 100 * time.Millisecond}
}

// longer runs a load for so long that there is something to measure, which on a busy machine may take a while.
func longer(t *testing.T, l *Load, run func() (*Result, error)) *Result {
	for {
		r, err := run()
		if err == nil && r.Latency.Max > 0 && r.Records > 0 {
			return r
		}
		require.Less(t, l.Duration, time.Minute, "%v", err)
		l.Duration *= 3
	}
}

func TestProduceAgainstABroker(t *testing.T) {
	b := testbroker.Start(t)
	for name, p := range map[string]Produce{
		"one-at-a-time": {InFlight: 1, Acks: -1},
		"lockstep":      {InFlight: 20, Acks: 1},
		"pipeline":      {InFlight: 5, Acks: -1, BatchSize: 100 << 10},
		"blind":         {InFlight: 1, Acks: 0},
		"blind-paced":   {InFlight: 1, Acks: 0, Rate: 1000},
		"paced":         {InFlight: 5, Acks: -1, Rate: 1000},
		"idempotent":    {InFlight: 5, Acks: -1, Idempotent: true, BatchSize: 4 << 10, Keys: 3},
		"client":        {InFlight: 5, Acks: -1, Client: true, Idempotent: true, Keys: 3},
		"client-paced":  {InFlight: 5, Acks: 1, Client: true, Rate: 1000, Linger: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			p.Load, p.RecordSize = load(t, b, name, 3), 100
			r := longer(t, &p.Load, func() (*Result, error) { return p.Run(t.Context()) })
			require.Positive(t, r.Requests)
			require.Equal(t, r.Records*100, r.Bytes)
			require.GreaterOrEqual(t, r.Latency.Max, r.Latency.P9999)
			require.Equal(t, p.Rate > 0, r.Late != nil)
			require.Nil(t, r.Ack)
			require.NotEmpty(t, r.Timeline)
			require.NotEmpty(t, r.Distribution)
		})
	}
}

func TestEndToEndAgainstABroker(t *testing.T) {
	b := testbroker.Start(t)
	for name, e := range map[string]EndToEnd{
		"raw":        {Produce: Produce{InFlight: 5, Acks: -1, Rate: 2000}, Consumers: 2},
		"idempotent": {Produce: Produce{InFlight: 5, Acks: -1, Idempotent: true, BatchSize: 1000}},
		"client":     {Produce: Produce{InFlight: 5, Acks: -1, Client: true, Rate: 2000}, Consumers: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e.Load, e.RecordSize = load(t, b, name, 3), 100
			r := longer(t, &e.Load, func() (*Result, error) { return e.Run(t.Context()) })
			require.Positive(t, r.Requests)
			require.Equal(t, r.Records*100, r.Bytes)
			require.Positive(t, r.Ack.P50)
			require.Equal(t, e.Rate > 0, r.Late != nil)
		})
	}
}
