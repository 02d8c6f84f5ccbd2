package broker_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

const checkedPartitions = 6

// checking makes a topic that declares its partitioner.
func checking(t *testing.T, b *brokertest.Broker, topic, partitioner, check string) *kadm.Client {
	admin := kadm.NewClient(client(t, b.Addr()))
	_, err := admin.CreateTopic(t.Context(), checkedPartitions, 1, map[string]*string{"barnabas.partitioner": &partitioner, "barnabas.partitioner.check": &check}, topic)
	require.NoError(t, err)
	return admin
}

// bySarama has sarama's default partitioner produce n keys, and says how many of them the Java client's would put elsewhere.
func bySarama(t *testing.T, addr, topic string, n int) (elsewhere int64) {
	c := sarama.NewConfig()
	c.Producer.Return.Successes = true
	c.Version = sarama.V3_6_0_0
	p, err := sarama.NewSyncProducer([]string{addr}, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	java := sarama.NewMurmur2Partitioner(topic)
	for i := range n {
		m := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("key ", i)), Value: sarama.StringEncoder("v")}
		at, _, err := p.SendMessage(m)
		require.NoError(t, err)
		want, err := java.Partition(m, checkedPartitions)
		require.NoError(t, err)
		if at != want {
			elsewhere++
		}
	}
	_, _, err = p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("without a key, it belongs anywhere")})
	require.NoError(t, err)
	return elsewhere
}

// byKgo has franz-go produce n keys in batches with a codec: as Java does, or as sarama does.
func byKgo(t *testing.T, addr, topic string, hasher kgo.PartitionerHasher, codec kgo.CompressionCodec, n int) error {
	c := client(t, addr, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(hasher)), kgo.ProducerBatchCompression(codec),
		kgo.SoftwareNameAndVersion("franz", "9"))
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Key: fmt.Append(nil, "key ", i)})
	}
	return c.ProduceSync(t.Context(), records...).FirstErr()
}

func asSarama() kgo.PartitionerHasher {
	return kgo.SaramaCompatHasher(func(b []byte) uint32 {
		h := fnv.New32a()
		h.Write(b)
		return h.Sum32()
	})
}

// TestCountsRecordsElsewhere wants the count to be exact, by client software, and nothing refused.
func TestCountsRecordsElsewhere(t *testing.T) {
	b := testbroker.Start(t)
	checking(t, b, "t", "murmur2", "count")
	want := bySarama(t, b.Addr(), "t", 100)
	require.Positive(t, want)
	require.NoError(t, byKgo(t, b.Addr(), "t", nil, kgo.ZstdCompression(), 200))
	require.NoError(t, byKgo(t, b.Addr(), "t", asSarama(), kgo.SnappyCompression(), 100)) // the same keys as sarama's
	got := b.Misplaced()
	require.Len(t, got, 2)
	require.Equal(t, broker.Misplaced{Topic: "t", Software: "franz", Version: "9", Appended: want}, got[0])
	require.Equal(t, "sarama", got[1].Software)
	require.Equal(t, want, got[1].Appended)
}

// TestRejectsRecordsElsewhere wants INVALID_RECORD, with the records named, and nothing of their batch in the log.
func TestRejectsRecordsElsewhere(t *testing.T) {
	b := testbroker.Start(t)
	admin := checking(t, b, "t", "murmur2", "reject")
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression()} {
		require.NoError(t, byKgo(t, b.Addr(), "t", nil, codec, 50), "all are where Java puts them")
		require.ErrorIs(t, byKgo(t, b.Addr(), "t", asSarama(), codec, 50), kerr.InvalidRecord)
	}
	require.NotZero(t, b.Misplaced()[0].Refused)
	require.Zero(t, b.Misplaced()[0].Appended)

	// The answer itself. "key 1" goes to partition at; here it comes second, behind one without a key.
	c := client(t, b.Addr(), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	good := c.ProduceSync(t.Context(), &kgo.Record{Key: []byte("key 1")})
	require.NoError(t, good.FirstErr())
	at := (good[0].Record.Partition + 1) % checkedPartitions
	before, err := admin.ListEndOffsets(t.Context(), "t")
	require.NoError(t, err)
	builder := record.NewBuilder(record.Options{})
	require.NoError(t, builder.Append(record.Record{Value: []byte("anywhere")}))
	require.NoError(t, builder.Append(record.Record{Offset: 1, Key: []byte("key 1")}))
	batch, err := builder.Build(nil, nil)
	require.NoError(t, err)
	req := kmsg.NewProduceRequest()
	req.Acks, req.TimeoutMillis = 1, 10_000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: at, Records: batch}}}}
	resp, err := client(t, b.Addr(), kgo.MaxVersions(kversion.V3_6_0())).Broker(1).Request(t.Context(), &req)
	require.NoError(t, err)
	answer := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Equal(t, kerr.InvalidRecord.Code, answer.ErrorCode)
	require.Contains(t, *answer.ErrorMessage, "record 1 first: the key belongs into another partition")
	require.Len(t, answer.ErrorRecords, 1)
	require.EqualValues(t, 1, answer.ErrorRecords[0].RelativeOffset)
	after, err := admin.ListEndOffsets(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, before, after)

	// Checks end with the topic's configuration, at once.
	off := "off"
	_, err = admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "barnabas.partitioner.check", Value: &off}}, "t")
	require.NoError(t, err)
	require.NoError(t, byKgo(t, b.Addr(), "t", asSarama(), kgo.NoCompression(), 50))
}

// TestChecksSurviveARestart: the first record after it is checked.
func TestChecksSurviveARestart(t *testing.T) {
	b := testbroker.Start(t)
	checking(t, b, "t", "murmur2", "reject")
	b.Restart()
	require.ErrorIs(t, byKgo(t, b.Addr(), "t", asSarama(), kgo.NoCompression(), 50), kerr.InvalidRecord)
}

// TestPartitionersOfTopics says what a topic may declare, to clients.
func TestPartitionersOfTopics(t *testing.T) {
	b := testbroker.Start(t)
	admin := kadm.NewClient(client(t, b.Addr()))
	for value, check := range map[string]string{"murmur": "off", "sticky": "count", "": "reject", "crc32": "maybe"} {
		_, err := admin.CreateTopic(t.Context(), 1, 1, map[string]*string{"barnabas.partitioner": &value, "barnabas.partitioner.check": &check}, "t")
		require.ErrorIs(t, err, kerr.InvalidConfig, value)
	}
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	described, err := admin.DescribeTopicConfigs(t.Context(), "t")
	require.NoError(t, err)
	for _, c := range described[0].Configs {
		require.NotContains(t, c.Key, "barnabas")
	}
}
