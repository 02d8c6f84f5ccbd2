package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

// warningsOf composes a file that has nothing wrong in it.
func warningsOf(t *testing.T, text string) []string {
	t.Helper()
	root, err := config.Parse("b.yaml", []byte(text))
	require.NoError(t, err)
	c, err := compose(root, testParts(t))
	require.NoError(t, err, text)
	return c.warnings
}

func TestCombinations(t *testing.T) {
	tests := []struct {
		name, text, want string
		harmless         string // nearly the same, of which nothing is to be said
	}{
		{"two units", "broker: {log.retention.hours: 24, log.retention.ms: 60000000}",
			"b.yaml:1: broker.log.retention.hours: has no effect: log.retention.ms is set, and the smallest unit wins", "broker: {log.retention.hours: 24, log.roll.ms: 60000000}"},
		{"two units of rolling", "broker:\n  log.roll.hours: 24\n  log.roll.ms: 60000000",
			"b.yaml:2: broker.log.roll.hours: has no effect: log.roll.ms is set, and the smallest unit wins", "broker: {log.roll.hours: 24}"},
		{"two names of directories", "broker: {log.dir: /a, log.dirs: /b}", "b.yaml:1: broker.log.dir: has no effect: log.dirs is set", "broker: {log.dir: /a}"},
		{"more in sync than there are", "broker: {min.insync.replicas: 2}",
			"b.yaml:1: broker.min.insync.replicas: topics with the default of 1 replicas take no writes with acks=all, for min.insync.replicas is 2",
			"broker: {min.insync.replicas: 2, default.replication.factor: 3}"},
		{"more in sync than there are, of transactions", "broker: {transaction.state.log.replication.factor: 1}",
			"b.yaml:1: broker.transaction.state.log.replication.factor: transactions can't be written: transaction.state.log.replication.factor is 1, and transaction.state.log.min.isr 2",
			"broker: {transaction.state.log.replication.factor: 1, transaction.state.log.min.isr: 1}"},
		{"unclean", "broker: {min.insync.replicas: 2, default.replication.factor: 3, unclean.leader.election.enable: true}",
			"b.yaml:1: broker.unclean.leader.election.enable: records that min.insync.replicas protected may be lost: a replica that isn't in sync may become leader",
			"broker: {unclean.leader.election.enable: true}"},
		{"less than a segment", "broker: {log.retention.bytes: 1000}",
			"b.yaml:1: broker.log.retention.bytes: a partition keeps more than log.retention.bytes (1000): only whole segments are deleted, and log.segment.bytes is 1073741824",
			"broker: {log.retention.bytes: -1}"},
		{"less than a check", "broker: {log.retention.ms: 1000}",
			"b.yaml:1: broker.log.retention.ms: records stay longer than that: log.retention.check.interval.ms looks for old ones every 5m0s only",
			"broker: {log.retention.ms: 1000, log.retention.check.interval.ms: 1000}"},
		{"batch above request", "broker: {message.max.bytes: 200000000}",
			"b.yaml:1: broker.message.max.bytes: no batch of message.max.bytes (200000000) comes through, for a request has at most socket.request.max.bytes (104857600)",
			"broker: {message.max.bytes: 200000000, socket.request.max.bytes: 300000000}"},
		{"no cleaner", "broker: {log.cleaner.enable: false}",
			"b.yaml:1: broker.log.cleaner.enable: compacted topics grow for ever, that of consumers' offsets among them", "broker: {log.cleaner.enable: true}"},
		{"sent to themselves", "broker: {listeners: 'PLAINTEXT://:9092', advertised.listeners: 'PLAINTEXT://localhost:9092'}",
			"b.yaml:1: broker.advertised.listeners: clients on other machines are told localhost, which is themselves",
			"broker: {listeners: 'PLAINTEXT://127.0.0.1:9092', advertised.listeners: 'PLAINTEXT://localhost:9092'}"},
		{"option over property", "broker: {zookeeper.connect: a}\nelection: {zookeeper: {connect: b}}",
			"b.yaml:1: broker.zookeeper.connect: has no effect: election.zookeeper.connect is set", "broker: {zookeeper.connect: a}\nelection: zookeeper"},
		{"offsets that are forgotten", "election: {zookeeper: {connect: b}}\noffsets: memory",
			"b.yaml:2: offsets: memory: groups begin anew whenever another broker coordinates them", "offsets: memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, []string{tt.want}, warningsOf(t, tt.text))
			assert.Empty(t, warningsOf(t, tt.harmless))
		})
	}
	assert.Empty(t, warningsOf(t, ""), "of defaults nothing is said")
}

func TestTwoServersOnOneAddress(t *testing.T) {
	for text, fault := range map[string]bool{
		"broker: {listeners: 'PLAINTEXT://127.0.0.1:8082'}\ngateway: {}":                       true,
		"broker: {listeners: 'PLAINTEXT://0.0.0.0:8082'}\ngateway: {}":                         true,
		"broker: {listeners: 'PLAINTEXT://127.0.0.2:8082'}\ngateway: {}":                       false,
		"broker: {listeners: 'PLAINTEXT://127.0.0.1:8082'}\ngateway: {listen: 127.0.0.1:8083}": false,
		"broker: {listeners: 'PLAINTEXT://127.0.0.1:0'}\ngateway: {listen: 127.0.0.1:0}":       false,
		"broker: {listeners: 'PLAINTEXT://127.0.0.1:8082'}\ngateway: {listen: '0.0.0.0:8082'}": true,
		"broker: {listeners: 'PLAINTEXT://127.0.0.1:9644'}\nadmin: {}":                         true,
		"gateway: {listen: 127.0.0.1:7000}\nadmin: {listen: 127.0.0.1:7000}":                   true,
		"gateway: {listen: 127.0.0.1:0}\nadmin: {listen: 127.0.0.1:0}":                         false,
		"gateway: {}\nadmin: {}": false,
	} {
		root, err := config.Parse("b.yaml", []byte(text))
		require.NoError(t, err)
		_, err = compose(root, testParts(t))
		if fault {
			assert.ErrorContains(t, err, "is taken by the ", text)
		} else {
			assert.NoError(t, err, text)
		}
	}
}
