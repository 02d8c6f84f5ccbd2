package broker

import "github.com/barnabas-mq/barnabas/core/config/kafka"

// receiveBuffer is the size of the sockets' receive buffers in bytes, 0 or less where the system decides: by -1, and by Apache Kafka's
// default. Linux lets a buffer grow with what a client sends, unless its size has been set once, and a large request that comes
// through 100 KiB at a time costs a wake-up for each of them (core/DECISIONS.md, 72).
func receiveBuffer(c *kafka.BrokerConfig) int {
	if c.SocketReceiveBufferBytes == kafka.DefaultSocketReceiveBuffer {
		return 0
	}
	return int(c.SocketReceiveBufferBytes)
}
