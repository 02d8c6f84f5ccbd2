package kafkatools

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// played runs command lines against one broker, and compares with what Apache Kafka's tools print.
type played struct {
	t    *testing.T
	addr string
}

func (p played) run(input, line string) outcome {
	p.t.Helper()
	tool, args, _ := strings.Cut(line, " ")
	return run(p.t, input, tool+" --bootstrap-server "+p.addr+" "+args)
}

// prints wants success, and that a line prints this.
func (p played) prints(want, line string) {
	p.t.Helper()
	got := p.run("", line)
	assert.Zero(p.t, got.code, "%s: %s%s", line, got.out, got.err)
	out := regexp.MustCompile(`TopicId: \S+`).ReplaceAllString(got.out, "TopicId: ID")
	assert.Equal(p.t, want, out, line)
}

func start(t *testing.T) (played, *brokertest.Broker) {
	b := testbroker.Start(t, brokertest.Property("group.initial.rebalance.delay.ms", "0"))
	return played{t, b.Addr()}, b
}

func TestTopicsAndConfigs(t *testing.T) {
	p, _ := start(t)
	p.prints("Created topic t.\n", "kafka-topics --create --topic t --partitions 2 --config retention.ms=1000")
	p.prints("", "kafka-topics --create --topic t --if-not-exists")
	got := p.run("", "kafka-topics --create --topic t")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "Error while executing topic command : Topic 't' already exists.\n", got.out)
	p.prints("WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.\nCreated topic a.b.\n", "kafka-topics --create --topic a.b --replica-assignment 1")
	p.prints("a.b\nt\n", "kafka-topics --list")
	p.prints("a.b\nt\n", "kafka-topics --list --topic t,a.*")
	p.prints("\n", "kafka-topics --list --topic x")
	p.prints("Topic: t\tTopicId: ID\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=1000\n"+
		"\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"+
		"\tTopic: t\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n", "kafka-topics --describe --topic t")
	p.prints("Topic: t\tTopicId: ID\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=1000\n", "kafka-topics --describe --topics-with-overrides")
	p.prints("", "kafka-topics --describe --under-replicated-partitions")
	p.prints("\tTopic: a.b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n", "kafka-topics --describe --topic a.b --at-min-isr-partitions")
	p.prints("", "kafka-topics --alter --topic t --partitions 3")
	got = p.run("", "kafka-topics --describe --topic x")
	assert.Equal(t, 1, got.code)
	assert.Equal(t, "Topic 'x' does not exist as expected\n", got.err)

	p.prints("Completed updating config for topic t.\n", "kafka-configs --alter --entity-type topics --entity-name t --add-config cleanup.policy=[delete,compact]")
	p.prints("Dynamic configs for topic t are:\n"+
		"  cleanup.policy=delete,compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=delete,compact, DEFAULT_CONFIG:log.cleanup.policy=delete}\n"+
		"  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}\n", "kafka-configs --describe --topic t")
	p.prints("Completed updating config for topic t.\n", "kafka-configs --alter --topic t --delete-config cleanup.policy,retention.ms")
	p.prints("Dynamic configs for topic t are:\n", "kafka-configs --describe --topic t")
	p.prints("The topic 'x' doesn't exist and doesn't have dynamic config.\n", "kafka-configs --describe --topic x")
	p.prints("Completed updating default config for brokers in the cluster.\n", "kafka-configs --alter --broker-defaults --add-config message.max.bytes=2000000")
	p.prints("Default configs for brokers in the cluster are:\n  message.max.bytes=2000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=2000000}\n", "kafka-configs --describe --broker-defaults")
	assert.Contains(t, p.run("", "kafka-configs --describe --all --broker 1").out, "All configs for broker 1 are:\n  ")
	got = p.run("", "kafka-configs --alter --topic t --add-config no.such=1")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "no.such")

	p.prints("", "kafka-topics --delete --topic t,a.b")
	p.prints("\n", "kafka-topics --list --exclude-internal")
	p.prints("", "kafka-topics --delete --topic t --if-exists")
}

