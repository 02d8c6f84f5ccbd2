package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestConfigShowOfARunningBroker(t *testing.T) {
	file := write(t, "broker:\n  num.partitions: 3\n  log.retention.hours: 24\n  message.max.bytes: 2000000\n")
	at := start(t, elsewhere(t, file))
	client, err := kgo.NewClient(kgo.SeedBrokers(at))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	set := func(name, value string, brokers ...int32) {
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value}
		answers, err := admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{change}, brokers...)
		require.NoError(t, err)
		for _, answer := range answers {
			require.NoError(t, answer.Err)
		}
	}
	brokers, err := admin.ListBrokers(t.Context())
	require.NoError(t, err)
	set("message.max.bytes", "3000000", brokers.NodeIDs()...)
	set("log.cleaner.threads", "2")

	other := write(t, "broker:\n  num.partitions: 4\n  log.retention.hours: 24\n  default.replication.factor: 1\n")
	rows := shownConfig(t, nil, "-c", other, "--bootstrap-server", at)
	for key, want := range map[string]string{
		"broker.message.max.bytes":          "3000000 | dynamic, this broker",
		"broker.log.cleaner.threads":        "2 | dynamic, all brokers",
		"broker.num.partitions":             "3 | static, at the broker; not " + other + ":2",
		"broker.log.retention.hours":        "24 | " + other + ":3",
		"broker.default.replication.factor": "1 | default; not " + other + ":4",
		"broker.log.segment.bytes":          "1073741824 | default",
	} {
		assert.Equal(t, want, rows[key], key)
	}
	assert.NotContains(t, rows, "storage", "a broker doesn't tell that")
	assert.NotContains(t, rows, "broker.num.io.threads", "it has no effect, and nobody set it")

	given := shownConfig(t, nil, "-b", at, "--given")
	assert.NotContains(t, given, "broker.log.segment.bytes")
	assert.Equal(t, "24 | static, at the broker", given["broker.log.retention.hours"])

	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "show", "--broker", "1").code)
	none := barnabas(t, nil, "config", "show", "-b", at, "--broker", "4711", "--timeout", "5s")
	assert.Equal(t, exitFailed, none.code)
	assert.Empty(t, none.out)
}

func TestWhichBroker(t *testing.T) {
	id, err := whichBroker([]int32{1, 2}, 2)
	require.NoError(t, err)
	assert.Equal(t, int32(2), id)
	id, err = whichBroker([]int32{7}, noBroker)
	require.NoError(t, err)
	assert.Equal(t, int32(7), id)
	_, err = whichBroker([]int32{1, 2}, noBroker)
	assert.ErrorContains(t, err, "--broker: which one? There are 1,2")
}

// TestWhatABrokerKeepsToItself: secrets that somebody set are said to be there, and hidden.
func TestWhatABrokerKeepsToItself(t *testing.T) {
	live := []kadm.Config{
		{Key: "ssl.key.password", Sensitive: true, Source: kmsg.ConfigSourceStaticBrokerConfig},
		{Key: "ssl.keystore.password", Sensitive: true, Source: kmsg.ConfigSourceDefaultConfig},
	}
	assert.Equal(t, []setting{{Key: "broker.ssl.key.password", Value: "[hidden]", From: "b.yaml:2", NoEffect: true}},
		merge([]setting{{Key: "broker.ssl.key.password", Value: "[hidden]", From: "b.yaml:2", NoEffect: true}}, live))
}
