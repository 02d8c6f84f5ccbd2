package api

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// told is a Control that hands requests to the rooms of a house.
type told struct{ h *house }

func (c told) UpdateMetadata(req *kmsg.UpdateMetadataRequest) *kmsg.UpdateMetadataResponse {
	return c.h.cache.Update(req)
}

func (c told) LeaderAndISR(req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	return c.h.parts.ApplyLeaderAndISR(req)
}

func (c told) StopReplica(req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	return c.h.parts.StopReplicas(req)
}

// controlHouse is a house that a controller can speak to, through the listener of that name.
func controlHouse(t testing.TB, interBroker string, change func(*Deps)) *house {
	var h *house
	control := new(told)
	h = newHouse(t, func(d *Deps) {
		d.Control, d.InterBroker = control, interBroker
		d.Markers = &txn.Receiver{BrokerID: self, Partitions: d.Partitions, Now: time.Now}
		if change != nil {
			change(d)
		}
	})
	control.h = h
	return h
}

// TestControlRequests takes every version of what a controller says.
func TestControlRequests(t *testing.T) {
	h := controlHouse(t, "PLAINTEXT", nil)
	c := connect(t, h.server)
	for v := range int16(9) {
		req := kmsg.NewPtrUpdateMetadataRequest()
		req.ControllerID, req.BrokerEpoch = other, -1
		p := kmsg.NewUpdateMetadataRequestTopicPartition()
		p.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = "t", 0, self, int32(v), []int32{self}, []int32{self}
		if v < 5 {
			req.PartitionStates = append(req.PartitionStates, p)
		} else {
			req.TopicStates = append(req.TopicStates, kmsg.UpdateMetadataRequestTopicState{Topic: "t", PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{p}})
		}
		require.Zero(t, call[*kmsg.UpdateMetadataResponse](c, v, req).ErrorCode, "version %d", v)
		known, ok := h.cache.Snapshot().Topic("t")
		require.True(t, ok)
		require.Equal(t, int32(v), known.Partitions[0].LeaderEpoch)
	}
	for v := range int16(8) {
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.ControllerID, req.BrokerEpoch = other, -1
		p := kmsg.NewLeaderAndISRRequestTopicPartition()
		p.Topic, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR, p.IsNew = "t", self, int32(v), []int32{self}, []int32{self}, true
		if v < 2 {
			req.PartitionStates = append(req.PartitionStates, p)
		} else {
			s := kmsg.LeaderAndISRRequestTopicState{Topic: "t", PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{p}}
			if v >= 5 {
				s.TopicID = topicID("t")
			}
			req.TopicStates = append(req.TopicStates, s)
		}
		resp := call[*kmsg.LeaderAndISRResponse](c, v, req)
		require.Zero(t, resp.ErrorCode, "version %d", v)
		if v < 5 {
			require.Zero(t, resp.Partitions[0].ErrorCode)
		} else {
			require.Equal(t, topicID("t"), resp.Topics[0].TopicID)
			require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
		}
		_, epoch := h.partition("t", 0).Leader()
		require.Equal(t, int32(v), epoch)
	}
	markers := kmsg.NewPtrWriteTxnMarkersRequest()
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID = 5
	marker.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "t", Partitions: []int32{0, 7}}}
	markers.Markers = append(markers.Markers, marker)
	for v := range int16(2) {
		parts := call[*kmsg.WriteTxnMarkersResponse](c, v, markers).Markers[0].Topics[0].Partitions
		require.Zero(t, parts[0].ErrorCode)
		require.Equal(t, kerr.UnknownTopicOrPartition.Code, parts[1].ErrorCode)
	}
	require.Equal(t, int64(2), h.end("t", 0))
	for v := range int16(5) {
		req := kmsg.NewPtrStopReplicaRequest()
		req.ControllerID, req.BrokerEpoch = other, -1
		topic := kmsg.NewStopReplicaRequestTopic()
		topic.Topic, topic.Partition, topic.Partitions = "t", 0, []int32{0}
		topic.PartitionStates = []kmsg.StopReplicaRequestTopicPartitionState{{Partition: 0, LeaderEpoch: 7}}
		req.Topics = append(req.Topics, topic)
		resp := call[*kmsg.StopReplicaResponse](c, v, req)
		require.Zero(t, resp.ErrorCode, "version %d", v)
		require.Len(t, resp.Partitions, 1)
		require.Zero(t, resp.Partitions[0].ErrorCode)
		_, err := h.parts.Get(partition.ID{Topic: "t"})
		require.ErrorIs(t, err, partition.ErrUnknownPartition)
	}
}

