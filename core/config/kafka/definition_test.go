package kafka_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// TestTableIsKafkas holds the table against the properties of Kafka 3.9: none missing, none made up, and names, types,
// defaults and modes the same, but for the defaults that are ours.
func TestTableIsKafkas(t *testing.T) {
	rows := lines(t, "testdata/kafka39.tsv")
	modes := map[string]kafka.Mode{"read-only": kafka.ReadOnly, "per-broker": kafka.PerBroker, "cluster-wide": kafka.ClusterWide, "topic": kafka.ReadOnly}
	counts := map[string]int{}
	for _, row := range rows {
		scope, name, typ, def, internal, mode := row[0], row[1], row[2], row[3], row[4], row[5]
		counts[scope]++
		d, ok := kafka.BrokerDefinition(name)
		if scope == "topic" {
			d, ok = kafka.TopicDefinition(name)
		}
		if !assert.True(t, ok, "%s property %s is missing", scope, name) {
			continue
		}
		assert.Equal(t, typ, d.Type.String(), name)
		assert.Equal(t, def == `\N`, d.Null, name)
		if !d.Null && !strings.Contains(ownDefaults(), name+"=") {
			assert.Equal(t, def, d.Default, name)
		}
		assert.Equal(t, internal == "true", d.Internal, name)
		assert.Equal(t, modes[mode], d.Mode, name)
	}
	ours := 0
	for _, d := range kafka.BrokerDefinitions() {
		if strings.HasSuffix(d.Name, ".replication.throttled.rate") { // Kafka knows these only as settings of running brokers
			assert.True(t, d.Internal, "%s is shown where nobody set it", d.Name)
			ours++
		}
	}
	assert.Equal(t, counts["broker"]+ours, len(kafka.BrokerDefinitions()))
	ours = 0
	for _, d := range kafka.TopicDefinitions() {
		if strings.HasPrefix(d.Name, "barnabas.") {
			assert.True(t, d.Internal, "%s is shown where nobody set it, which Kafka's clients don't expect", d.Name)
			ours++
		}
	}
	assert.Equal(t, counts["topic"]+ours, len(kafka.TopicDefinitions()))
}

// ownDefaults names the defaults that aren't Kafka's: a broker that nobody configured serves its own machine, and
// keeps its data where it was started instead of where temporary files are cleared.
func ownDefaults() string { return "listeners=PLAINTEXT://127.0.0.1:9092 log.dir=./data" }

func TestOwnDefaults(t *testing.T) {
	for _, pair := range strings.Fields(ownDefaults()) {
		name, want, _ := strings.Cut(pair, "=")
		d, ok := kafka.BrokerDefinition(name)
		assert.True(t, ok)
		assert.Equal(t, want, d.Default)
	}
}

func TestEveryDefinitionIsSound(t *testing.T) {
	for _, d := range append(kafka.BrokerDefinitions(), kafka.TopicDefinitions()...) {
		assert.NotEmpty(t, d.Doc, d.Name)
		assert.True(t, strings.HasSuffix(d.Doc, "."), "%s: the doc is a sentence", d.Name)
		if !d.Null {
			canonical, err := d.Canonical(d.Default)
			// Some lists are empty by default although Kafka wants them filled once they are set.
			assert.NoError(t, err, d.Name)
			assert.Equal(t, d.Default, canonical, d.Name)
		}
		if d.Refused {
			assert.NotEmpty(t, d.NoEffect, "%s: a refusal needs its reason", d.Name)
		}
		if d.Synonym != "" {
			broker, ok := kafka.BrokerDefinition(d.Synonym)
			assert.True(t, ok, "%s: there is no %s", d.Name, d.Synonym)
			assert.Equal(t, broker.Type, d.Type, d.Name)
			assert.Equal(t, broker.NoEffect, d.NoEffect, "%s and %s", d.Name, d.Synonym)
		}
	}
}

// TestWhatActsIsRead holds the table's word that a property acts against the structs through which the broker sees
// properties, and the other way round.
func TestWhatActsIsRead(t *testing.T) {
	read := map[string]bool{
		// fields without a tag, made from these
		"listeners": true, "advertised.listeners": true, "listener.security.protocol.map": true, "log.dir": true, "log.dirs": true,
		"max.connections.per.ip.overrides": true, "node.id": true, "inter.broker.listener.name": true, "security.inter.broker.protocol": true,
		// asked for by name, through Layers.Get
		"auto.create.topics.enable": true, "offsets.topic.num.partitions": true, "offsets.topic.replication.factor": true, "offsets.topic.segment.bytes": true,
		"transaction.state.log.num.partitions": true, "transaction.state.log.replication.factor": true, "transaction.state.log.segment.bytes": true,
		"transaction.state.log.min.isr": true,
		// read by the coordination, where its options say nothing
		"zookeeper.connect": true, "zookeeper.connection.timeout.ms": true, "zookeeper.session.timeout.ms": true, "zookeeper.set.acl": true,
		// families in several units
		"log.retention.minutes": true, "log.retention.hours": true, "log.roll.hours": true, "log.roll.jitter.hours": true,
	}
	tags := func(v any) (names []string) {
		for i := range reflect.TypeOf(v).NumField() {
			if name := reflect.TypeOf(v).Field(i).Tag.Get("kafka"); name != "" {
				names = append(names, name)
			}
		}
		return names
	}
	for _, name := range tags(kafka.BrokerConfig{}) {
		d, ok := kafka.BrokerDefinition(name)
		assert.True(t, ok, "BrokerConfig reads %s, which doesn't exist", name)
		assert.Empty(t, d.NoEffect, "BrokerConfig reads %s", name)
		read[name] = true
	}
	topic := map[string]bool{}
	for _, name := range tags(kafka.TopicConfig{}) {
		d, ok := kafka.TopicDefinition(name)
		assert.True(t, ok, "TopicConfig reads %s, which doesn't exist", name)
		topic[name] = true
		read[d.Synonym] = true
	}
	for _, d := range kafka.BrokerDefinitions() {
		if d.NoEffect == "" {
			assert.True(t, read[d.Name], "%s is said to act, and nothing reads it", d.Name)
		}
	}
	for _, d := range kafka.TopicDefinitions() {
		assert.True(t, topic[d.Name] || d.NoEffect != "", "%s is said to act, and TopicConfig lacks it", d.Name)
	}
}
