package kafka_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestBrokerConfigDefaults(t *testing.T) {
	c, err := kafka.Layers{}.BrokerConfig()
	require.NoError(t, err)
	assert.Equal(t, int32(-1), c.BrokerID)
	assert.Equal(t, []kafka.Listener{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092, Protocol: "PLAINTEXT"}}, c.Listeners)
	assert.Empty(t, c.Advertised)
	assert.Equal(t, []string{"data"}, c.LogDirs)
	assert.Equal(t, int32(104857600), c.SocketRequestMaxBytes)
	assert.Equal(t, 10*time.Minute, c.ConnectionsMaxIdle)
	assert.Equal(t, 3*time.Second, c.GroupInitialRebalanceDelay)
	assert.Equal(t, 7*24*time.Hour, c.OffsetsRetention)
	assert.Equal(t, time.Duration(math.MaxInt64), c.LogFlushSchedulerInterval, "what is too long for a Duration is the longest")
	assert.Empty(t, c.MaxConnectionsPerIPOverrides)
}

func TestBrokerConfigFaults(t *testing.T) {
	tests := []struct {
		name   string
		values kafka.Values
		want   string
	}{
		{"bad number", kafka.Values{"num.partitions": "x"}, "Invalid value x for configuration num.partitions: not a number of type INT"},
		{"no partitions", kafka.Values{"num.partitions": "0"}, "value must be at least 1"},
		{"id", kafka.Values{"broker.id": "-2"}, "broker.id: must be -1 or more"},
		{"id among the generated", kafka.Values{"broker.id": "1001"}, "above reserved.broker.max.id"},
		{"id missing", kafka.Values{"broker.id.generation.enable": "false"}, "broker.id: must be given"},
		{"sessions crossed", kafka.Values{"group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "9"}, "must not be above"},
		{"replicas", kafka.Values{"default.replication.factor": "0"}, "default.replication.factor: must be at least 1"},
		{"buffer", kafka.Values{"socket.send.buffer.bytes": "0"}, "socket.send.buffer.bytes: must be at least 1"},
		{"same directory", kafka.Values{"log.dirs": "/a,/b,/a/"}, "log.dirs: the directory /a is given twice"},
		{"empty directory", kafka.Values{"log.dirs": "/a,,/b"}, "names an empty directory"},
		{"no directory", kafka.Values{"log.dirs": ""}, "log.dirs: at least one directory is needed"},
		{"override", kafka.Values{"max.connections.per.ip.overrides": "host"}, "want HOST:COUNT"},
		{"override negative", kafka.Values{"max.connections.per.ip.overrides": "host:-1"}, "want HOST:COUNT"},
		{"topic defaults crossed", kafka.Values{"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"}, "conflict between"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := kafka.Layers{Static: tt.values}.BrokerConfig()
			require.ErrorIs(t, err, kafka.ErrInvalidValue)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

func TestBrokerConfigValues(t *testing.T) {
	c, err := kafka.Layers{Static: kafka.Values{
		"log.dirs": "/a , b/../c", "max.connections.per.ip.overrides": "10.0.0.1:5, [::1]:7,host:0", "broker.rack": "r1", "log.dir": "/unused",
	}, Dynamic: kafka.Values{"max.connections": "77"}}.BrokerConfig()
	require.NoError(t, err)
	assert.Equal(t, []string{"/a", "c"}, c.LogDirs)
	assert.Equal(t, map[string]int32{"10.0.0.1": 5, "::1": 7, "host": 0}, c.MaxConnectionsPerIPOverrides)
	assert.Equal(t, "r1", c.Rack)
	assert.Equal(t, int32(77), c.MaxConnections)
}

func TestListeners(t *testing.T) {
	tests := []struct {
		name, listeners, advertised, protocols string
		want                                   string // "" is right
	}{
		{"all addresses", "PLAINTEXT://0.0.0.0:9092", "", "", ""},
		{"no host", "PLAINTEXT://:9092", "", "", ""},
		{"any port", "PLAINTEXT://127.0.0.1:0", "", "", ""},
		{"two names", "IN://:9092,OUT://:9093", "IN://a:9092,OUT://b:9093", "IN:PLAINTEXT,OUT:PLAINTEXT", ""},
		{"two of any port", "IN://:0,OUT://:0", "", "IN:PLAINTEXT,OUT:PLAINTEXT", ""},
		{"advertises one of two", "IN://:9092,OUT://:9093", "OUT://b:9093", "IN:PLAINTEXT,OUT:PLAINTEXT", ""},
		{"lower case", "plaintext://localhost:9092", "", "", ""},
		{"IPv6", "PLAINTEXT://[::1]:9092", "PLAINTEXT://[2001:db8::1]:9092", "", ""},
		{"IPv4 and IPv6 share a port", "A://127.0.0.1:9092,B://[::1]:9092", "", "A:PLAINTEXT,B:PLAINTEXT", ""},
		{"advertised 0.0.0.0", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://0.0.0.0:9092", "", "advertised.listeners: 0.0.0.0 stands for all addresses"},
		{"advertised ::", "PLAINTEXT://:9092", "PLAINTEXT://[::]:9092", "", "stands for all addresses"},
		{"advertised port 0", "PLAINTEXT://:9092", "PLAINTEXT://a:0", "", "the port of PLAINTEXT is 0"},
		{"advertised unknown", "PLAINTEXT://:9092", "OUT://a:9093", "PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT", "OUT is none of the listeners (PLAINTEXT)"},
		{"unknown name", "CLIENT://:9092", "", "", "no protocol is given for the listener CLIENT"},
		{"same port", "A://:9092,B://:9092", "", "A:PLAINTEXT,B:PLAINTEXT", "A and B have the same port 9092"},
		{"same port, other hosts", "A://10.0.0.1:9092,B://10.0.0.2:9092", "", "A:PLAINTEXT,B:PLAINTEXT", "have the same port"},
		{"same name", "A://:9092,A://:9093", "", "A:PLAINTEXT", "the listener A is given twice"},
		{"TLS", "SSL://:9092", "", "", "the listener SSL wants SSL, but"},
		{"SASL by another name", "OUT://:9092", "", "OUT:SASL_PLAINTEXT", "the listener OUT wants SASL_PLAINTEXT"},
		{"no port", "PLAINTEXT://host", "", "", "want NAME://HOST:PORT"},
		{"no name", "://host:1", "", "", "want NAME://HOST:PORT"},
		{"no form", "host:9092", "", "", "want NAME://HOST:PORT"},
		{"large port", "PLAINTEXT://:65536", "", "", "not a number from 0 to 65535"},
		{"negative port", "PLAINTEXT://:-1", "", "", "not a number from 0 to 65535"},
		{"bare IPv6", "PLAINTEXT://::1:9092", "", "", "has no valid host"},
		{"odd brackets", "PLAINTEXT://[host]:9092", "", "", "holds no address between its brackets"},
		{"none", " ", "", "", "at least one listener is needed"},
		{"unknown protocol", "PLAINTEXT://:9092", "", "PLAINTEXT:HTTP", "the protocol of PLAINTEXT must be one of"},
		{"bad map", "PLAINTEXT://:9092", "", "PLAINTEXT", "want NAME:PROTOCOL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values := kafka.Values{"listeners": tt.listeners}
			if tt.advertised != "" {
				values["advertised.listeners"] = tt.advertised
			}
			if tt.protocols != "" {
				values["listener.security.protocol.map"] = tt.protocols
			}
			_, err := kafka.Layers{Static: values}.BrokerConfig()
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorIs(t, err, kafka.ErrInvalidValue)
		})
	}
}

func TestAdvertise(t *testing.T) {
	bound := func(name string) int { return map[string]int{"A": 40001, "B": 40002}[name] }
	advertise := func(listeners, advertised string) []string {
		values := kafka.Values{"listeners": listeners, "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
		if advertised != "" {
			values["advertised.listeners"] = advertised
		}
		c, err := kafka.Layers{Static: values}.BrokerConfig()
		require.NoError(t, err)
		var texts []string
		for _, l := range c.Advertise(bound, "me.example") {
			texts = append(texts, l.String())
		}
		return texts
	}
	assert.Equal(t, []string{"A://me.example:9092"}, advertise("A://0.0.0.0:9092", ""))
	assert.Equal(t, []string{"A://me.example:9092"}, advertise("A://:9092", ""))
	assert.Equal(t, []string{"A://me.example:9092"}, advertise("A://[::]:9092", ""))
	assert.Equal(t, []string{"A://127.0.0.1:40001", "B://me.example:40002"}, advertise("A://127.0.0.1:0,B://:0", ""))
	assert.Equal(t, []string{"B://[2001:db8::1]:7"}, advertise("A://:1,B://:2", "B://[2001:db8::1]:7"))
	assert.Equal(t, []string{"A://me.example:7"}, advertise("A://:1", "A://:7"))
}

func TestRoutableHost(t *testing.T) {
	host := kafka.RoutableHost(context.Background())
	assert.NotEmpty(t, host)
	assert.NotContains(t, []string{"0.0.0.0", "::"}, host)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	assert.NotEmpty(t, kafka.RoutableHost(done), "a name that can't be looked up is replaced by an address")
}

func TestTopicConfig(t *testing.T) {
	c, err := kafka.Layers{}.TopicConfig(nil)
	require.NoError(t, err)
	assert.Equal(t, kafka.CleanupPolicy{Delete: true}, c.CleanupPolicy)
	assert.Equal(t, int32(1<<30), c.SegmentBytes)
	assert.Equal(t, int64(604800000), c.RetentionMs)
	assert.Equal(t, int64(math.MaxInt64), c.FlushMs)
	assert.Equal(t, 0.5, c.MinCleanableDirtyRatio)
	assert.Equal(t, "producer", c.CompressionType)
	assert.Equal(t, kafka.CreateTime, c.MessageTimestampType)
	assert.Equal(t, int32(-1), c.CompressionGzipLevel)

	c, err = kafka.Layers{Static: kafka.Values{"log.segment.bytes": "1000"}}.TopicConfig(kafka.Values{
		"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
	require.NoError(t, err)
	assert.Equal(t, kafka.CleanupPolicy{Compact: true}, c.CleanupPolicy)
	assert.Equal(t, int32(1000), c.SegmentBytes)
	assert.Equal(t, kafka.LogAppendTime, c.MessageTimestampType)

	c, err = kafka.Layers{}.TopicConfig(kafka.Values{"segment.bytes": "nonsense", "retention.ms": "9", "made.up": "x"})
	require.ErrorIs(t, err, kafka.ErrInvalidValue)
	require.ErrorIs(t, err, kafka.ErrUnknownKey)
	assert.Equal(t, int32(1<<30), c.SegmentBytes, "what is wrong falls back")
	assert.Equal(t, int64(9), c.RetentionMs, "what is right stays")
}

func TestTimestampBounds(t *testing.T) {
	const unset = math.MaxInt64
	for _, tt := range []struct {
		own           kafka.Values
		before, after int64
	}{
		{nil, unset, unset},
		{kafka.Values{"message.timestamp.difference.max.ms": "5"}, 5, 5},
		{kafka.Values{"message.timestamp.difference.max.ms": "5", "message.timestamp.after.max.ms": "7"}, 5, 7},
		{kafka.Values{"message.timestamp.before.max.ms": "3"}, 3, unset},
	} {
		c, err := kafka.Layers{}.TopicConfig(tt.own)
		require.NoError(t, err)
		before, after := c.TimestampBounds()
		assert.Equal(t, tt.before, before)
		assert.Equal(t, tt.after, after)
	}
}

func TestCodecsThatAreThere(t *testing.T) {
	l := kafka.Layers{Codecs: []string{"gzip"}}
	for _, name := range []string{"producer", "uncompressed", "gzip"} {
		assert.NoError(t, l.CheckTopic(kafka.Values{"compression.type": name}), name)
	}
	err := l.CheckTopic(kafka.Values{"compression.type": "zstd"})
	require.ErrorIs(t, err, kafka.ErrInvalidValue)
	assert.EqualError(t, err, "compression.type: this broker has no codec zstd; it has: gzip")
	assert.NoError(t, kafka.Layers{}.CheckTopic(kafka.Values{"compression.type": "zstd"}))
	assert.Error(t, kafka.Layers{Codecs: []string{}}.CheckTopic(kafka.Values{"compression.type": "gzip"}))

	c, err := l.TopicConfig(kafka.Values{"compression.type": "zstd", "retention.ms": "9"})
	require.Error(t, err)
	assert.Equal(t, "producer", c.CompressionType, "a topic of earlier times is kept as producers compress")
	assert.Equal(t, int64(9), c.RetentionMs)

	l.Static = kafka.Values{"compression.type": "lz4"}
	_, err = l.BrokerConfig()
	require.ErrorIs(t, err, kafka.ErrInvalidValue)
}
