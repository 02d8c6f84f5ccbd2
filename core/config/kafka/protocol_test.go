package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestProtocolVersion(t *testing.T) {
	for text, want := range map[string]kafka.ProtocolVersion{
		"":        kafka.Protocol(3, 9, 0),
		"3.9":     kafka.Protocol(3, 9, 0),
		"3.9-IV0": kafka.Protocol(3, 9, 0),
		"3.9.1":   kafka.Protocol(3, 9, 0),
		"2.8":     kafka.Protocol(2, 8, 1),
		"2.8-IV1": kafka.Protocol(2, 8, 1),
		"3.7":     kafka.Protocol(3, 7, 4),
		"3.7-IV2": kafka.Protocol(3, 7, 2),
	} {
		values := kafka.Values{}
		if text != "" {
			values["inter.broker.protocol.version"] = text
		}
		c, err := kafka.Layers{Static: values}.BrokerConfig()
		require.NoError(t, err, text)
		assert.Equal(t, want, c.InterBrokerProtocol, text)
	}
	for _, text := range []string{"2.7", "2.8-IV0", "4.0", "3.9-IV1", "3.10", "3", "x", "3.9-IVx", "3.9-IV99999999999", "3.-1"} {
		_, err := kafka.Layers{Static: kafka.Values{"inter.broker.protocol.version": text}}.BrokerConfig()
		require.ErrorIs(t, err, kafka.ErrInvalidValue, text)
	}
	assert.Less(t, kafka.Protocol(3, 7, 4), kafka.Protocol(3, 8, 0))
}

// TestInterBrokerListener chooses the listener that brokers use among themselves as Apache Kafka does.
func TestInterBrokerListener(t *testing.T) {
	const two, protocols = "IN://:9092,OUT://:9093", "IN:PLAINTEXT,OUT:PLAINTEXT"
	for _, tt := range []struct {
		name   string
		values kafka.Values
		want   string
		fault  string
	}{
		{"default", kafka.Values{}, "PLAINTEXT", ""},
		{"alone under another name", kafka.Values{"listeners": "IN://:9092", "listener.security.protocol.map": protocols}, "IN", ""},
		{"by name", kafka.Values{"listeners": two, "listener.security.protocol.map": protocols, "inter.broker.listener.name": "out"}, "OUT", ""},
		{"by protocol", kafka.Values{"listeners": "IN://:9092,PLAINTEXT://:9093", "listener.security.protocol.map": protocols + ",PLAINTEXT:PLAINTEXT"}, "PLAINTEXT", ""},
		{"not said", kafka.Values{"listeners": two, "listener.security.protocol.map": protocols}, "IN", ""},
		{"not said, one advertised", kafka.Values{"listeners": two, "listener.security.protocol.map": protocols, "advertised.listeners": "OUT://b:1"}, "OUT", ""},
		{"unknown", kafka.Values{"inter.broker.listener.name": "X"}, "", "X is none of the listeners (PLAINTEXT)"},
		{"not advertised", kafka.Values{"listeners": two, "listener.security.protocol.map": protocols, "inter.broker.listener.name": "IN",
			"advertised.listeners": "OUT://b:1"}, "", "IN is not advertised"},
		{"both", kafka.Values{"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "", "only one of"},
		{"another protocol", kafka.Values{"security.inter.broker.protocol": "SSL"}, "", "security.inter.broker.protocol"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := kafka.Layers{Static: tt.values}.BrokerConfig()
			if tt.fault != "" {
				require.ErrorIs(t, err, kafka.ErrInvalidValue)
				assert.Contains(t, err.Error(), tt.fault)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, c.InterBrokerListener)
		})
	}
}
