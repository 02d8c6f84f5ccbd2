package api

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// FindCoordinator (key 10): v0-6
//
// Behaviour:
//   - The coordinator of a group is the leader of the partition of `__consumer_offsets` that the group's name hashes to, if
//     it is alive and has the listener that the request came through; else COORDINATOR_NOT_AVAILABLE. With an offsets store
//     that has no topic it is the controller.
//   - The topic is created when it is missing.
//   - The coordinator of a transactional id is the same with `__transaction_state`.
//   - Share groups (type 2, v6) have no coordinator: COORDINATOR_NOT_AVAILABLE. Other types, and type 2 before v6, are
//     INVALID_REQUEST.
//   - Any key is valid, also an empty one.
//
// Versions:
//
//	v1: key type and error message (KIP-98)
//	v2: answered before throttling (KIP-219)
//	v3: flexible
//	v4: several keys at once (KIP-699)
//	v5: TRANSACTION_ABORTABLE may be answered (KIP-890); never here
//	v6: share groups (KIP-932)
func (h *handlers) findCoordinator(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.FindCoordinatorRequest)
	resp := kmsg.NewPtrFindCoordinatorResponse()
	prepare := sync.OnceValue(func() error { return h.prepareCoordinator(ctx, r, req.CoordinatorType) })
	if req.Version < 4 {
		c := h.coordinator(r, req.CoordinatorType, req.CoordinatorKey, prepare)
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = c.ErrorCode, c.NodeID, c.Host, c.Port
		resp.ErrorMessage = c.ErrorMessage
		if c.ErrorMessage == nil {
			resp.ErrorMessage = pointer("NONE") // as Kafka has it
			if err := kerr.TypedErrorForCode(c.ErrorCode); err != nil {
				resp.ErrorMessage = pointer(err.Description)
			}
		}
		return r.Answer(resp)
	}
	for _, key := range req.CoordinatorKeys {
		c := h.coordinator(r, req.CoordinatorType, key, prepare)
		if c.ErrorMessage == nil {
			c.ErrorMessage = pointer("")
		}
		resp.Coordinators = append(resp.Coordinators, c)
	}
	return r.Answer(resp)
}

// The types of coordinators.
const (
	groupCoordinator       int8 = 0
	transactionCoordinator int8 = 1
	shareCoordinator       int8 = 2
)

// prepareCoordinator makes sure that what coordinators keep has a place. It may wait for the controller, once for all keys of a request.
func (h *handlers) prepareCoordinator(ctx context.Context, r *Request, kind int8) error {
	r.Waiting()
	defer r.Resume()
	if kind == transactionCoordinator {
		return h.Transactions.Prepare(ctx)
	}
	return h.Groups.Prepare(ctx)
}

func (h *handlers) coordinator(r *Request, kind int8, key string, prepare func() error) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key = key
	fail := func(e *kerr.Error) kmsg.FindCoordinatorResponseCoordinator {
		c.ErrorCode, c.NodeID, c.Host, c.Port = e.Code, -1, "", -1
		return c
	}
	var node int32
	switch {
	case kind == groupCoordinator:
		var ok bool
		if node, ok = h.groupNode(key, prepare); !ok {
			return fail(kerr.CoordinatorNotAvailable)
		}
	case kind == transactionCoordinator && h.Transactions != nil:
		var ok bool
		if node, ok = h.transactionNode(key, prepare); !ok {
			return fail(kerr.CoordinatorNotAvailable)
		}
	case kind == transactionCoordinator:
		return fail(kerr.CoordinatorNotAvailable)
	case kind == shareCoordinator && r.Version() >= 6:
		return fail(kerr.CoordinatorNotAvailable)
	case kind == shareCoordinator && r.Version() >= 4:
		return fail(kerr.InvalidRequest)
	default:
		c.ErrorMessage = pointer(kerr.InvalidRequest.Description)
		return fail(kerr.InvalidRequest)
	}
	broker, ok := h.Cluster.Metadata.Snapshot().Broker(node)
	if !ok {
		return fail(kerr.CoordinatorNotAvailable)
	}
	host, port, ok := broker.Endpoint(r.Listener())
	if !ok {
		return fail(kerr.CoordinatorNotAvailable)
	}
	c.NodeID, c.Host, c.Port = node, host, port
	return c
}

// groupNode is the broker that coordinates a group.
func (h *handlers) groupNode(group string, prepare func() error) (node int32, ok bool) {
	if err := prepare(); err != nil {
		h.Logger.Debug("no place for groups yet", "err", err)
		return -1, false
	}
	topic := h.Groups.Topic()
	if topic == "" {
		node, _ = h.Cluster.Metadata.Snapshot().Controller()
		return node, node >= 0
	}
	partition, err := h.Groups.ShardOf(group)
	if err != nil {
		return -1, false
	}
	return h.leaderOf(topic, partition)
}

// transactionNode is the broker that coordinates a transactional id.
func (h *handlers) transactionNode(id string, prepare func() error) (node int32, ok bool) {
	if err := prepare(); err != nil {
		h.Logger.Debug("no place for transactions yet", "err", err)
		return -1, false
	}
	partition, err := h.Transactions.ShardOf(id)
	if err != nil {
		return -1, false
	}
	return h.leaderOf(txn.Topic, partition)
}

func (h *handlers) leaderOf(topic string, partition int32) (node int32, ok bool) {
	t, ok := h.Cluster.Metadata.Snapshot().Topic(topic)
	if !ok {
		return -1, false
	}
	p, ok := t.Partition(partition)
	return p.Leader, ok && p.Leader >= 0
}
