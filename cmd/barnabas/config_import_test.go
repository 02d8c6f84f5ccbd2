package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

// properties writes a file of Kafka's.
func properties(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.properties")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestConfigImportSample(t *testing.T) {
	to := filepath.Join(t.TempDir(), "barnabas.yaml")
	got := barnabas(t, nil, "config", "import", "testdata/server.properties", "--to", to)
	require.Equal(t, exitOK, got.code, got.err)
	assert.Empty(t, got.out)
	text, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, `broker:
  broker.id: 0
  socket.send.buffer.bytes: 102400
  socket.receive.buffer.bytes: 102400
  socket.request.max.bytes: 104857600
  log.dirs: /tmp/kafka-logs
  num.partitions: 1
  num.recovery.threads.per.data.dir: 1
  offsets.topic.replication.factor: 1
  transaction.state.log.replication.factor: 1
  transaction.state.log.min.isr: 1
  log.retention.hours: 168
  log.retention.check.interval.ms: 300000
  zookeeper.connect: localhost:2181
  zookeeper.connection.timeout.ms: 18000
  group.initial.rebalance.delay.ms: 0
  listeners: PLAINTEXT://:9092

election: zookeeper
`, string(text))
	assert.Regexp(t, `(?m)^ +11 +num\.network\.threads +ignored +\S.*$`, got.err)
	assert.Regexp(t, `(?m)^ +4 +broker\.id +mapped *$`, got.err)
	assert.Regexp(t, `(?m)^ +listeners +added +Kafka's default, which isn't the default here$`, got.err)
	assert.Equal(t, 1+17+1, strings.Count(got.err, "\n"), "a header, each property, and what is added: %s", got.err)

	check := barnabas(t, nil, "config", "check", to)
	assert.Equal(t, exitOK, check.code, check.err)
	assert.Empty(t, check.err, "it warns of nothing")
	assert.Contains(t, check.out, "PLAINTEXT://:9092")

	again := barnabas(t, nil, "config", "import", "testdata/server.properties", "--to", to)
	assert.Equal(t, exitWrong, again.code, "a file is never written over")
	assert.Contains(t, again.err, "--to: ")
	nowhere := barnabas(t, nil, "config", "import", "testdata/server.properties", "--to", filepath.Join(to, "x"))
	assert.Equal(t, exitFailed, nowhere.code)
}

// TestConfigImportRuns starts a broker with what becomes of the sample, but for ZooKeeper.
func TestConfigImportRuns(t *testing.T) {
	got := barnabas(t, nil, "config", "import", "testdata/server.properties")
	require.Equal(t, exitOK, got.code, got.err)
	from := elsewhere(t, write(t, got.out))
	from.sets = append(from.sets, "election=standalone")
	at := start(t, from)
	created := barnabas(t, nil, "topic", "create", "clicks", "-b", at)
	require.Equal(t, exitOK, created.code, created.err)
	listed := barnabas(t, nil, "topic", "list", "-b", at)
	assert.Contains(t, listed.out, "clicks")
}

func TestConfigImportKeepsValues(t *testing.T) {
	file := properties(t, "broker.rack = a: #b\\n\\u00e4\\\\ \nlog.dirs=/a , /b\nadvertised.listeners=PLAINTEXT://[::1]:9092\nmax.connections.per.ip.overrides=\n")
	got := barnabas(t, nil, "config", "import", file)
	require.Equal(t, exitOK, got.code, got.err)
	root, err := config.Parse("b.yaml", []byte(got.out))
	require.NoError(t, err, got.out)
	broker, _ := root.Sub("broker")
	for name, want := range map[string]string{
		"broker.rack": "a: #b\nä\\ ", "log.dirs": "/a , /b", "advertised.listeners": "PLAINTEXT://[::1]:9092", "max.connections.per.ip.overrides": "",
	} {
		sub, ok := broker.Sub(name)
		assert.True(t, ok, name)
		value, ok := sub.Scalar()
		assert.True(t, ok, name)
		assert.Equal(t, want, value)
	}
	for _, value := range []string{"", "null", "~", "a:", "-", "- a", "#", "a #b", "{a", "a: b", "\x00\x7f\u2028", "'", `"`, "!x", "&x", "*", "1", "true", "a\nb"} {
		root, err := config.Parse("b.yaml", []byte("key: "+scalar(value)+"\n"))
		require.NoError(t, err, value)
		sub, _ := root.Sub("key")
		text, ok := sub.Scalar()
		assert.True(t, ok, value)
		assert.Equal(t, value, text)
	}
}

