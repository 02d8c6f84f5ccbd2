package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/log/producers"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Partitions finds the replicas of this broker; partition.Manager does.
type Partitions interface {
	Get(partition.ID) (*partition.Partition, error)
}

// Groups ends transactions in the partitions that keep the offsets of groups; group.Manager does.
type Groups interface {
	// TransactionTopic is the topic that stands for groups in transactions.
	TransactionTopic() string
	// EndTransaction writes the marker of a producer's transaction into a shard, whose groups then count the offsets that
	// were committed in it, or forget them.
	EndTransaction(ctx context.Context, shard int32, p Producer, commit bool, coordinatorEpoch int32) error
}

// Receiver writes the markers of ended transactions into the partitions that this broker leads. Any goroutine may use it.
type Receiver struct {
	BrokerID   int32
	Partitions Partitions
	Groups     Groups
	Guards     *Guards // those of the Manager of this broker; nil when it asks nobody
	Now        func() time.Time
}

var _ Markers = (*Receiver)(nil)

// WriteTxnMarkers makes the receiver the Markers of a broker that has nobody but itself to ask.
func (r *Receiver) WriteTxnMarkers(ctx context.Context, broker int32, req *kmsg.WriteTxnMarkersRequest) (*kmsg.WriteTxnMarkersResponse, error) {
	if broker != r.BrokerID {
		return nil, fmt.Errorf("broker %d is not this broker, %d", broker, r.BrokerID)
	}
	return r.Write(ctx, req), nil
}

// Write writes markers, and returns when all are acknowledged by the replicas in sync, or could not be. A marker that is written
// twice does no harm.
func (r *Receiver) Write(ctx context.Context, req *kmsg.WriteTxnMarkersRequest) *kmsg.WriteTxnMarkersResponse {
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	var waits []*wait
	for i := range req.Markers {
		in := &req.Markers[i]
		out := kmsg.NewWriteTxnMarkersResponseMarker()
		out.ProducerID = in.ProducerID
		for _, t := range in.Topics {
			topic := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			topic.Topic = t.Topic
			topic.Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(t.Partitions))
			for j, number := range t.Partitions {
				p := &topic.Partitions[j]
				p.Partition = number
				w, err := r.mark(ctx, in, partition.ID{Topic: t.Topic, Partition: number})
				if w != nil {
					w.code = &p.ErrorCode
					waits = append(waits, w)
				}
				p.ErrorCode = markerCode(err)
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Markers = append(resp.Markers, out)
	}
	for _, w := range waits {
		*w.code = markerCode(w.wait(ctx))
	}
	return resp
}

// wait is a marker that isn't acknowledged yet.
type wait struct {
	code   *int16
	done   chan error
	cancel func() bool
}

func (w *wait) wait(ctx context.Context) error {
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		if w.cancel() {
			return ctx.Err()
		}
		return <-w.done
	}
}

// mark writes one marker. It gives what there is to wait for, nil when it is done.
func (r *Receiver) mark(ctx context.Context, in *kmsg.WriteTxnMarkersRequestMarker, id partition.ID) (*wait, error) {
	who := Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}
	if r.Guards != nil {
		r.Guards.fall(id, who.ID)
	}
	if r.Groups != nil && id.Topic == r.Groups.TransactionTopic() {
		return nil, r.Groups.EndTransaction(ctx, id.Partition, who, in.Committed, in.CoordinatorEpoch)
	}
	p, err := r.Partitions.Get(id)
	if err != nil {
		return nil, err
	}
	b := record.NewBuilder(record.Options{LeaderEpoch: record.NoLeaderEpoch, Transactional: true, Control: true,
		Producer: &record.Producer{ID: who.ID, Epoch: who.Epoch, Sequence: record.NoSequence}})
	marker := record.EndTxnMarker{Commit: in.Committed, CoordinatorEpoch: in.CoordinatorEpoch}
	if err := b.Append(marker.Record(0, r.Now().UnixMilli())); err != nil {
		return nil, err
	}
	batch, err := b.Build(nil, nil)
	if err != nil {
		return nil, err
	}
	a, err := p.Append(partition.Append{Batches: batch, Acks: -1, Coordinator: true})
	if err != nil {
		return nil, err
	}
	w := &wait{done: make(chan error, 1)}
	done, err, cancel := p.Committed(a, -1, func(err error) { w.done <- err })
	if done {
		return nil, err
	}
	w.cancel = cancel
	return w, nil
}

// markerCode is what the coordinator is told: one of those codes that Apache Kafka's coordinator knows what to do with. It
// dies of all others.
func markerCode(err error) int16 {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, producers.ErrEpoch):
		return kerr.InvalidProducerEpoch.Code
	case errors.Is(err, producers.ErrCoordinatorFenced):
		return kerr.TransactionCoordinatorFenced.Code
	case errors.Is(err, partition.ErrUnknownPartition):
		return kerr.UnknownTopicOrPartition.Code
	case errors.Is(err, partition.ErrNotEnoughReplicas):
		return kerr.NotEnoughReplicas.Code
	case errors.Is(err, partition.ErrNotEnoughReplicasAfterAppend):
		return kerr.NotEnoughReplicasAfterAppend.Code
	case errors.Is(err, partition.ErrOffline), errors.Is(err, log.ErrFailed):
		return kerr.KafkaStorageError.Code
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return kerr.RequestTimedOut.Code
	}
	return kerr.NotLeaderForPartition.Code // to be tried again
}
