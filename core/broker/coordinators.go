package broker

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// coordinators is what brokers say to one another about transactions: markers that are to be written, and whether partitions
// are part of transactions.
type coordinators struct {
	own   *txn.Receiver
	asker *peers.Asker
}

var (
	_ txn.Markers      = (*coordinators)(nil)
	_ txn.Coordinators = (*coordinators)(nil)
)

// makeCoordinators makes what writes markers here, and what asks others.
func (b *Broker) makeCoordinators(guards *txn.Guards) *coordinators {
	b.asker = peers.NewAsker(b.peers)
	b.onStop("close the connections to other brokers", func(context.Context) error { return b.asker.Close() })
	b.markers = &txn.Receiver{BrokerID: b.id, Partitions: b.partitions, Groups: b.groups, Guards: guards, Now: time.Now}
	return &coordinators{own: b.markers, asker: b.asker}
}

// WriteTxnMarkers asks the broker that leads the partitions.
func (m *coordinators) WriteTxnMarkers(ctx context.Context, broker int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	if broker == m.own.BrokerID {
		return m.own.WriteTxnMarkers(ctx, broker, req)
	}
	resp, err := m.asker.Do(ctx, broker, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.WriteTxnMarkersResponse), nil
}

// AddPartitionsToTxn asks the broker that coordinates a transaction.
func (m *coordinators) AddPartitionsToTxn(ctx context.Context, broker int32, req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
	resp, err := m.asker.Do(ctx, broker, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.AddPartitionsToTxnResponse), nil
}
