package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
)

// markers has the markers of transactions written, here and by other brokers.
type markers struct {
	own   *txn.Receiver
	asker *peers.Asker
}

var _ txn.Markers = (*markers)(nil)

// makeMarkers makes what writes markers here, and what asks others to.
func (b *Broker) makeMarkers() txn.Markers {
	b.asker = peers.NewAsker(b.peers)
	b.onStop("close the connections to other brokers", func(context.Context) error { return b.asker.Close() })
	b.markers = &txn.Receiver{BrokerID: b.id, Partitions: b.partitions, Groups: b.groups, Now: time.Now}
	return &markers{own: b.markers, asker: b.asker}
}

// WriteTxnMarkers asks the broker that leads the partitions.
func (m *markers) WriteTxnMarkers(ctx context.Context, broker int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	if broker == m.own.BrokerID {
		return m.own.WriteTxnMarkers(ctx, broker, req)
	}
	resp, err := m.asker.Do(ctx, broker, req)
	if err != nil {
		return nil, err
	}
	out, ok := resp.(*kmsg.WriteTxnMarkersResponse)
	if !ok {
		return nil, fmt.Errorf("broker %d answered with %T", broker, resp)
	}
	return out, nil
}
