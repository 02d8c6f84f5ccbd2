package replication

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// This file has the questions that followers ask seldom: they are encoded by the general codec.

// compare asks the leader where the last epochs of logs end (OffsetForLeaderEpoch), and truncates what isn't the leader's.
func (f *fetcher) compare(c *wire.Client, parts []*follower) error {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version, req.ReplicaID = f.m.o.Versions.OffsetForLeaderEpoch, f.m.o.BrokerID
	at := map[string]int{}
	for _, one := range parts {
		i, ok := at[one.id.Topic]
		if !ok {
			i = len(req.Topics)
			at[one.id.Topic] = i
			req.Topics = append(req.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: one.id.Topic})
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, kmsg.OffsetForLeaderEpochRequestTopicPartition{
			Partition: one.id.Partition, CurrentLeaderEpoch: one.at.LeaderEpoch, LeaderEpoch: one.at.LastEpoch})
	}
	resp, err := f.do(c, req)
	if err != nil {
		return err
	}
	answers := map[partition.ID]kmsg.OffsetForLeaderEpochResponseTopicPartition{}
	for _, t := range resp.(*kmsg.OffsetForLeaderEpochResponse).Topics {
		for _, p := range t.Partitions {
			answers[partition.ID{Topic: t.Topic, Partition: p.Partition}] = p
		}
	}
	for _, one := range parts {
		a, ok := answers[one.id]
		if !ok {
			a.ErrorCode = kerr.UnknownServerError.Code
		}
		log := one.p.Log()
		f.carryOut(one, f.machine.compared(one, a.ErrorCode, a.LeaderEpoch, a.EndOffset, log.EndOffsetForEpoch, log.HighWatermark(), f.m.o.Now()))
	}
	return nil
}

// extent is where a leader's log begins and ends.
type extent struct {
	code       int16
	start, end int64
}

// find asks the leader where the logs of partitions begin and end (ListOffsets), whose followers stand outside, and brings those into it.
func (f *fetcher) find(c *wire.Client, parts []*follower) error {
	extents := make(map[partition.ID]*extent, len(parts))
	for _, one := range parts {
		extents[one.id] = &extent{code: kerr.UnknownServerError.Code}
	}
	for _, timestamp := range []int64{partition.Latest, partition.Earliest} {
		if err := f.list(c, parts, timestamp, extents); err != nil {
			return err
		}
	}
	for _, one := range parts {
		e := extents[one.id]
		f.carryOut(one, f.machine.ranged(one, e.code, e.start, e.end, f.m.o.Now()))
	}
	return nil
}

// list asks for one of the two. After an error of the first, that of the second isn't looked at.
func (f *fetcher) list(c *wire.Client, parts []*follower, timestamp int64, extents map[partition.ID]*extent) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = f.m.o.Versions.ListOffsets, f.m.o.BrokerID
	at := map[string]int{}
	for _, one := range parts {
		i, ok := at[one.id.Topic]
		if !ok {
			i = len(req.Topics)
			at[one.id.Topic] = i
			req.Topics = append(req.Topics, kmsg.ListOffsetsRequestTopic{Topic: one.id.Topic})
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, kmsg.ListOffsetsRequestTopicPartition{
			Partition: one.id.Partition, CurrentLeaderEpoch: one.at.LeaderEpoch, Timestamp: timestamp, MaxNumOffsets: 1})
	}
	resp, err := f.do(c, req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			e := extents[partition.ID{Topic: t.Topic, Partition: p.Partition}]
			switch {
			case e == nil:
			case timestamp == partition.Latest:
				e.end, e.code = p.Offset, p.ErrorCode
			case e.code == 0:
				e.start, e.code = p.Offset, p.ErrorCode
			}
		}
	}
	return nil
}

func (f *fetcher) do(c *wire.Client, req kmsg.Request) (kmsg.Response, error) {
	ctx := f.m.ctx
	if f.m.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.m.o.Timeout)
		defer cancel()
	}
	return c.Do(ctx, req)
}
