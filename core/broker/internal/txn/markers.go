package txn

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// Markers carries WriteTxnMarkers requests to the brokers that lead the partitions.
type Markers interface {
	// WriteTxnMarkers has markers written by a broker. It may wait for the replicas of the partitions, as long as ctx allows.
	// An error says that the broker could not be asked, or did not answer.
	WriteTxnMarkers(ctx context.Context, broker int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error)
}

// markersVersion is that of inter.broker.protocol.version 3.9, which brokers don't negotiate.
const markersVersion = 1

// markersTimeout is how long a broker may take to write markers before it is asked again.
const markersTimeout = 30 * time.Second

// complete has the markers of a transaction written, until all are, and then stores that. It gives up when this broker ceases
// to coordinate the transaction: whoever coordinates it then finds it decided, and goes on.
func (m *Manager) complete(e *entry) {
	ctx := e.shard.ctx
	e.mu.Lock()
	r, commit, ok := e.txn.Ending()
	e.mu.Unlock()
	if !ok {
		return
	}
	left := r.Partitions
	for wait := retryFirst; ; {
		var fenced bool
		if left, fenced = m.mark(ctx, e, r, commit, left); fenced {
			m.log.Warn("another coordinator ends the transaction", "id", e.txn.ID(), "producer", r.ProducerID, "epoch", r.Epoch)
			return
		}
		if len(left) == 0 {
			break
		}
		m.log.Debug("markers aren't written yet", "id", e.txn.ID(), "left", len(left), "in", wait)
		if !pause(ctx, &wait) {
			return
		}
	}
	for wait := retryFirst; ; {
		e.mu.Lock()
		c := e.txn.Complete(m.o.Now())
		e.mu.Unlock()
		if c == nil || ctx.Err() != nil {
			return
		}
		if err := m.store(e, c); err == nil || errors.Is(err, ErrNotCoordinator) {
			return
		}
		if !pause(ctx, &wait) {
			return
		}
	}
}

// mark asks each leader for the markers of its partitions, and gives those that are still to be written. fenced says that a
// newer coordinator or producer was there.
func (m *Manager) mark(ctx context.Context, e *entry, r Record, commit bool, partitions []partition.ID) (left []partition.ID, fenced bool) {
	by := map[int32][]partition.ID{}
	for _, p := range partitions {
		switch leader, exists := m.o.Leader(p); {
		case !exists: // deleted, and its transaction with it
		case leader < 0:
			left = append(left, p)
		default:
			by[leader] = append(by[leader], p)
		}
	}
	for _, leader := range slices.Sorted(maps.Keys(by)) {
		req := markersRequest(r, commit, e.shard.epoch, by[leader])
		codes := m.ask(ctx, leader, req)
		for _, p := range by[leader] {
			code, answered := codes[p]
			switch {
			case !answered:
				left = append(left, p)
			case code == 0, code == kerr.UnsupportedForMessageFormat.Code, code == kerr.UnsupportedVersion.Code:
			case code == kerr.InvalidProducerEpoch.Code, code == kerr.TransactionCoordinatorFenced.Code:
				fenced = true
			default:
				left = append(left, p)
			}
		}
	}
	return left, fenced
}

// markersRequest asks for markers; partitions are sorted.
func markersRequest(r Record, commit bool, coordinatorEpoch int32, partitions []partition.ID) *kmsg.WriteTxnMarkersRequest {
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID, marker.ProducerEpoch, marker.Committed, marker.CoordinatorEpoch = r.ProducerID, r.Epoch, commit, coordinatorEpoch
	for _, p := range partitions {
		n := len(marker.Topics) - 1
		if n < 0 || marker.Topics[n].Topic != p.Topic {
			t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
			t.Topic = p.Topic
			marker.Topics = append(marker.Topics, t)
			n++
		}
		marker.Topics[n].Partitions = append(marker.Topics[n].Partitions, p.Partition)
	}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.SetVersion(markersVersion)
	req.Markers = append(req.Markers, marker)
	return req
}

// ask sends a request and gives the answered codes.
func (m *Manager) ask(ctx context.Context, broker int32, req *kmsg.WriteTxnMarkersRequest) map[partition.ID]int16 {
	ctx, cancel := context.WithTimeout(ctx, markersTimeout)
	defer cancel()
	resp, err := m.o.Markers.WriteTxnMarkers(ctx, broker, req)
	if err != nil {
		m.log.Warn("a broker could not be asked to write transaction markers", "broker", broker, "err", err)
		return nil
	}
	codes := map[partition.ID]int16{}
	for i := range resp.Markers {
		if resp.Markers[i].ProducerID != req.Markers[0].ProducerID {
			continue
		}
		for _, t := range resp.Markers[i].Topics {
			for _, p := range t.Partitions {
				codes[partition.ID{Topic: t.Topic, Partition: p.Partition}] = p.ErrorCode
			}
		}
	}
	return codes
}
