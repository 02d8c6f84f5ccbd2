package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigExport(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	file := write(t, `broker:
  node.id: 7
  listeners: [PLAINTEXT://127.0.0.1:9092, "B://:9093"]
  listener.security.protocol.map: PLAINTEXT:PLAINTEXT,B:PLAINTEXT
  log.dirs: ./data
  num.io.threads: 9
  broker.rack: "a\\b"
  ssl.key.password: letmein
  listener.name.b.ssl.key.password: letmein2
  leader.replication.throttled.rate: 1000
  zookeeper.connect: other
election:
  zookeeper: {connect: "zk:2181/kafka", session_timeout: 6s, user: me, password: letmein}
storage: {mmap: {max_growth: 4MiB}}
partitioner: sticky
compression: [gzip, {lz4: {level: 3}}]
offsets: topic
gateway: {}
`)
	got := barnabas(t, nil, "config", "export", "-c", file)
	require.Equal(t, exitOK, got.code, got.err)
	assert.Equal(t, `node.id=7
listeners=PLAINTEXT://127.0.0.1:9092,B://:9093
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:PLAINTEXT
log.dirs=`+here+`/data
num.io.threads=9
broker.rack=a\\b
ssl.key.password=letmein
listener.name.b.ssl.key.password=letmein2
zookeeper.connect=zk:2181/kafka
zookeeper.session.timeout.ms=6000
`, got.out)
	for key, want := range map[string]string{
		"broker.node.id": "kept", "broker.log.dirs": "changed +directories are absolute", "broker.num.io.threads": "kept", "broker.ssl.key.password": "kept",
		"broker.leader.replication.throttled.rate": "left out +Kafka takes it only while it runs", "election": "kept", "election.zookeeper.connect": "changed +it is zookeeper.connect",
		"election.zookeeper.password": "left out +Kafka takes this from a JAAS file", "storage": "left out +Kafka has one way", "storage.mmap.max_growth": "left out",
		"partitioner": "left out", "offsets": "kept +Kafka always does so", `compression\[1\].lz4.level`: "left out",
	} {
		assert.Regexp(t, `(?m)^ +`+key+` +`+want, got.err)
	}
	assert.NotContains(t, got.err, "letmein")
	assert.NotContains(t, got.err, "note:")

	to := filepath.Join(t.TempDir(), "server.properties")
	got = barnabas(t, nil, "config", "export", "--to", to)
	require.Equal(t, exitOK, got.code, got.err)
	text, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, "listeners=PLAINTEXT://127.0.0.1:9092\nlog.dir="+here+"/data\n", string(text))
	assert.Contains(t, got.err, "note: Kafka doesn't start with it as it is")
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "export", "--to", to).code, "a file is never written over")
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "export", "-c", filepath.Join(to, "x")).code)
}

// TestWhatIsExportedIsImported goes to Kafka and back with every file that is shown to people.
func TestWhatIsExportedIsImported(t *testing.T) {
	load := func(file string) *composition {
		a := newApp(nil, nil, nil, nil)
		a.parts = testParts(t)
		c, err := a.load(source{file: file})
		require.NoError(t, err, file)
		for i, dir := range absolute(c.broker.LogDirs) {
			c.broker.LogDirs[i] = dir
		}
		return c
	}
	for _, file := range shipped(t) {
		there := barnabas(t, nil, "config", "export", "-c", file)
		require.Equal(t, exitOK, there.code, there.err)
		back := barnabas(t, nil, "config", "import", properties(t, there.out))
		require.Equal(t, exitOK, back.code, back.err)
		assert.Equal(t, load(file).broker, load(write(t, back.out)).broker, file)
	}
	sample := barnabas(t, nil, "config", "import", "testdata/server.properties")
	require.Equal(t, exitOK, sample.code)
	again := barnabas(t, nil, "config", "export", "-c", write(t, sample.out))
	require.Equal(t, exitOK, again.code, again.err)
	back := barnabas(t, nil, "config", "import", properties(t, again.out))
	assert.Equal(t, sample.out, back.out)
}
