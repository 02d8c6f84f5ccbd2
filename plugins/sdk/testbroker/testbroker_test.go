package testbroker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCodecs has a broker with all that is in the box take each codec; the rest is tested in core/brokertest.
func TestCodecs(t *testing.T) {
	b := testbroker.Start(t)
	admin, err := kadm.NewOptClient(kgo.SeedBrokers(b.Addr()))
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.CreateTopic(t.Context(), 1, 1, map[string]*string{"compression.type": kadm.StringPtr("zstd")}, "t")
	require.NoError(t, err)
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(codec))
		require.NoError(t, err)
		require.NoError(t, client.ProduceSync(t.Context(), kgo.SliceRecord(make([]byte, 1000))).FirstErr())
		client.Close()
	}
}
