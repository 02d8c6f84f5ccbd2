package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestTheReceiveBufferIsTheSystemsUnlessASizeIsChosen(t *testing.T) {
	for size, want := range map[int32]int{kafka.DefaultSocketReceiveBuffer: 0, -1: -1, 32 << 10: 32 << 10, 1 << 20: 1 << 20} {
		require.Equal(t, want, receiveBuffer(&kafka.BrokerConfig{SocketReceiveBufferBytes: size}), size)
	}
	c, err := kafka.Layers{}.BrokerConfig()
	require.NoError(t, err)
	require.Zero(t, receiveBuffer(&c), "the default")
}
