package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// This file has what the requests between brokers have in common. They come through the listener that brokers use among
// themselves, and only there: elsewhere they close the connection. Where clients use the same listener, they could send them
// too, as to a broker of Apache Kafka that has no authorizer; a broker that is alone doesn't serve what only a controller sends,
// or takes.

// Control is the part of a broker that its controller speaks to. Its methods are called by several connections at a time, since
// a controller that has a successor may still be speaking. They check the epochs of controller and broker themselves.
type Control interface {
	UpdateMetadata(*kmsg.UpdateMetadataRequest) *kmsg.UpdateMetadataResponse
	LeaderAndISR(*kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse
	StopReplica(*kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse
}

// controlBody is the largest body of a request between brokers. A broker may have a hundred thousand replicas, of which a new
// controller tells it all at once, and other brokers are trusted.
const controlBody = 64 << 20

// addControl adds the requests between brokers to the table.
func (h *handlers) addControl(t *Table) {
	if h.Markers != nil { // Kafka's tools send it, too, to end a transaction that hangs
		t.addBetween(kmsg.WriteTxnMarkers, 0, 1, h.writeTxnMarkers)
	}
	if h.Alone {
		return
	}
	if h.Control != nil {
		t.addBetween(kmsg.LeaderAndISR, 0, 7, h.leaderAndISR)
		t.addBetween(kmsg.StopReplica, 0, 4, h.stopReplica)
		t.addBetween(kmsg.UpdateMetadata, 0, 8, h.updateMetadata)
	}
	if h.Cluster != nil {
		t.addBetween(kmsg.ControlledShutdown, 0, 3, h.controlledShutdown)
		t.addBetween(kmsg.AlterPartition, 0, 3, h.alterPartition)
		t.addBetween(kmsg.AllocateProducerIDs, 0, 0, h.allocateProducerIDs)
	}
}

// addBetween puts a request that only brokers send into the table.
func (t *Table) addBetween(key kmsg.Key, min, max int16, h Handler) {
	t.put(key, &row{min: min, max: max, maxBody: controlBody, between: true, handler: h})
}

// mayPass says whether a request is served now, waiting for that if need be; if not it gives the reply in its place.
func (t *Table) mayPass(ctx context.Context, r *row, w *wire.Request) (Reply, bool) {
	if r.between {
		if listener := w.Conn.Listener(); listener != t.interBroker {
			return wire.Close(fmt.Errorf("%s is for brokers, whose listener is %s, not %s", kmsg.NameForKey(w.Key), t.interBroker, listener)), false
		}
		return Reply{}, true
	}
	if t.ready == nil || w.Key == kmsg.ApiVersions.Int16() {
		return Reply{}, true
	}
	select {
	case <-t.ready:
		return Reply{}, true
	default:
	}
	w.Conn.Waiting()
	defer w.Conn.Resume()
	select {
	case <-t.ready:
		return Reply{}, true
	case <-ctx.Done():
		return wire.Close(ctx.Err()), false
	}
}

// mayReplicate says whether who sends a request may speak for a replica: followers come through the listener of brokers. What a
// follower says moves the high watermark.
func (h *handlers) mayReplicate(r *Request, replica int32) (Reply, bool) {
	if replica < 0 || h.InterBroker == "" || r.Listener() == h.InterBroker {
		return Reply{}, true
	}
	return wire.Close(fmt.Errorf("%s of replica %d: brokers' listener is %s, not %s", kmsg.NameForKey(r.Key()), replica, h.InterBroker, r.Listener())), false
}

// ToController answers what other brokers may ask of the controller, on this broker: AlterPartition and ControlledShutdown.
// NOT_CONTROLLER, as an error, when this broker isn't controller. It may wait for the coordination, as long as ctx allows.
func ToController(ctx context.Context, c *controller.Controller, req kmsg.Request) (kmsg.Response, error) {
	switch req := req.(type) {
	case *kmsg.AlterPartitionRequest:
		resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
		if err := c.Do(ctx, &controller.AlterPartition{Request: req, Response: resp}); err != nil {
			return nil, moved(err)
		}
		return resp, nil
	case *kmsg.ControlledShutdownRequest:
		resp := req.ResponseKind().(*kmsg.ControlledShutdownResponse)
		stop := &controller.ControlledShutdown{Broker: req.BrokerID, Epoch: req.BrokerEpoch}
		if req.Version < 2 {
			stop.Epoch = -1
		}
		if err := c.Do(ctx, stop); err != nil {
			return nil, moved(err)
		}
		resp.ErrorCode = code(stop.Err)
		for _, p := range stop.Remaining {
			out := kmsg.NewControlledShutdownResponsePartitionsRemaining()
			out.Topic, out.Partition = p.Topic, p.Partition
			resp.PartitionsRemaining = append(resp.PartitionsRemaining, out)
		}
		return resp, nil
	}
	return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), kerr.NotController)
}

// moved gives all that ends a controller's term the name that brokers know.
func moved(err error) error {
	if code(err) == kerr.NotController.Code || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", kerr.NotController, err)
}

// toController has the controller, here, answer a request.
func (h *handlers) toController(ctx context.Context, r *Request) (kmsg.Response, error) {
	r.Waiting()
	defer r.Resume()
	return ToController(ctx, h.Cluster.Controller, r.Body)
}
