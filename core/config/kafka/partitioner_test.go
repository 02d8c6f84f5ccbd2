package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// TestPartitionerOfATopic says which partitioners and checks a topic may ask for.
func TestPartitionerOfATopic(t *testing.T) {
	some := kafka.Layers{Partitioners: []kafka.Partitioner{{Name: "murmur2", Keyed: true}, {Name: "roundrobin"}}}
	for _, tt := range []struct {
		layers             kafka.Layers
		partitioner, check string // "" isn't set
		fault              string
	}{
		{some, "", "", ""},
		{some, "", "off", ""},
		{some, "murmur2", "", ""},
		{some, "murmur2", "count", ""},
		{some, "murmur2", "reject", ""},
		{some, "roundrobin", "", ""},
		{some, "roundrobin", "count", "nothing to check"},
		{some, "crc32", "", "this broker has no partitioner crc32; it has: murmur2, roundrobin"},
		{some, "", "reject", "reject needs barnabas.partitioner"},
		{some, "murmur2", "warn", "must be one of: off, count, reject"},
		{kafka.Layers{}, "whatever", "count", ""},
		{kafka.Layers{Partitioners: []kafka.Partitioner{}}, "murmur2", "", "no partitioner murmur2"},
	} {
		own := kafka.Values{}
		for name, value := range map[string]string{"barnabas.partitioner": tt.partitioner, "barnabas.partitioner.check": tt.check} {
			if value != "" {
				own[name] = value
			}
		}
		err := tt.layers.CheckTopic(own)
		if tt.fault == "" {
			require.NoError(t, err, "%v", own)
		} else {
			require.ErrorContains(t, err, tt.fault, "%v", own)
			require.ErrorIs(t, err, kafka.ErrInvalidValue)
		}
		// What a topic asked for while the partitioner was there isn't forgotten when it is gone.
		if config, _ := tt.layers.TopicConfig(own); tt.check != "warn" {
			assert.Equal(t, tt.partitioner, config.Partitioner)
		}
	}
}

// TestPartitionerIsShownWhereItIsSet keeps DescribeConfigs as Kafka's for all other topics.
func TestPartitionerIsShownWhereItIsSet(t *testing.T) {
	for _, e := range (kafka.Layers{}).DescribeTopic(nil) {
		require.NotContains(t, e.Name, "barnabas")
	}
	entry, found := find((kafka.Layers{}).DescribeTopic(kafka.Values{"barnabas.partitioner": "crc32"}), "barnabas.partitioner")
	require.True(t, found)
	require.Equal(t, "crc32", *entry.Value)
	require.Equal(t, kafka.FromTopic, entry.Source)
	require.Equal(t, kafka.String, entry.Type)
}
