package api

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeLogDirs (key 35, KIP-113): v0-5
//
// Behaviour:
//   - Lists all log directories, with the replicas in each of the partitions that are named, or of all.
//   - A directory that failed has KAFKA_STORAGE_ERROR, and nothing else.
//   - A topic without partitions asks for nothing.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: flexible
//	v3: error code for all
//	v4: size and free space of the file system (KIP-827)
//	v5: whether a directory takes no new replicas (KIP-1066); here each does
func (h *handlers) describeLogDirs(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeLogDirsRequest)
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	type id struct {
		topic     string
		partition int32
	}
	wanted := map[id]bool{}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			wanted[id{t.Topic, p}] = true
		}
	}
	for _, d := range h.LogDirs.LogDirs() {
		out := kmsg.NewDescribeLogDirsResponseDir()
		out.Dir, out.TotalBytes, out.UsableBytes = d.Path, d.Total, d.Usable
		if d.Err != nil {
			out.ErrorCode, out.TotalBytes, out.UsableBytes = kerr.KafkaStorageError.Code, -1, -1
			resp.Dirs = append(resp.Dirs, out)
			continue
		}
		slices.SortFunc(d.Replicas, func(a, b LogDirReplica) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
		for _, p := range d.Replicas {
			if req.Topics != nil && !wanted[id{p.Topic, p.Partition}] {
				continue
			}
			if last := len(out.Topics) - 1; last < 0 || out.Topics[last].Topic != p.Topic {
				out.Topics = append(out.Topics, kmsg.DescribeLogDirsResponseDirTopic{Topic: p.Topic})
			}
			t := &out.Topics[len(out.Topics)-1]
			t.Partitions = append(t.Partitions, kmsg.DescribeLogDirsResponseDirTopicPartition{
				Partition: p.Partition, Size: p.Size, OffsetLag: p.Lag, IsFuture: p.Future})
		}
		resp.Dirs = append(resp.Dirs, out)
	}
	return r.Answer(resp)
}
