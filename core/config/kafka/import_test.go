package kafka_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func utf16Of(text string) []uint16 { return utf16.Encode([]rune(text)) }

func imported(t *testing.T, text string) ([]kafka.Imported, error) {
	t.Helper()
	properties, err := kafka.ParseProperties("s.properties", []byte(text))
	require.NoError(t, err)
	return kafka.Import("s.properties", properties)
}

func TestImport(t *testing.T) {
	const elsewhere = "Kafka's default, which isn't the default here"
	tests := []struct {
		name, text string
		want       []kafka.Imported
	}{
		{"mapped, in canonical form", "log.dirs=/a , /b\nnum.partitions= +3 ", []kafka.Imported{
			{kafka.Property{Name: "log.dirs", Value: "/a , /b", Line: 1}, kafka.Mapped, ""},
			{kafka.Property{Name: "num.partitions", Value: "3", Line: 2}, kafka.Mapped, ""}}},
		{"no effect", "num.io.threads=8", []kafka.Imported{
			{kafka.Property{Name: "num.io.threads", Value: "8", Line: 1}, kafka.Ignored, "work runs in goroutines, which need no pools of threads"}}},
		{"refused, at its default", "remote.log.storage.system.enable=FALSE", []kafka.Imported{
			{kafka.Property{Name: "remote.log.storage.system.enable", Value: "FALSE", Line: 1}, kafka.Ignored, "tiered storage is not supported"}}},
		{"unknown", "log.dris=/a\nqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq=1", []kafka.Imported{
			{kafka.Property{Name: "log.dris", Value: "/a", Line: 1}, kafka.Unknown, `not a property of Apache Kafka 3.9 (did you mean "log.dirs"?)`},
			{kafka.Property{Name: "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", Value: "1", Line: 2}, kafka.Unknown, "not a property of Apache Kafka 3.9"}}},
		{"of a topic", "retention.ms=1", []kafka.Imported{
			{kafka.Property{Name: "retention.ms", Value: "1", Line: 1}, kafka.Unknown, `not a property of Apache Kafka 3.9 (did you mean "log.retention.ms"?)`}}},
		{"of a listener", "listener.name.internal.ssl.key.password=x", []kafka.Imported{
			{kafka.Property{Name: "listener.name.internal.ssl.key.password", Value: "x", Line: 1}, kafka.Ignored, "settings of a single listener are not supported"}}},
		{"twice", "num.partitions=x\nnum.partitions=2", []kafka.Imported{
			{kafka.Property{Name: "num.partitions", Value: "x", Line: 1}, kafka.Ignored, "given again on line 2, which counts"},
			{kafka.Property{Name: "num.partitions", Value: "2", Line: 2}, kafka.Mapped, ""}}},
		{"a provider that nothing asks", "config.providers=env\nconfig.providers.env.class=x\nssl.key.password=${env:P}\nbroker.rack=${a", []kafka.Imported{
			{kafka.Property{Name: "config.providers", Value: "env", Line: 1}, kafka.Ignored, "there are no config providers"},
			{kafka.Property{Name: "config.providers.env.class", Value: "x", Line: 2}, kafka.Ignored, "there are no config providers"},
			{kafka.Property{Name: "ssl.key.password", Value: "${env:P}", Line: 3}, kafka.Ignored, "listeners carry plain connections without TLS"},
			{kafka.Property{Name: "broker.rack", Value: "${a", Line: 4}, kafka.Mapped, ""}}},
		{"no ZooKeeper", "zookeeper.connect= \nzookeeper.set.acl=true", []kafka.Imported{
			{kafka.Property{Name: "zookeeper.connect", Line: 1}, kafka.Ignored, "there is no zookeeper.connect"},
			{kafka.Property{Name: "zookeeper.set.acl", Value: "true", Line: 2}, kafka.Ignored, "there is no zookeeper.connect"}}},
		{"listeners of KRaft", "listeners=PLAINTEXT://:9092,controller://:9093\ncontroller.listener.names=CONTROLLER", []kafka.Imported{
			{kafka.Property{Name: "listeners", Value: "PLAINTEXT://:9092", Line: 1}, kafka.Mapped, "without the listeners of the KRaft controller"},
			{kafka.Property{Name: "controller.listener.names", Value: "CONTROLLER", Line: 2}, kafka.Ignored, "there is no KRaft mode: coordination is chosen under `election`"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := imported(t, tt.text)
			require.NoError(t, err)
			if !strings.Contains(tt.text, "listeners=") {
				tt.want = append(tt.want, kafka.Imported{Property: kafka.Property{Name: "listeners", Value: "PLAINTEXT://:9092"}, Verdict: kafka.Added, Reason: elsewhere})
			}
			if !strings.Contains(tt.text, "log.dirs=") {
				tt.want = append(tt.want, kafka.Imported{Property: kafka.Property{Name: "log.dir", Value: "/tmp/kafka-logs"}, Verdict: kafka.Added, Reason: elsewhere})
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestImportFaults(t *testing.T) {
	_, err := imported(t, "num.partitions=x\nauthorizer.class.name=kafka.security.authorizer.AclAuthorizer\nconfig.providers=env\nbroker.rack=${env:RACK}\nprocess.roles=controller\n")
	assert.EqualError(t, err, `s.properties:1: num.partitions: Invalid value x for configuration num.partitions: not a number of type INT
s.properties:2: authorizer.class.name: cannot be kept: Java classes cannot be loaded
s.properties:4: broker.rack: its value comes from a config provider: write the value itself
s.properties:5: process.roles: a process that is only a controller has no counterpart here`)
}

// TestImportAddsKafkasDefaults holds what is added against Kafka's table: what isn't the same here, and nothing else.
func TestImportAddsKafkasDefaults(t *testing.T) {
	want := map[string]string{}
	for _, row := range lines(t, "testdata/kafka39.tsv") {
		if d, _ := kafka.BrokerDefinition(row[1]); row[0] == "broker" && row[3] != `\N` && row[3] != d.Default {
			want[row[1]] = row[3]
		}
	}
	got, err := imported(t, "")
	require.NoError(t, err)
	added := map[string]string{}
	for _, one := range got {
		assert.Equal(t, kafka.Added, one.Verdict)
		added[one.Name] = one.Value
	}
	assert.Equal(t, want, added)
}

// TestImportGivesEveryPropertyAVerdict imports each property of Kafka at its default.
func TestImportGivesEveryPropertyAVerdict(t *testing.T) {
	for _, d := range kafka.BrokerDefinitions() {
		if d.Null {
			continue
		}
		got, err := kafka.Import("s.properties", []kafka.Property{{Name: d.Name, Value: d.Default, Line: 1}})
		require.NoError(t, err, d.Name)
		want := kafka.Mapped
		if d.NoEffect != "" || strings.HasPrefix(d.Name, "zookeeper.") {
			want = kafka.Ignored
			assert.NotEmpty(t, got[0].Reason, d.Name)
		}
		assert.Equal(t, want, got[0].Verdict, d.Name)
	}
}