func TestMessagesAndGroups(t *testing.T) {
	p, b := start(t)
	p.prints("Created topic t.\n", "kafka-topics --create --topic t --partitions 1")
	p.prints("Created topic u.\n", "kafka-topics --create --topic u --partitions 12")
	got := p.run("h:1\tk\tone\nh:2\tk\ttwo\n", "kafka-console-producer --topic t --reader-property parse.key=true --reader-property parse.headers=true")
	assert.Equal(t, outcome{0, "", ""}, got)
	got = p.run("three\nfour\n", "kafka-console-producer --topic t --sync --timeout 0")
	assert.Equal(t, outcome{0, "", ""}, got)
	got = p.run("good\nno key\n", "kafka-console-producer --topic u --property parse.key=true --property key.separator=x")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "No key separator found on line number 1: 'good'")

	got = p.run("", "kafka-console-consumer --topic t --partition 0 --offset 1 --max-messages 2 --formatter-property print.key=true --formatter-property print.headers=true")
	assert.Equal(t, outcome{0, "h:2\tk\ttwo\nNO_HEADERS\tnull\tthree\n", "Processed a total of 2 messages\n"}, got)
	got = p.run("", "kafka-console-consumer --include t|x --from-beginning --max-messages 4 --enable-systest-events")
	assert.Equal(t, outcome{0, "one\ntwo\nthree\nfour\nshutdown_complete\n", "Processed a total of 4 messages\n"}, got)
	got = p.run("", "kafka-console-consumer --topic t --group g --from-beginning --max-messages 3")
	assert.Equal(t, "one\ntwo\nthree\n", got.out)
	got = p.run("", "kafka-console-consumer --topic t --timeout-ms 300")
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.err, "Processed a total of 0 messages")

	p.prints("t:0:4\n", "kafka-get-offsets --topic t")
	p.prints("t:0:0\n", "kafka-get-offsets --topic t --time -2")
	p.prints("u:0:0\nu:1:0\nu:10:0\nu:11:0\nu:2:0\n", "kafka-get-offsets --topic-partitions u:-3,u:10-")
	p.prints("", "kafka-get-offsets --topic t --time 99999999999999")
	got = p.run("", "kafka-get-offsets --topic x")
	assert.Equal(t, outcome{1, "", "Error occurred: Could not match any topic-partitions with the specified filters\n"}, got)

	const header = "\nGROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID"
	row := func(at, lag string) string {
		return "\ng               t               0          " + at + "               4               " + lag + "               -               -               -\n"
	}
	p.prints(header+row("3", "1"), "kafka-consumer-groups --describe --group g")
	p.prints("g\n", "kafka-consumer-groups --list")
	p.prints("GROUP                     STATE               \ng                         Empty               \n", "kafka-consumer-groups --list --state empty,stable")
	p.prints("GROUP                     STATE               \n", "kafka-consumer-groups --list --state stable")
	p.prints("\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     \n", "kafka-consumer-groups --describe --group g --members")
	state := p.run("", "kafka-consumer-groups --describe --group g --state")
	assert.Regexp(t, `^\nGROUP +COORDINATOR \(ID\) +ASSIGNMENT-STRATEGY  STATE                #MEMBERS\ng +127\.0\.0\.1:\d+  \(1\) +- +Empty +0\n$`, state.out)

	plan := func(at string) string {
		return "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\ng               t               0          " + at + "\n"
	}
	p.prints(plan("0"), "kafka-consumer-groups --reset-offsets --group g --all-topics --to-earliest")
	p.prints(header+row("3", "1"), "kafka-consumer-groups --describe --group g")
	p.prints(plan("1"), "kafka-consumer-groups --reset-offsets --group g --topic t:0 --shift-by -2 --execute")
	p.prints(header+row("1", "3"), "kafka-consumer-groups --describe --all-groups")
	p.prints(plan("4"), "kafka-consumer-groups --reset-offsets --group g --topic t --to-offset 99 --execute")
	p.prints("t,0,4\n\n", "kafka-consumer-groups --reset-offsets --group g --topic t --to-current --export --dry-run")
	p.prints("\nWarn: Partition 0 from topic t is empty. Falling back to latest known offset.\n"+plan("4"), "kafka-consumer-groups --reset-offsets --group g --topic t --to-datetime 2100-01-01T00:00:00.000 --dry-run")
	p.prints(plan("0"), "kafka-consumer-groups --reset-offsets --group g --topic t --by-duration P1D --execute")
	file := filepath.Join(t.TempDir(), "plan")
	require.NoError(t, os.WriteFile(file, []byte("t,0,2\n"), 0o600))
	p.prints(plan("2"), "kafka-consumer-groups --reset-offsets --group g --from-file "+file+" --execute")
	p.prints("\nError: Executing consumer group command failed due to The partitions \"t-7\" do not exist\n", "kafka-consumer-groups --reset-offsets --group g --topic t:7 --to-latest --execute")
	p.prints("Request succeeded for deleting offsets from group g.\n\nTOPIC           PARTITION  STATUS         \nt               0          Successful     \n", "kafka-consumer-groups --delete-offsets --group g --topic t")
	assert.Contains(t, p.run("", "kafka-consumer-groups --delete --group x").out, "* Group 'x' could not be deleted due to: org.apache.kafka.common.errors.GroupIdNotFoundException: ")
	p.prints("The regular expression `a+` is valid.\n", "kafka-consumer-groups --validate-regex a+")
	p.prints("The regular expression `[` is invalid: missing closing ].\n", "kafka-consumer-groups --validate-regex [")

	b.Stop()
	testDump(t, filepath.Join(b.Dir(), "t-0", strings.Repeat("0", 20)))
	offsets := ""
	for _, dir := range globbed(t, filepath.Join(b.Dir(), "__consumer_offsets-*", "*.log")) {
		offsets += run(t, "", "kafka-dump-log --offsets-decoder --files "+dir).out
	}
	assert.Regexp(t, `key: \{"type":"1","data":\{"group":"g","topic":"t","partition":0\}\} payload: \{"version":"3","data":\{"offset":3,"leaderEpoch":0,"metadata":"","commitTimestamp":\d+\}\}`, offsets)
	assert.Contains(t, offsets, `key: {"type":"1","data":{"group":"g","topic":"t","partition":0}} payload: <DELETE>`)
	assert.Regexp(t, `"protocolType":"consumer","generation":1,"protocol":"range".*"subscription":\{"topics":\["t"\].*"assignment":\{"assignedPartitions":\[\{"topic":"t","partitions":\[0\]\}\],"userData":null\}`, offsets)
}

