package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestParseEnvironment(t *testing.T) {
	got := kafka.ParseEnvironment([]string{
		"KAFKA_NUM_PARTITIONS=3", "PATH=/bin", "KAFKA_HEAP_OPTS=-Xmx1G", "KAFKA_LISTENER_NAME_A__B_SSL___X=1=2", "KAFKA_", "KAFKA", "KAFKA_BROKER_RACK", "kafka_log_dirs=/x",
	})
	assert.Equal(t, []kafka.Property{
		{Name: "broker.rack", Variable: "KAFKA_BROKER_RACK"},
		{Name: "listener.name.a_b.ssl-x", Value: "1=2", Variable: "KAFKA_LISTENER_NAME_A__B_SSL___X"},
		{Name: "num.partitions", Value: "3", Variable: "KAFKA_NUM_PARTITIONS"},
	}, got)
	assert.Empty(t, kafka.ParseEnvironment(nil))
}

func TestImportEnvironment(t *testing.T) {
	file, err := kafka.ParseProperties("s.properties", []byte("num.partitions=2\nlog.dirs=/a\n"))
	require.NoError(t, err)
	got, err := kafka.Import("s.properties", append(file, kafka.ParseEnvironment([]string{"KAFKA_NUM_PARTITIONS=3", "KAFKA_LISTENERS=PLAINTEXT://:1", "KAFKA_PORT=tcp://10.0.0.1:9092"})...))
	require.NoError(t, err)
	assert.Equal(t, []kafka.Imported{
		{kafka.Property{Name: "num.partitions", Value: "2", Line: 1}, kafka.Ignored, "given again in KAFKA_NUM_PARTITIONS, which counts"},
		{kafka.Property{Name: "log.dirs", Value: "/a", Line: 2}, kafka.Mapped, ""},
		{kafka.Property{Name: "listeners", Value: "PLAINTEXT://:1", Variable: "KAFKA_LISTENERS"}, kafka.Mapped, ""},
		{kafka.Property{Name: "num.partitions", Value: "3", Variable: "KAFKA_NUM_PARTITIONS"}, kafka.Mapped, ""},
		{kafka.Property{Name: "port", Value: "tcp://10.0.0.1:9092", Variable: "KAFKA_PORT"}, kafka.Unknown, "not a property of Apache Kafka 3.9"},
	}, got)

	_, err = kafka.ImportOver(kafka.ParseEnvironment([]string{"KAFKA_NUM_PARTITIONS=many", "KAFKA_AUTHORIZER_CLASS_NAME=a.B"}))
	assert.EqualError(t, err, "KAFKA_AUTHORIZER_CLASS_NAME: authorizer.class.name: cannot be kept: Java classes cannot be loaded\n"+
		"KAFKA_NUM_PARTITIONS: num.partitions: Invalid value many for configuration num.partitions: not a number of type INT")
	over, err := kafka.ImportOver(nil)
	require.NoError(t, err)
	assert.Empty(t, over, "nothing is added")
}
