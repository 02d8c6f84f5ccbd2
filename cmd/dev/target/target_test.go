package target

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenTakesAnAddressAsItIs(t *testing.T) {
	target, err := Opener{}.Open(context.Background(), "broker.example:9092", "")
	require.NoError(t, err)
	require.Equal(t, "broker.example:9092", target.Addr)
	require.False(t, target.Owned())
	require.NoError(t, target.Stop())
	target.Close()

	_, err = Opener{}.Open(context.Background(), "kafak", "")
	require.ErrorContains(t, err, `"kafak": not barnabas, kafka or HOST:PORT`)
}

func TestBarnabasYAML(t *testing.T) {
	require.Equal(t, `broker:
  broker.id: 1
  listeners: PLAINTEXT://127.0.0.1:1
  log.dirs: /data
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 5
storage: sendfile
`, barnabasYAML("127.0.0.1:1", "/data", "sendfile"))
	require.NotContains(t, barnabasYAML("127.0.0.1:1", "/data", ""), "storage", "the default is the broker's affair")
}
