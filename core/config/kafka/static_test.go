package kafka_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func section(t *testing.T, text string) config.Section {
	t.Helper()
	root, err := config.Parse("b.yaml", []byte(text))
	require.NoError(t, err)
	sub, _ := root.Sub("broker")
	return sub
}

func TestReadStatic(t *testing.T) {
	values, warnings, err := kafka.ReadStatic(section(t, `
broker:
  broker.id: 1
  listeners: PLAINTEXT://127.0.0.1:9092
  log.dirs: [/a, /b]
  log.cleaner.min.cleanable.ratio: 0.25
  log.flush.interval.messages: "1"
  auto.create.topics.enable: false
  broker.rack: yes
`))
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, kafka.Values{
		"broker.id": "1", "node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/a,/b", "log.cleaner.min.cleanable.ratio": "0.25",
		"log.flush.interval.messages": "1", "auto.create.topics.enable": "false", "broker.rack": "yes",
	}, values)

	values, warnings, err = kafka.ReadStatic(section(t, "broker:\n"))
	require.NoError(t, err)
	assert.Empty(t, warnings)
	assert.Empty(t, values)
}

func TestReadStaticWarns(t *testing.T) {
	values, warnings, err := kafka.ReadStatic(section(t, `
broker:
  num.io.threads: 16
  zookeeper.max.in.flight.requests: 5
  listener.name.internal.ssl.keystore.location: /k
  listener.name.internal.scram-sha-256.sasl.jaas.config: x
  authorizer.class.name: ""
`))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"b.yaml:3: broker.num.io.threads: has no effect: work runs in goroutines, which need no pools of threads",
		"b.yaml:4: broker.zookeeper.max.in.flight.requests: has no effect: ZooKeeper is chosen and configured under `election`",
		"b.yaml:5: broker.listener.name.internal.ssl.keystore.location: has no effect: settings of a single listener are not supported",
		"b.yaml:6: broker.listener.name.internal.scram-sha-256.sasl.jaas.config: has no effect: settings of a single listener are not supported",
		"b.yaml:7: broker.authorizer.class.name: has no effect: Java classes cannot be loaded",
	}, warnings)
	assert.Equal(t, "16", values["num.io.threads"], "DescribeConfigs shows it all the same")
}

func TestReadStaticFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown", "log.dris: /a", `b.yaml:2: broker.log.dris: unknown property (did you mean "log.dirs"?)`},
		{"a topic's name", "retention.ms: 5", `b.yaml:2: broker.retention.ms: unknown property (did you mean "log.retention.ms"?)`},
		{"other case", "Log.Dirs: /a", `b.yaml:2: broker.Log.Dirs: unknown property (did you mean "log.dirs"?)`},
		{"nested", "log: {dirs: /a}", `b.yaml:2: broker.log: unknown property`},
		{"nested below a name", "log.dirs: {a: b}", `b.yaml:2: broker.log.dirs: want a single value; names of properties are written in full`},
		{"no value", "log.dirs:", `b.yaml:2: broker.log.dirs: no value given (remove the key to keep the default)`},
		{"wrong type", "num.partitions: many", `b.yaml:2: broker.num.partitions: Invalid value many for configuration num.partitions: not a number of type INT`},
		{"a list in a list", "log.dirs: [[a]]", `b.yaml:2: broker.log.dirs[0]: want a single value without commas`},
		{"a comma in a list", "log.dirs: ['a,b']", `b.yaml:2: broker.log.dirs[0]: want a single value without commas`},
		{"an authorizer", "authorizer.class.name: kafka.security.authorizer.AclAuthorizer", `b.yaml:2: broker.authorizer.class.name: cannot be set: Java classes cannot be loaded`},
		{"tiered storage", "remote.log.storage.system.enable: true", `b.yaml:2: broker.remote.log.storage.system.enable: cannot be set: tiered storage is not supported`},
		{"two ids", "broker.id: 1\n  node.id: 2", `b.yaml:3: broker.node.id: is another name of broker.id and must be the same: 1, not 2`},
		{"listener override of nothing", "listener.name.x.nothing: 1", `b.yaml:2: broker.listener.name.x.nothing: unknown property`},
		{"listener override, wrong", "listener.name.x.max.connections: many", `not a number of type INT`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values, _, err := kafka.ReadStatic(section(t, "broker:\n  "+tt.text+"\n"))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
			assert.Nil(t, values)
		})
	}
	_, _, err := kafka.ReadStatic(section(t, "broker: [a]"))
	assert.ErrorContains(t, err, "b.yaml:1: broker: want a mapping")
	_, _, err = kafka.ReadStatic(section(t, "broker:\n  a: 1\n  b: 2\n  num.partitions: x"))
	assert.Len(t, err, 3, "all at once")
}