// TestControlRequestsOfOldControllers refuses who has a successor.
func TestControlRequestsOfOldControllers(t *testing.T) {
	h := controlHouse(t, "PLAINTEXT", nil)
	c := connect(t, h.server)
	for _, epoch := range []int32{5, 4} {
		var want int16
		if epoch < 5 {
			want = kerr.StaleControllerEpoch.Code
		}
		update := kmsg.NewPtrUpdateMetadataRequest()
		update.ControllerEpoch, update.BrokerEpoch = epoch, -1
		require.Equal(t, want, call[*kmsg.UpdateMetadataResponse](c, 8, update).ErrorCode)
		leader := kmsg.NewPtrLeaderAndISRRequest()
		leader.ControllerEpoch, leader.BrokerEpoch = epoch, -1
		require.Equal(t, want, call[*kmsg.LeaderAndISRResponse](c, 7, leader).ErrorCode)
		stop := kmsg.NewPtrStopReplicaRequest()
		stop.ControllerEpoch, stop.BrokerEpoch = epoch, -1
		require.Equal(t, want, call[*kmsg.StopReplicaResponse](c, 4, stop).ErrorCode)
	}
}

// between lists what only brokers send.
func between() []kmsg.Key {
	return []kmsg.Key{kmsg.LeaderAndISR, kmsg.StopReplica, kmsg.UpdateMetadata, kmsg.ControlledShutdown, kmsg.WriteTxnMarkers, kmsg.AlterPartition, kmsg.AllocateProducerIDs}
}

// TestOnlyBetweenBrokers closes the connection of who sends what only brokers send, through a listener of clients. All
// listeners say that it is served, as Kafka's do.
func TestOnlyBetweenBrokers(t *testing.T) {
	h := controlHouse(t, "INTERNAL", nil)
	for _, key := range between() {
		c := connect(t, h.server)
		found := false
		for _, k := range call[*kmsg.ApiVersionsResponse](c, 3, named()).ApiKeys {
			found = found || k.ApiKey == key.Int16()
		}
		require.True(t, found, key.Name())
		req := kmsg.RequestForKey(key.Int16())
		req.SetVersion(Handlers(everything()).rows[key].max)
		c.send(req)
		c.expectClosed()
	}
	_, known := h.cache.Snapshot().Controller()
	require.Zero(t, known)
}

// TestOnlyBrokersReplicate closes the connection of a client that says that it is a replica.
func TestOnlyBrokersReplicate(t *testing.T) {
	for listener, fine := range map[string]bool{"PLAINTEXT": true, "INTERNAL": false} {
		h := controlHouse(t, listener, nil)
		h.topic("t", 1)
		fetch, offsets := fetchOf("t", from(0, 0)), kmsg.NewPtrListOffsetsRequest()
		fetch.SetVersion(12)
		fetch.ReplicaID = other
		offsets.SetVersion(5)
		offsets.ReplicaID = other
		for _, req := range []kmsg.Request{fetch, offsets} {
			c := connect(t, h.server)
			if corr := c.send(req); fine {
				c.receive(corr, req)
			} else {
				c.expectClosed()
			}
		}
	}
}

// TestClientsWait holds clients until the broker is ready, and nobody else.
func TestClientsWait(t *testing.T) {
	ready := make(chan struct{})
	h := controlHouse(t, "PLAINTEXT", func(d *Deps) { d.Ready = ready })
	waiting, gone := connect(t, h.server), connect(t, h.server)
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(12)
	corr := waiting.send(req)
	gone.send(req)
	gone.Close()
	brokers := connect(t, h.server)
	call[*kmsg.ApiVersionsResponse](brokers, 0, kmsg.NewPtrApiVersionsRequest())
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.BrokerEpoch, update.ControllerID = -1, other
	require.Zero(t, call[*kmsg.UpdateMetadataResponse](brokers, 8, update).ErrorCode)
	require.Eventually(t, func() bool { return h.server.Connections() == 2 }, time.Minute, time.Millisecond, "who is gone isn't waited for")
	close(ready)
	require.Equal(t, other, waiting.receive(corr, req).(*kmsg.MetadataResponse).ControllerID, "what is known when it is answered")
}