func globbed(t *testing.T, pattern string) []string {
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

// testDump reads the segment with the four messages, and finds damage in it.
func testDump(t *testing.T, segment string) {
	got := run(t, "", "kafka-dump-log --print-data-log --files "+segment+".log")
	assert.Zero(t, got.code, got.err)
	// Two messages that are sent together share a batch, unless the topic became known between them.
	batch := func(base, last string) string {
		return `baseOffset: ` + base + ` lastOffset: ` + last + ` count: [12] baseSequence: ` + base + ` lastSequence: ` + last + ` producerId: \d+ producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong\.empty position: \d+ CreateTime: \d+ size: \d+ magic: 2 compresscodec: none crc: \d+ isvalid: true\n`
	}
	assert.Regexp(t, `^Dumping \S+\.log\nLog starting offset: 0\n`+batch("0", "[01]")+
		`\| offset: 0 CreateTime: \d+ keySize: 1 valueSize: 3 sequence: 0 headerKeys: \[h\] key: k payload: one\n(`+batch("1", "1")+`)?\| offset: 1 `, got.out)
	got = run(t, "", "kafka-dump-log --skip-record-metadata --print-data-log --files "+segment+".log")
	assert.Contains(t, got.out, "\n| key: k payload: one\n")
	assert.Contains(t, got.out, "\n| payload: four\n")
	got = run(t, "", "kafka-dump-log --files "+segment+".index,"+segment+".timeindex")
	assert.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, ".index is empty.\n")
	assert.Regexp(t, `timestamp: \d+ offset: [0-3]\n`, got.out)
	assert.Empty(t, got.err)
	got = run(t, "", "kafka-dump-log --files "+globbed(t, filepath.Join(filepath.Dir(segment), "*.snapshot"))[0])
	assert.Regexp(t, `\nproducerId: \d+ producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong\.empty lastTimestamp: \d+ firstSequence: \d+ lastSequence: \d+ lastOffset: \d+ offsetDelta: \d+ timestamp: \d+\n`, got.out)

	testDumpPreallocated(t, segment)

	b, err := os.ReadFile(segment + ".log")
	require.NoError(t, err)
	b[70] ^= 1
	broken := filepath.Join(t.TempDir(), filepath.Base(segment)+".log")
	require.NoError(t, os.WriteFile(broken, append(b, 1, 2, 3), 0o600))
	got = run(t, "", "kafka-dump-log --files "+broken)
	assert.Zero(t, got.code)
	assert.Regexp(t, `isvalid: false\nbaseOffset: [12] `, got.out)
	assert.Contains(t, got.out, "Found 3 invalid bytes at the end of 00000000000000000000.log\n")
	got = run(t, "", "kafka-dump-log --files /no/such/00000000000000000000.log")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "no such file")
}

