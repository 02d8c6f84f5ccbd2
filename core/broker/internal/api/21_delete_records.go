package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// DeleteRecords (key 21): v0-2
//
// Behaviour:
//   - Moves the start of partitions up, so that what is below is not served any more; offset -1 means the high watermark. An
//     offset below the start changes nothing, one above the high watermark is OFFSET_OUT_OF_RANGE.
//   - Answers with the low watermark: the lowest start of all replicas. It waits until they have all followed, or for the
//     request's timeout, and says REQUEST_TIMED_OUT then; the start stays moved.
//   - Topics that are compacted and nothing else refuse by POLICY_VIOLATION, internal ones by INVALID_TOPIC_EXCEPTION.
//   - A partition given twice is answered once; the last offset counts.
//
// Versions: v1: answered before throttling (KIP-219); v2: flexible
func (h *handlers) deleteRecords(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DeleteRecordsRequest)
	calls := h.deleteAll(req)
	waitForReplicas(ctx, r, calls, time.Duration(req.TimeoutMillis)*time.Millisecond)
	resp := kmsg.NewPtrDeleteRecordsResponse()
	byTopic := map[string]int{}
	for i := range calls {
		c := &calls[i]
		at, ok := byTopic[c.id.Topic]
		if !ok {
			at = len(resp.Topics)
			byTopic[c.id.Topic] = at
			t := kmsg.NewDeleteRecordsResponseTopic()
			t.Topic = c.id.Topic
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewDeleteRecordsResponseTopicPartition()
		p.Partition, p.LowWatermark, p.ErrorCode = c.id.Partition, c.low, code(c.err)
		if c.err != nil {
			p.LowWatermark = -1
		}
		resp.Topics[at].Partitions = append(resp.Topics[at].Partitions, p)
	}
	return r.Answer(resp)
}

// deletion is one partition of a DeleteRecords request.
type deletion struct {
	id     partition.ID
	offset int64
	p      *partition.Partition
	low    int64 // the low watermark
	goal   int64 // what it should become
	err    error
}

func (d *deletion) waits() bool { return d.err == nil && d.low < d.goal }

// try moves the start, or looks how far the replicas have followed.
func (d *deletion) try() { d.low, d.err = d.p.DeleteRecords(d.offset) }

func (h *handlers) deleteAll(req *kmsg.DeleteRecordsRequest) []deletion {
	var calls []deletion
	seen := map[partition.ID]int{}
	for i := range req.Topics {
		t := &req.Topics[i]
		for _, q := range t.Partitions {
			d := deletion{id: partition.ID{Topic: t.Topic, Partition: q.Partition}, offset: q.Offset}
			if at, ok := seen[d.id]; ok {
				calls[at] = d
				continue
			}
			seen[d.id] = len(calls)
			calls = append(calls, d)
		}
	}
	for i := range calls {
		d := &calls[i]
		if internalTopic(d.id.Topic) {
			d.err = kerr.InvalidTopicException
			continue
		}
		if d.p, d.err = h.find(d.id.Topic, [16]byte{}, false, d.id.Partition); d.err != nil {
			continue
		}
		if d.try(); d.err == nil {
			d.goal = d.p.Log().StartOffset()
			d.offset = min(max(d.offset, 0), d.goal) // asking again moves nothing
		}
	}
	return calls
}

// waitForReplicas waits until all replicas have moved their starts.
func waitForReplicas(ctx context.Context, r *Request, calls []deletion, timeout time.Duration) {
	open := func() (any bool) {
		for i := range calls {
			any = any || calls[i].waits()
		}
		return any
	}
	if !open() {
		return
	}
	w := partition.NewWatch()
	for i := range calls {
		if calls[i].waits() {
			calls[i].p.Watch(w, true)
			defer calls[i].p.Unwatch(w)
		}
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	r.Waiting()
	defer r.Resume()
	for {
		for i := range calls {
			if calls[i].waits() {
				calls[i].try()
			}
		}
		if !open() {
			return
		}
		select {
		case <-w.C():
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		for i := range calls {
			if calls[i].waits() {
				calls[i].err = kerr.RequestTimedOut
			}
		}
		return
	}
}
