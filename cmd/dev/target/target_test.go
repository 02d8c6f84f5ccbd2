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
