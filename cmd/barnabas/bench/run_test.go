package bench

import (
	"fmt"
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

func TestConsumeAgainstABroker(t *testing.T) {
	b := testbroker.Start(t)
	l := load(t, b, "t", 3)
	const size = 1 << 20
	require.NoError(t, Fill(t.Context(), b.Addr(), "t", size))
	for name, o := range map[string]Consume{"raw": {}, "client": {Client: true}} {
		t.Run(name, func(t *testing.T) {
			o.Load, o.MaxBytes = l, 1<<20
			// More than the topic has: it is read anew.
			r := longer(t, &o.Load, func() (*Result, error) {
				r, err := o.Run(t.Context())
				if err == nil && r.Bytes < 2*size {
					return nil, fmt.Errorf("%d bytes only", r.Bytes)
				}
				return r, err
			})
			require.Positive(t, r.Requests)
		})
	}
	t.Run("once", func(t *testing.T) {
		ends, err := endOffsets(t.Context(), b.Addr(), "t")
		require.NoError(t, err)
		want := ends[0] + ends[1] + ends[2]
		o := Consume{Load: l, MaxBytes: 100 << 10, Once: true}
		o.Duration = time.Minute
		r, err := o.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, r.Records)
		require.Less(t, r.Seconds, 60.0)
		o.Connections = 4
		_, err = o.Run(t.Context())
		require.ErrorContains(t, err, "too many")
	})
}

func TestChurnAgainstABroker(t *testing.T) {
	b := testbroker.Start(t)
	for _, rate := range []float64{0, 500} {
		c := Churn{Load: Load{Addr: b.Addr(), Connections: 2, Duration: 50 * time.Millisecond}, Rate: rate}
		for r, err := c.Run(t.Context()); err != nil || r.Latency.P50 == 0; r, err = c.Run(t.Context()) {
			require.Less(t, c.Duration, time.Minute, "%v", err)
			c.Duration *= 3
		}
	}
}
