package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/membership/standalone"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// meddled is a coordination in which somebody does something just before the broker registers: its logs are open by then.
type meddled struct {
	election.Coordination
	meddle func(context.Context, election.Coordination) error
}

func (meddled) Solitary() {}

func (m meddled) Membership() election.Membership {
	return meddledMembership{m.Coordination.Membership(), m}
}

type meddledMembership struct {
	election.Membership
	m meddled
}

func (s meddledMembership) Register(ctx context.Context, b election.Broker) (election.Registration, error) {
	if err := s.m.meddle(ctx, s.m.Coordination); err != nil {
		return nil, err
	}
	return s.Membership.Register(ctx, b)
}

// configure sets a topic's configuration, and returns when whoever watches has been told.
func configure(topic string, values map[string]string) func(context.Context, election.Coordination) error {
	return func(ctx context.Context, c election.Coordination) error {
		w, err := c.Metadata().Watch(ctx, election.ConfigChanged)
		if err != nil {
			return err
		}
		defer w.Close()
		term, err := c.Election().Campaign(ctx, 1)
		if err != nil {
			return err
		}
		defer term.Resign(ctx)
		entity := election.Entity{Kind: election.TopicEntity, Name: topic}
		now, err := c.Metadata().Configs(ctx, entity)
		if err != nil {
			return err
		}
		errs, err := c.Metadata().SetConfigs(ctx, term.Epoch(), []election.Config{{Entity: entity, Values: values, Version: now[0].Version}})
		if err != nil {
			return err
		}
		if errs[0] != nil {
			return errs[0]
		}
		_, err = w.Next(ctx)
		return err
	}
}

// A topic that is configured while a broker starts, after its logs were opened and before it is told to serve them, is served so.
func TestConfiguredWhileStarting(t *testing.T) {
	b := testbroker.Start(t)
	_, err := kadm.NewClient(client(t, b.Addr())).CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	b.Restart(brokertest.Election(plugin.NewFactory("meddled", "standalone, and somebody else", standalone.DefaultOptions,
		func(o standalone.Options, s election.Settings) (election.Coordination, error) {
			c, err := standalone.New(o, s)
			return meddled{c, configure("t", map[string]string{"max.message.bytes": "1000"})}, err
		})))
	c := client(t, b.Addr(), kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.Eventually(t, func() bool {
		err := c.ProduceSync(t.Context(), kgo.SliceRecord(make([]byte, 2000))).FirstErr()
		if err != nil {
			require.ErrorIs(t, err, kerr.MessageTooLarge)
		}
		return err != nil
	}, time.Minute, 10*time.Millisecond)
}
