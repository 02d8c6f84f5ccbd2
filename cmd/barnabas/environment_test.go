package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEveryKeyHasAVariable looks for keys that the environment can't tell apart.
func TestEveryKeyHasAVariable(t *testing.T) {
	names := map[string]string{envName("config"): "the file"}
	for _, k := range reference(testParts(t)) {
		if k.Scope != inFile {
			continue
		}
		name := envName(k.Name)
		assert.Regexp(t, `^BARNABAS_[A-Z0-9_]+$`, name)
		assert.Empty(t, names[name], "%s is %s, too", name, k.Name)
		names[name] = k.Name
	}
}

func TestEnvironmentSetsOptions(t *testing.T) {
	file := write(t, "storage: mmap\nelection: {zookeeper: {connect: a}}\n")
	rows := shownConfig(t, []string{
		"BARNABAS_STORAGE_MMAP_MAX_GROWTH=1MiB", "BARNABAS_ELECTION_ZOOKEEPER_USER=007", "BARNABAS_ELECTION_ZOOKEEPER_PASSWORD=let #me: in", "BARNABAS_ELECTION_ZOOKEEPER_CONNECT='b'",
		"BARNABAS_COMPRESSION_GZIP_LEVEL=3", "BARNABAS_GATEWAY={}", "BARNABAS_GATEWAY_MAX_RECORDS=5", "BARNABAS_PARTITIONERS={Orders.EU: {sticky: {batch_bytes: 1KiB}}}",
		"BARNABAS_OFFSETS_TOPIC={}", "BARNABAS_OFFSETS=topic",
	}, "-c", file)
	for key, want := range map[string]string{
		"storage":                                   "mmap | " + file + ":1",
		"storage.mmap.max_growth":                   "1MiB | environment BARNABAS_STORAGE_MMAP_MAX_GROWTH",
		"election.zookeeper.user":                   "007 | environment BARNABAS_ELECTION_ZOOKEEPER_USER",
		"election.zookeeper.password":               "[hidden] | environment BARNABAS_ELECTION_ZOOKEEPER_PASSWORD",
		"election.zookeeper.connect":                "b | environment BARNABAS_ELECTION_ZOOKEEPER_CONNECT",
		"compression[0].gzip.level":                 "3 | environment BARNABAS_COMPRESSION_GZIP_LEVEL",
		"compression[3]":                            "zstd | default",
		"gateway.max_records":                       "5 | environment BARNABAS_GATEWAY_MAX_RECORDS",
		"partitioners.Orders.EU":                    "sticky | environment BARNABAS_PARTITIONERS",
		"partitioners.Orders.EU.sticky.batch_bytes": "1KiB | environment BARNABAS_PARTITIONERS",
	} {
		assert.Equal(t, want, rows[key], key)
	}

	got := barnabas(t, []string{"BARNABAS_STORAGE_SENDFILE_CHUNK=1MiB"}, "config", "check", file)
	assert.Equal(t, exitWrong, got.code)
	assert.Equal(t, "BARNABAS_STORAGE_SENDFILE_CHUNK: storage.sendfile.chunk: storage is mmap, so that an option of sendfile would have no effect\n", got.err)
	rows = shownConfig(t, []string{"BARNABAS_STORAGE_SENDFILE_CHUNK=1MiB", "BARNABAS_STORAGE=sendfile"}, "-c", file)
	assert.Equal(t, "1MiB | environment BARNABAS_STORAGE_SENDFILE_CHUNK", rows["storage.sendfile.chunk"], "the choice comes before its options")
	got = barnabas(t, []string{"BARNABAS_GATEWAY_MAX_RECORD=5"}, "config", "check", file)
	assert.Contains(t, got.err, `BARNABAS_GATEWAY_MAX_RECORD is not known and has no effect (did you mean "BARNABAS_GATEWAY_MAX_RECORDS"?)`)
}

func TestCodecsOfAListAreSetByName(t *testing.T) {
	file := write(t, "compression: [lz4, {gzip: {level: 3}}]\n")
	rows := shownConfig(t, nil, "-c", file, "--set", "compression.gzip.level=4", "--set", "compression.zstd.level=5", "--set", "compression.lz4.level=6")
	assert.Equal(t, "6 | --set", rows["compression[0].lz4.level"])
	assert.Equal(t, "4 | --set", rows["compression[1].gzip.level"])
	assert.Equal(t, "5 | --set", rows["compression[2].zstd.level"], "one that isn't there yet is added")
}

func TestKafkasEnvironment(t *testing.T) {
	file := write(t, "broker: {num.partitions: 2, log.dirs: /a}\n")
	environ := []string{"KAFKA_NUM_PARTITIONS=3", "KAFKA_LOG_DIRS=/b", "BARNABAS_BROKER_LOG_DIRS=/c", "KAFKA_ZOOKEEPER_CONNECT=zk:2181", "KAFKA_NUM_IO_THREADS=4", "KAFKA_PORT=tcp://10.0.0.1:1"}
	rows := shownConfig(t, environ, "-c", file, "--kafka-environment")
	assert.Equal(t, "3 | environment KAFKA_NUM_PARTITIONS", rows["broker.num.partitions"])
	assert.Equal(t, "/c | environment BARNABAS_BROKER_LOG_DIRS", rows["broker.log.dirs"])
	assert.Equal(t, "zookeeper | environment KAFKA_ZOOKEEPER_CONNECT", rows["election"])
	got := barnabas(t, environ, "config", "check", file, "--kafka-environment")
	assert.Contains(t, got.err, "warning: KAFKA_NUM_IO_THREADS: num.io.threads: ignored: ")
	assert.Contains(t, got.err, "warning: KAFKA_PORT: port: unknown: ")
	rows = shownConfig(t, environ, "-c", file)
	assert.Equal(t, "2 | "+file+":1", rows["broker.num.partitions"], "only those who ask for it get it")
	got = barnabas(t, []string{"KAFKA_NUM_PARTITIONS=many"}, "config", "check", file, "--kafka-environment")
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, "KAFKA_NUM_PARTITIONS: num.partitions: Invalid value many")
}