func TestReadStaticNodeID(t *testing.T) {
	values, _, err := kafka.ReadStatic(section(t, "broker: {node.id: 4}"))
	require.NoError(t, err)
	assert.Equal(t, "4", values["broker.id"])
}

func TestPlace(t *testing.T) {
	s := section(t, "broker:\n  broker.id: 5000\n  listeners: A://:1,B://:1\n  listener.security.protocol.map: A:PLAINTEXT,B:SSL\n")
	values, _, err := kafka.ReadStatic(s)
	require.NoError(t, err)
	_, err = kafka.Layers{Static: values}.BrokerConfig()
	assert.EqualError(t, kafka.Place(s, err), "b.yaml:3: broker.listeners: the listener B wants SSL, but listeners carry plain connections without authentication\n"+
		"b.yaml:3: broker.listeners: A and B have the same port 1\n"+
		"b.yaml:2: broker.broker.id: 5000 is above reserved.broker.max.id (1000): ids above that are generated")
	assert.NoError(t, kafka.Place(s, nil))
}

// FuzzChange gives every property any value: never a panic, and what is taken once is taken again unchanged.
func FuzzChange(f *testing.F) {
	f.Add("cleanup.policy", "compact,,delete", int8(2))
	f.Add("min.cleanable.dirty.ratio", "1e-9", int8(0))
	f.Add("listeners", "A://[::1%eth0]:1", int8(0))
	f.Add("max.connections.per.ip.overrides", "::1:5", int8(0))
	f.Add("log.retention.ms", "+9223372036854775807", int8(0))
	f.Add("", "0", int8(0))
	f.Fuzz(func(t *testing.T, name, value string, op int8) {
		l := kafka.Layers{}
		changes := []kafka.Change{{Name: name, Op: kafka.Op(op), Value: &value}}
		if own, err := l.ChangeTopicIncrementally(nil, changes); err == nil {
			if _, err := l.TopicConfig(own); err != nil {
				t.Fatalf("taken and then refused: %v", err)
			}
			again, err := l.ChangeTopicIncrementally(own, nil)
			if err != nil || len(again) != len(own) || again[name] != own[name] {
				t.Fatalf("%v became %v (%v)", own, again, err)
			}
		}
		if after, err := l.ChangeBrokerIncrementally(kafka.ThisBroker, changes); err == nil {
			if _, err := after.BrokerConfig(); err != nil {
				t.Fatalf("taken and then refused: %v", err)
			}
			after.DescribeBroker()
		}
		_, _ = kafka.Layers{Static: kafka.Values{name: value}}.BrokerConfig()
	})
}

func TestReadStaticKnowsUnits(t *testing.T) {
	for text, want := range map[string]string{
		"log.retention.ms: 7d": "(7d is 604800000 here)", "log.retention.hours: 2d": "(2d is 48 here)", "log.retention.minutes: 90s": "type INT",
		"log.segment.bytes: 64MiB": "(64MiB is 67108864 here)", "log.segment.bytes: 64MB": "(64MB is 64000000 here)", "num.partitions: 3s": "type INT",
		"leader.imbalance.check.interval.seconds: 5m": "(5m is 300 here)", "log.retention.ms: 99999999d": "type LONG", "log.retention.ms: 7 d": "type LONG",
		"log.dirs: {a: 7d}": "written in full",
	} {
		root, err := config.Parse("b.yaml", []byte("broker: {"+text+"}"))
		require.NoError(t, err)
		broker, _ := root.Sub("broker")
		_, _, err = kafka.ReadStatic(broker)
		require.Error(t, err, text)
		assert.True(t, strings.HasSuffix(err.Error(), want) || strings.Contains(want, "full") && strings.Contains(err.Error(), want), "%s: %v", text, err)
	}
}