// testDumpPreallocated reads indexes that end with zeros, as those of a running Kafka do, and holds what Kafka's tool says of them.
func testDumpPreallocated(t *testing.T, segment string) {
	dir := t.TempDir()
	name := filepath.Join(dir, filepath.Base(segment))
	b, err := os.ReadFile(segment + ".log")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name+".log", b, 0o600))
	require.NoError(t, os.WriteFile(name+".index", make([]byte, 80), 0o600))
	require.NoError(t, os.WriteFile(name+".timeindex", make([]byte, 120), 0o600))
	files := " --files " + name + ".index," + name + ".timeindex"
	got := run(t, "", "kafka-dump-log"+files)
	assert.Equal(t, "Dumping "+name+".index\noffset: 0 position: 0\nDumping "+name+".timeindex\ntimestamp: 0 offset: 0\n", got.out)
	got = run(t, "", "kafka-dump-log --index-sanity-check"+files)
	assert.Zero(t, got.code, got.err)
	assert.Equal(t, 2, strings.Count(got.out, " passed sanity check.\n"), got.out)

	b, err = os.ReadFile(segment + ".timeindex")
	require.NoError(t, err)
	require.NotEmpty(t, b)
	require.NoError(t, os.WriteFile(name+".timeindex", append(b, make([]byte, 120)...), 0o600))
	got = run(t, "", "kafka-dump-log --index-sanity-check --files "+name+".timeindex")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.err, "has non-zero size but the last timestamp is 0 which is less than the first timestamp ")
}

func TestNobodyAnswers(t *testing.T) {
	p := played{t, "127.0.0.1:1"}
	got := p.run("", "kafka-consumer-groups --list --timeout 200")
	assert.Equal(t, 0, got.code, "as with Kafka")
	assert.Contains(t, got.out, "\nError: Executing consumer group command failed due to no broker answered at 127.0.0.1:1 within 200ms")
	assert.Contains(t, got.err, "WARN: connection to 127.0.0.1:1 could not be established")
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("default.api.timeout.ms=100\nunknown=1\n"), 0o600))
	got = p.run("", "kafka-topics --list --command-config "+file)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, "Error while executing topic command : no broker answered")
	assert.Contains(t, got.err, "mean nothing here: unknown")
}