func TestConfigImportKRaft(t *testing.T) {
	file := properties(t, `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=/tmp/kraft-combined-logs
`)
	got := barnabas(t, nil, "config", "import", file)
	require.Equal(t, exitOK, got.code, got.err)
	assert.Equal(t, `broker:
  node.id: 1
  listeners: PLAINTEXT://:9092
  inter.broker.listener.name: PLAINTEXT
  advertised.listeners: PLAINTEXT://localhost:9092
  listener.security.protocol.map: CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
  log.dirs: /tmp/kraft-combined-logs
`, got.out)
	assert.Contains(t, got.err, "note: this file is for KRaft")
	check := barnabas(t, nil, "config", "check", write(t, got.out))
	assert.Equal(t, exitOK, check.code, check.err)
	assert.Equal(t, 1, strings.Count(check.err, "\n"), check.err)
	assert.Contains(t, check.err, "broker.advertised.listeners: clients on other machines are told localhost, which is themselves")
}

// TestConfigImportEnvironment takes what people give to Kafka's container.
func TestConfigImportEnvironment(t *testing.T) {
	environ := []string{
		"KAFKA_ZOOKEEPER_CONNECT=zk:2181/kafka", "KAFKA_BROKER_ID=3", "KAFKA_LISTENERS=PLAINTEXT://:9092", "KAFKA_LOG_DIRS=/var/lib/kafka", "KAFKA_NUM_IO_THREADS=4",
		"KAFKA_HEAP_OPTS=-Xmx1G", "KAFKA_PORT=tcp://10.0.0.1:9092", "HOME=/root",
	}
	got := barnabas(t, environ, "config", "import", "--environment")
	require.Equal(t, exitOK, got.code, got.err)
	assert.Equal(t, "broker:\n  broker.id: 3\n  listeners: PLAINTEXT://:9092\n  log.dirs: /var/lib/kafka\n  zookeeper.connect: zk:2181/kafka\n\nelection: zookeeper\n", got.out)
	assert.Regexp(t, `(?m)^ +KAFKA_NUM_IO_THREADS +num\.io\.threads +ignored +\S`, got.err)
	assert.Regexp(t, `(?m)^ +KAFKA_PORT +port +unknown +\S`, got.err)
	assert.NotContains(t, got.err, "heap")

	over := barnabas(t, environ, "config", "import", "testdata/server.properties", "--environment")
	require.Equal(t, exitOK, over.code, over.err)
	assert.Contains(t, over.out, "broker.id: 3\n")
	assert.Contains(t, over.out, "num.partitions: 1\n")
	assert.Regexp(t, `(?m)^ +4 +broker\.id +ignored +given again in KAFKA_BROKER_ID, which counts$`, over.err)

	bad := barnabas(t, []string{"KAFKA_BROKER_ID=5000"}, "config", "import", "--environment")
	assert.Equal(t, exitWrong, bad.code)
	assert.Equal(t, "KAFKA_BROKER_ID: broker.id: 5000 is above reserved.broker.max.id (1000): ids above that are generated\n", bad.err)
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "import").code, "nothing to import")
}

func TestConfigImportFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"listener with TLS", "num.partitions=2\nlisteners=SSL://:9093\nssl.keystore.password=letmein", ":2: listeners: the listener SSL wants SSL, but listeners carry plain connections without authentication\n"},
		{"not together", "# none\nbroker.id=5000", ":2: broker.id: 5000 is above reserved.broker.max.id (1000): ids above that are generated\n"},
		{"value", "num.partitions=many", ":1: num.partitions: Invalid value many for configuration num.partitions: not a number of type INT\n"},
		{"escape", `log.dirs=C:\users`, `:1: want four hexadecimal digits behind \u`},
		{"authorizer", "authorizer.class.name=a.B", ":1: authorizer.class.name: cannot be kept: Java classes cannot be loaded\n"},
		{"two names of one id", "broker.id=1\nnode.id=2", ":2: node.id: is another name of broker.id and must be the same: 1, not 2\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := properties(t, tt.text)
			to := filepath.Join(t.TempDir(), "b.yaml")
			got := barnabas(t, nil, "config", "import", file, "--to", to)
			assert.Equal(t, exitWrong, got.code)
			assert.Empty(t, got.out)
			assert.True(t, strings.HasPrefix(got.err, file+tt.want), got.err)
			assert.NotContains(t, got.err, "letmein")
			assert.NoFileExists(t, to)
		})
	}
	got := barnabas(t, nil, "config", "import", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, "no such file")
}

func TestConfigImportTellsNoSecrets(t *testing.T) {
	got := barnabas(t, nil, "config", "import", properties(t, "ssl.key.password=letmein\nssl.kee.password=letmein\nlistener.name.a.ssl.key.password=letmein\n"))
	require.Equal(t, exitOK, got.code, got.err)
	assert.NotContains(t, got.out+got.err, "letmein")
	assert.Regexp(t, `(?m)^ +2 +ssl\.kee\.password +unknown +not a property of Apache Kafka 3\.9 \(did you mean "ssl\.key\.password"\?\)$`, got.err)
}
