package api

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestConfigs(t *testing.T) {
	a := newAdmin(t, kafka.Values{"log.retention.ms": "1000"}, nil)
	c := connect(t, a.server)
	create(c, 7, createOf("a", 1, 1, "retention.ms", "5", "cleanup.policy", "compact"))
	alter := func(dry bool, kind kmsg.ConfigResourceType, name string, changes ...kmsg.IncrementalAlterConfigsRequestResourceConfig) int16 {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = dry
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name, Configs: changes}}
		return call[*kmsg.IncrementalAlterConfigsResponse](c, 1, req).Resources[0].ErrorCode
	}
	op := func(name string, op kmsg.IncrementalAlterConfigOp, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
		return kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: op, Value: &value}
	}
	// got is a setting's value and source.
	got := func(kind kmsg.ConfigResourceType, name, key string) (string, int8) {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: []string{key}}}
		res := call[*kmsg.DescribeConfigsResponse](c, 4, req).Resources[0]
		require.Zero(t, res.ErrorCode)
		if len(res.Configs) == 0 {
			return "", 0
		}
		return *res.Configs[0].Value, int8(res.Configs[0].Source)
	}
	is := func(kind kmsg.ConfigResourceType, name, key, value string, source int8) {
		t.Helper()
		v, s := got(kind, name, key)
		require.Equal(t, value, v)
		require.Equal(t, source, s)
	}
	const topic, broker = kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker
	set, del, app := kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend

	// A broker that gets a replica reads the topic's configuration. This one gets none, and learns of it by its watch.
	require.Eventually(t, func() bool { v, _ := got(topic, "a", "retention.ms"); return v == "5" }, time.Minute, time.Millisecond)
	require.Zero(t, alter(true, topic, "a", op("retention.ms", set, "6")))
	is(topic, "a", "retention.ms", "5", 1)
	require.Zero(t, alter(false, topic, "a", op("retention.ms", set, "6"), op("cleanup.policy", app, "delete")))
	is(topic, "a", "retention.ms", "6", 1)
	is(topic, "a", "cleanup.policy", "compact,delete", 1)
	require.Equal(t, int64(6), a.deps.Cluster.Configs.TopicConfig("a").RetentionMs, "in force when the answer comes")
	require.Zero(t, alter(false, topic, "a", op("retention.ms", del, "")))
	is(topic, "a", "retention.ms", "1000", 4)
	require.Zero(t, alter(false, broker, "", op("log.retention.ms", set, "2000")))
	is(topic, "a", "retention.ms", "2000", 3)
	require.Zero(t, alter(false, broker, "1", op("log.retention.ms", set, "3000")))
	is(topic, "a", "retention.ms", "3000", 2)
	is(broker, "1", "log.retention.ms", "3000", 2)

	for what, tc := range map[string]struct {
		kind kmsg.ConfigResourceType
		name string
		c    kmsg.IncrementalAlterConfigsRequestResourceConfig
		code int16
	}{
		"unknown topic": {topic, "x", op("retention.ms", set, "1"), 3}, "no topic": {topic, "", op("retention.ms", set, "1"), 42},
		"bad name": {topic, "b d", op("retention.ms", set, "1"), 3}, "bad value": {topic, "a", op("retention.ms", set, "x"), 40},
		"unknown key": {topic, "a", op("no.such", set, "1"), 40}, "unknown operation": {topic, "a", op("retention.ms", 9, "1"), -1},
		"bad value of a broker": {broker, "1", op("log.retention.ms", set, "x"), 42}, "read only": {broker, "1", op("broker.id", set, "7"), 42},
		"another broker": {broker, "2", op("log.retention.ms", set, "1"), 42}, "no number": {broker, "x", op("log.retention.ms", set, "1"), 42},
		"a kind that isn't": {99, "x", op("a", set, "1"), 42}, "a logger": {kmsg.ConfigResourceTypeBrokerLogger, "1", op("x", set, "INFO"), 40},
	} {
		for _, dry := range []bool{true, false} {
			require.Equal(t, tc.code, alter(dry, tc.kind, tc.name, tc.c), what)
		}
	}

	replace := kmsg.NewPtrAlterConfigsRequest()
	value := "9"
	replace.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: topic, ResourceName: "a", Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: &value}}}}
	require.Zero(t, call[*kmsg.AlterConfigsResponse](c, 2, replace).Resources[0].ErrorCode)
	is(topic, "a", "retention.ms", "9", 1)
	is(topic, "a", "cleanup.policy", "delete", 5)
	replace.Resources = append(replace.Resources, replace.Resources[0])
	for _, r := range call[*kmsg.AlterConfigsResponse](c, 2, replace).Resources {
		require.Equal(t, int16(42), r.ErrorCode, "one resource twice")
	}
	kept, err := a.member.Metadata().Configs(t.Context())
	require.NoError(t, err)
	all := map[string]string{}
	for _, k := range kept {
		maps.Copy(all, k.Values)
	}
	require.Equal(t, map[string]string{"retention.ms": "9", "log.retention.ms": "3000"}, all, "kept for a restart")
}
