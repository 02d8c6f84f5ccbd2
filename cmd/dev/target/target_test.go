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
	o := Options{Dir: "/dir", Addr: "127.0.0.1:1", Storage: "sendfile", Properties: map[string]string{"offsets.topic.num.partitions": "7"}}
	require.Equal(t, `broker:
  broker.id: 1
  group.initial.rebalance.delay.ms: 0
  listeners: PLAINTEXT://127.0.0.1:1
  log.dirs: /dir/data
  offsets.topic.num.partitions: 7
storage: sendfile
`, o.yaml())
	o.Storage = ""
	require.NotContains(t, o.yaml(), "storage", "the default is the broker's affair")
}
