package kafka_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func str(s string) *string { return &s }

func TestChangeTopic(t *testing.T) {
	tests := []struct {
		name     string
		settings []kafka.Setting
		want     kafka.Values
		kind     error
	}{
		{"two", []kafka.Setting{{"retention.ms", str(" 5000 ")}, {"cleanup.policy", str("compact, delete")}}, kafka.Values{"retention.ms": "5000", "cleanup.policy": "compact,delete"}, nil},
		{"none", nil, kafka.Values{}, nil},
		{"no number", []kafka.Setting{{"max.message.bytes", str("many")}}, nil, kafka.ErrInvalidValue},
		{"too small", []kafka.Setting{{"max.message.bytes", str("-1")}}, nil, kafka.ErrInvalidValue},
		{"too large for its type", []kafka.Setting{{"max.message.bytes", str("3000000000")}}, nil, kafka.ErrInvalidValue},
		{"unknown", []kafka.Setting{{"no.such.config", str("1")}}, nil, kafka.ErrUnknownKey},
		{"null", []kafka.Setting{{"retention.ms", nil}}, nil, kafka.ErrNoValue},
		{"twice", []kafka.Setting{{"retention.ms", str("1")}, {"retention.ms", str("2")}}, nil, kafka.ErrDuplicateKey},
		{"lags crossed", []kafka.Setting{{"min.compaction.lag.ms", str("9")}, {"max.compaction.lag.ms", str("8")}}, nil, kafka.ErrInvalidValue},
		{"tiered", []kafka.Setting{{"remote.storage.enable", str("true")}}, nil, kafka.ErrInvalidValue},
		{"tiered off", []kafka.Setting{{"remote.storage.enable", str("FALSE")}}, kafka.Values{"remote.storage.enable": "false"}, nil},
		{"throttled", []kafka.Setting{{"leader.replication.throttled.replicas", str("0:1, 1:2")}}, kafka.Values{"leader.replication.throttled.replicas": "0:1,1:2"}, nil},
		{"all throttled", []kafka.Setting{{"leader.replication.throttled.replicas", str("*")}}, kafka.Values{"leader.replication.throttled.replicas": "*"}, nil},
		{"throttled wrongly", []kafka.Setting{{"leader.replication.throttled.replicas", str("zero")}}, nil, kafka.ErrInvalidValue},
		{"gzip's default", []kafka.Setting{{"compression.gzip.level", str("-1")}}, kafka.Values{"compression.gzip.level": "-1"}, nil},
		{"gzip 0", []kafka.Setting{{"compression.gzip.level", str("0")}}, nil, kafka.ErrInvalidValue},
		{"ratio", []kafka.Setting{{"min.cleanable.dirty.ratio", str("1")}}, kafka.Values{"min.cleanable.dirty.ratio": "1.0"}, nil},
		{"ratio above 1", []kafka.Setting{{"min.cleanable.dirty.ratio", str("1.01")}}, nil, kafka.ErrInvalidValue},
		{"ratio nan", []kafka.Setting{{"min.cleanable.dirty.ratio", str("NaN")}}, nil, kafka.ErrInvalidValue},
		{"no codec", []kafka.Setting{{"compression.type", str("brotli")}}, nil, kafka.ErrInvalidValue},
		{"old format", []kafka.Setting{{"message.format.version", str("2.8")}}, kafka.Values{"message.format.version": "2.8"}, nil},
		{"no format", []kafka.Setting{{"message.format.version", str("new")}}, nil, kafka.ErrInvalidValue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := kafka.Layers{}.ChangeTopic(tt.settings)
			if tt.kind != nil {
				require.ErrorIs(t, err, tt.kind)
				assert.Nil(t, got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestChangeTopicIncrementally(t *testing.T) {
	current := kafka.Values{"cleanup.policy": "compact", "retention.ms": "5"}
	tests := []struct {
		name    string
		changes []kafka.Change
		want    kafka.Values // of cleanup.policy, retention.ms and follower…replicas after the change
		kind    error
	}{
		{"set", []kafka.Change{{"retention.ms", kafka.Set, str("7")}}, kafka.Values{"cleanup.policy": "compact", "retention.ms": "7"}, nil},
		{"delete", []kafka.Change{{"retention.ms", kafka.Delete, nil}}, kafka.Values{"cleanup.policy": "compact"}, nil},
		{"delete what isn't set", []kafka.Change{{"flush.ms", kafka.Delete, str("")}}, current, nil},
		{"delete what doesn't exist", []kafka.Change{{"no.such", kafka.Delete, str("")}}, current, nil},
		{"append", []kafka.Change{{"cleanup.policy", kafka.Append, str("delete")}}, kafka.Values{"cleanup.policy": "compact,delete", "retention.ms": "5"}, nil},
		{"append what is there", []kafka.Change{{"cleanup.policy", kafka.Append, str("compact")}}, current, nil},
		{"subtract", []kafka.Change{{"cleanup.policy", kafka.Subtract, str("compact")}}, kafka.Values{"cleanup.policy": "", "retention.ms": "5"}, nil},
		{"subtract what isn't there", []kafka.Change{{"cleanup.policy", kafka.Subtract, str("delete")}}, current, nil},
		{"append to an empty list", []kafka.Change{{"follower.replication.throttled.replicas", kafka.Append, str("0:1,1:1")}}, kafka.Values{"cleanup.policy": "compact", "retention.ms": "5", "follower.replication.throttled.replicas": "0:1,1:1"}, nil},
		{"append a wrong word", []kafka.Change{{"cleanup.policy", kafka.Append, str("burn")}}, nil, kafka.ErrInvalidValue},
		{"append null", []kafka.Change{{"cleanup.policy", kafka.Append, nil}}, nil, kafka.ErrNoValue},
		{"append to no list", []kafka.Change{{"retention.ms", kafka.Append, str("5")}}, nil, kafka.ErrNotList},
		{"append to what doesn't exist", []kafka.Change{{"no.such", kafka.Append, str("5")}}, nil, kafka.ErrUnknownKey},
		{"set null", []kafka.Change{{"retention.ms", kafka.Set, nil}}, nil, kafka.ErrNoValue},
		{"set out of range", []kafka.Change{{"retention.ms", kafka.Set, str("-2")}}, nil, kafka.ErrInvalidValue},
		{"set unknown", []kafka.Change{{"no.such", kafka.Set, str("1")}}, nil, kafka.ErrUnknownKey},
		{"operation 9", []kafka.Change{{"retention.ms", 9, str("1")}}, nil, kafka.ErrUnknownOp},
		{"operation -1", []kafka.Change{{"retention.ms", -1, str("1")}}, nil, kafka.ErrUnknownOp},
		{"twice", []kafka.Change{{"retention.ms", kafka.Set, str("1")}, {"retention.ms", kafka.Delete, nil}}, nil, kafka.ErrDuplicateKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := kafka.Layers{}.ChangeTopicIncrementally(current, tt.changes)
			assert.Equal(t, kafka.Values{"cleanup.policy": "compact", "retention.ms": "5"}, current, "what was given stays")
			if tt.kind != nil {
				require.ErrorIs(t, err, tt.kind)
				assert.Nil(t, got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
	got, err := kafka.Layers{Static: kafka.Values{"log.cleanup.policy": "compact"}}.ChangeTopicIncrementally(nil,
		[]kafka.Change{{"cleanup.policy", kafka.Append, str("delete")}})
	require.NoError(t, err)
	assert.Equal(t, "compact,delete", got["cleanup.policy"], "a list begins with what is in force")
}

func TestChangeBroker(t *testing.T) {
	tests := []struct {
		name     string
		target   kafka.Target
		settings []kafka.Setting
		kind     error
	}{
		{"dynamic", kafka.ThisBroker, []kafka.Setting{{"log.cleaner.backoff.ms", str("14000")}}, nil},
		{"dynamic for all", kafka.AllBrokers, []kafka.Setting{{"log.retention.ms", str("600000000")}}, nil},
		{"reset", kafka.ThisBroker, nil, nil},
		{"unknown", kafka.ThisBroker, []kafka.Setting{{"no.such.config", str("1")}}, nil},
		{"read only", kafka.ThisBroker, []kafka.Setting{{"log.dirs", str("/x")}}, kafka.ErrReadOnly},
		{"bad value", kafka.ThisBroker, []kafka.Setting{{"log.cleaner.backoff.ms", str("soon")}}, kafka.ErrInvalidValue},
		{"null", kafka.ThisBroker, []kafka.Setting{{"log.cleaner.backoff.ms", nil}}, kafka.ErrNoValue},
		{"per broker for all", kafka.AllBrokers, []kafka.Setting{{"listeners", str("PLAINTEXT://:1")}}, kafka.ErrPerBroker},
		{"listeners can't move", kafka.ThisBroker, []kafka.Setting{{"listeners", str("PLAINTEXT://:1")}}, kafka.ErrReadOnly},
		{"listeners as they are", kafka.ThisBroker, []kafka.Setting{{"listeners", str("PLAINTEXT://127.0.0.1:9092")}}, nil},
		{"too many threads", kafka.ThisBroker, []kafka.Setting{{"num.io.threads", str("17")}}, kafka.ErrInvalidValue},
		{"too few threads", kafka.ThisBroker, []kafka.Setting{{"num.io.threads", str("3")}}, kafka.ErrInvalidValue},
		{"twice the threads", kafka.ThisBroker, []kafka.Setting{{"num.io.threads", str("16")}}, nil},
		{"lags crossed", kafka.ThisBroker, []kafka.Setting{{"log.cleaner.min.compaction.lag.ms", str("5")}, {"log.cleaner.max.compaction.lag.ms", str("4")}}, kafka.ErrInvalidValue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := kafka.Layers{}
			after, err := before.ChangeBroker(tt.target, tt.settings)
			if tt.kind != nil {
				require.ErrorIs(t, err, tt.kind)
				return
			}
			require.NoError(t, err)
			kept := after.Dynamic
			if tt.target == kafka.AllBrokers {
				kept = after.DynamicDefault
			}
			assert.Len(t, kept, len(tt.settings))
			assert.Nil(t, before.Dynamic)
		})
	}
}

func TestChangeBrokerIncrementally(t *testing.T) {
	l := kafka.Layers{Dynamic: kafka.Values{"log.cleaner.backoff.ms": "14000"}}
	after, err := l.ChangeBrokerIncrementally(kafka.ThisBroker, []kafka.Change{{"log.dirs", kafka.Delete, nil}})
	require.NoError(t, err, "deleting what cannot be set does nothing")
	assert.Equal(t, l.Dynamic, after.Dynamic)

	_, err = l.ChangeBrokerIncrementally(kafka.ThisBroker, []kafka.Change{{"broker.id", kafka.Set, str("7")}})
	require.ErrorIs(t, err, kafka.ErrReadOnly)

	after, err = l.ChangeBrokerIncrementally(kafka.AllBrokers, []kafka.Change{{"log.cleanup.policy", kafka.Append, str("compact")}})
	require.NoError(t, err)
	assert.Equal(t, "delete,compact", after.DynamicDefault["log.cleanup.policy"])
	topic, err := after.TopicConfig(nil)
	require.NoError(t, err)
	assert.Equal(t, kafka.CleanupPolicy{Compact: true, Delete: true}, topic.CleanupPolicy, "topics follow")

	_, err = l.ChangeBrokerIncrementally(kafka.ThisBroker, []kafka.Change{{"no.such", kafka.Append, str("x")}})
	require.ErrorIs(t, err, kafka.ErrNotList)

	after, err = l.ChangeBrokerIncrementally(kafka.ThisBroker, []kafka.Change{{"log.cleaner.backoff.ms", kafka.Delete, nil}})
	require.NoError(t, err)
	assert.Empty(t, after.Dynamic)
}

func TestFaultsSayWhat(t *testing.T) {
	_, err := kafka.Layers{}.ChangeTopic([]kafka.Setting{{"retention_ms", str("1")}, {"max.message.bytes", str("many")}, {"log.retention.ms", str("5")}})
	var fault *kafka.Fault
	require.True(t, errors.As(err, &fault))
	assert.Contains(t, err.Error(), `Unknown topic config name: retention_ms (did you mean "retention.ms"?)`)
	assert.Contains(t, err.Error(), `Unknown topic config name: log.retention.ms (did you mean "retention.ms"?)`)
	assert.Contains(t, err.Error(), `Invalid value many for configuration max.message.bytes: not a number of type INT`)

	_, err = kafka.Layers{}.ChangeBroker(kafka.ThisBroker, []kafka.Setting{{"ssl.key.password", nil}})
	require.ErrorIs(t, err, kafka.ErrNoValue)
}
