package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestStopReplicaBody holds StopReplica 4 against the bytes that Kafka's StopReplicaRequest.json says.
func TestStopReplicaBody(t *testing.T) {
	req := kmsg.NewPtrStopReplicaRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.IsKRaftController, req.BrokerEpoch = 4, 3, 0x01020304, true, 72
	topic := kmsg.NewStopReplicaRequestTopic()
	topic.Topic = "t"
	topic.PartitionStates = []kmsg.StopReplicaRequestTopicPartitionState{{Partition: 5, LeaderEpoch: -2, Delete: true}}
	req.Topics = append(req.Topics, topic)
	body := []byte{0, 0, 0, 3, 1, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 72, 2, 2, 't', 2, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfe, 1, 0, 0, 0}
	require.Equal(t, append([]byte("before"), body...), AppendBody([]byte("before"), req))

	kept := append([]byte(nil), body...)
	var read kmsg.StopReplicaRequest
	read.Version = 4
	require.NoError(t, ReadBody(&read, body))
	require.Equal(t, kept, body)
	require.Equal(t, *req, read)
	for n := range body {
		read := kmsg.StopReplicaRequest{Version: 4}
		require.Error(t, ReadBody(&read, body[:n]), "%d bytes", n)
	}

	req.Version, req.IsKRaftController = 3, false
	require.Equal(t, req.AppendTo(nil), AppendBody(nil, req), "before version 4 kmsg has it right")
}
