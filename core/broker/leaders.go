package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metrics"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/record"
)

// leaders asks other brokers about partitions that they lead, as a consumer would, so that it doesn't matter whose they are.
type leaders struct {
	asker       *peers.Asker
	listOffsets int16 // version
}

var _ metrics.Leaders = (*leaders)(nil)

// The timestamps that ListOffsets takes for the ends of a log.
const (
	latestOffset   = -1
	earliestOffset = -2
)

// fetchByName is the last version of Fetch that names topics.
const fetchByName = 12

// Bounds implements metrics.Leaders. Ends are asked for first: starts can't pass them.
func (l *leaders) Bounds(ctx context.Context, broker int32, of []partition.ID) map[partition.ID]metrics.Bounds {
	ends := l.list(ctx, broker, of, latestOffset)
	starts := l.list(ctx, broker, of, earliestOffset)
	all := make(map[partition.ID]metrics.Bounds, len(ends))
	for id, end := range ends {
		if start, ok := starts[id]; ok {
			all[id] = metrics.Bounds{Start: min(start, end), End: end}
		}
	}
	return all
}

// list asks for one end of partitions.
func (l *leaders) list(ctx context.Context, broker int32, of []partition.ID, which int64) map[partition.ID]int64 {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = l.listOffsets
	req.ReplicaID = partition.Consumer
	at := map[string]int{}
	for _, id := range of {
		i, ok := at[id.Topic]
		if !ok {
			i = len(req.Topics)
			at[id.Topic] = i
			req.Topics = append(req.Topics, kmsg.ListOffsetsRequestTopic{Topic: id.Topic})
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = id.Partition, which
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	answer, err := l.asker.Do(ctx, broker, req)
	if err != nil {
		return nil
	}
	found := map[partition.ID]int64{}
	for _, t := range answer.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Offset >= 0 {
				found[partition.ID{Topic: t.Topic, Partition: p.Partition}] = p.Offset
			}
		}
	}
	return found
}

// BatchTime implements metrics.Leaders: it fetches one batch, and looks at its header.
func (l *leaders) BatchTime(ctx context.Context, broker int32, of partition.ID, offset int64) (ms int64, found bool) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchByName
	req.ReplicaID, req.MinBytes, req.MaxBytes = partition.Consumer, 1, 1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = of.Partition, offset, 1
	req.Topics = []kmsg.FetchRequestTopic{{Topic: of.Topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	answer, err := l.asker.Do(ctx, broker, req)
	if err != nil {
		return 0, false
	}
	topics := answer.(*kmsg.FetchResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 || topics[0].Partitions[0].ErrorCode != 0 {
		return 0, false
	}
	h, err := record.ParseHeader(topics[0].Partitions[0].RecordBatches)
	switch {
	case err != nil:
		return 0, false
	case h.Attributes.LogAppendTime(), h.Attributes.DeleteHorizon():
		return h.MaxTimestamp, true
	}
	return h.BaseTimestamp, true
}