// TestToController asks the controller what only brokers ask it.
func TestToController(t *testing.T) {
	a := newAdmin(t, nil, func(d *Deps) { d.InterBroker = "PLAINTEXT" })
	c := connect(t, a.server)
	epoch := func() int64 {
		alive, err := a.member.Membership().Brokers(context.Background())
		require.NoError(t, err)
		return alive[0].Epoch
	}()
	create(c, 7, createOf("t", 1, 1))

	ids := kmsg.NewPtrAllocateProducerIDsRequest()
	ids.BrokerID, ids.BrokerEpoch = 1, epoch
	first := call[*kmsg.AllocateProducerIDsResponse](c, 0, ids)
	second := call[*kmsg.AllocateProducerIDsResponse](c, 0, ids)
	require.Zero(t, first.ErrorCode)
	require.Positive(t, first.ProducerIDLen)
	require.Equal(t, first.ProducerIDStart+int64(first.ProducerIDLen), second.ProducerIDStart)
	ids.BrokerEpoch++
	require.Equal(t, kerr.StaleBrokerEpoch.Code, call[*kmsg.AllocateProducerIDsResponse](c, 0, ids).ErrorCode)
	ids.BrokerID = 5
	require.Equal(t, kerr.BrokerIDNotRegistered.Code, call[*kmsg.AllocateProducerIDsResponse](c, 0, ids).ErrorCode)

	id := describeTopics(c, 12, "t").Topics[0].TopicID
	for v := range int16(4) {
		alter := kmsg.NewPtrAlterPartitionRequest()
		alter.BrokerID, alter.BrokerEpoch = 1, epoch
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.NewISR = []int32{1}
		p.NewEpochISR = []kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{{BrokerID: 1, BrokerEpoch: -1}}
		alter.Topics = []kmsg.AlterPartitionRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.AlterPartitionRequestTopicPartition{p}}}
		resp := call[*kmsg.AlterPartitionResponse](c, v, alter)
		require.Zero(t, resp.ErrorCode, "version %d", v)
		require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode, "version %d", v)
		require.Equal(t, []int32{1}, resp.Topics[0].Partitions[0].ISR)
		alter.BrokerEpoch++
		require.Equal(t, kerr.StaleBrokerEpoch.Code, call[*kmsg.AlterPartitionResponse](c, v, alter).ErrorCode)
	}

	for v := int16(1); v < 4; v++ { // version 0 has a header without a client id: see the broker's tests
		stop := kmsg.NewPtrControlledShutdownRequest()
		stop.BrokerID, stop.BrokerEpoch = 1, epoch
		resp := call[*kmsg.ControlledShutdownResponse](c, v, stop)
		require.Zero(t, resp.ErrorCode, "version %d", v)
		require.Empty(t, resp.PartitionsRemaining, "nobody else has a replica")
		stop.BrokerID = 5
		require.Equal(t, kerr.BrokerNotAvailable.Code, call[*kmsg.ControlledShutdownResponse](c, v, stop).ErrorCode)
	}

	require.NoError(t, a.deps.Cluster.Controller.Stop(context.Background()))
	ids.BrokerID = 1
	require.Equal(t, kerr.NotController.Code, call[*kmsg.AllocateProducerIDsResponse](c, 0, ids).ErrorCode)
	require.Equal(t, kerr.NotController.Code, call[*kmsg.AlterPartitionResponse](c, 3, kmsg.NewPtrAlterPartitionRequest()).ErrorCode)
	require.Equal(t, kerr.NotController.Code, call[*kmsg.ControlledShutdownResponse](c, 3, kmsg.NewPtrControlledShutdownRequest()).ErrorCode)
}

// FuzzControl feeds any bytes to what decodes the requests between brokers, and what decodes to the rooms behind: no byte of
// them may bring the broker down.
func FuzzControl(f *testing.F) {
	for i, key := range between() {
		req := kmsg.RequestForKey(key.Int16())
		f.Add(uint8(i), uint8(0), req.AppendTo(nil))
		req.SetVersion(req.MaxVersion())
		f.Add(uint8(i), uint8(req.MaxVersion()), req.AppendTo(nil))
	}
	h := controlHouse(f, "PLAINTEXT", nil)
	table := Handlers(everything())
	f.Fuzz(func(t *testing.T, which, version uint8, body []byte) {
		key := between()[int(which)%len(between())]
		r := table.rows[key]
		req := kmsg.RequestForKey(key.Int16())
		req.SetVersion(min(int16(version), r.max))
		if req.ReadFrom(body) != nil {
			return
		}
		switch req := req.(type) {
		case *kmsg.UpdateMetadataRequest:
			req.ControllerEpoch = 0
			require.NotNil(t, h.cache.Update(req))
		case *kmsg.LeaderAndISRRequest:
			req.ControllerEpoch = 0
			// Names are for package log to judge, and each new partition costs files.
			for i := range req.TopicStates {
				req.TopicStates[i].Topic = "t"
				for j := range req.TopicStates[i].PartitionStates {
					req.TopicStates[i].PartitionStates[j].Partition %= 4
				}
			}
			for i := range req.PartitionStates {
				req.PartitionStates[i].Topic = "t"
				req.PartitionStates[i].Partition %= 4
			}
			require.NotNil(t, h.parts.ApplyLeaderAndISR(req))
		case *kmsg.StopReplicaRequest:
			req.ControllerEpoch = 0
			require.NotNil(t, h.parts.StopReplicas(req))
		}
	})
}

// named is an ApiVersions request of a client that says its name.
func named() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1"
	return req
}
