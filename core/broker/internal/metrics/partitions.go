package metrics

import (
	"strconv"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// partitionFamilies are about replicas one by one.
type partitionFamilies struct {
	bytesIn, recordsIn, bytesOut, recordsOut                        family
	size, segments, start, end, highWatermark, leader, epoch, leads family
	replicas, inSync, lag, followerLag, behind                      family
}

func newPartitionFamilies() partitionFamilies {
	labels := []string{"topic", "partition"}
	return partitionFamilies{
		bytesIn:       counter("barnabas_partition_bytes_in_total", "Bytes of record batches from producers.", labels...),
		recordsIn:     counter("barnabas_partition_records_in_total", "Records from producers.", labels...),
		bytesOut:      counter("barnabas_partition_bytes_out_total", "Bytes of record batches to consumers.", labels...),
		recordsOut:    counter("barnabas_partition_records_out_total", "Records to consumers, by their offsets.", labels...),
		size:          gauge("barnabas_partition_log_size_bytes", "Bytes of the log segments of the replica here.", labels...),
		segments:      gauge("barnabas_partition_log_segments", "Log segments of the replica here.", labels...),
		start:         gauge("barnabas_partition_log_start_offset", "First offset of the replica here.", labels...),
		end:           gauge("barnabas_partition_log_end_offset", "Offset that the next record gets in the replica here.", labels...),
		highWatermark: gauge("barnabas_partition_high_watermark", "Offset up to which consumers may read.", labels...),
		leader:        gauge("barnabas_partition_leader", "Broker that leads, -1 for none.", labels...),
		epoch:         gauge("barnabas_partition_leader_epoch", "Leader epoch.", labels...),
		leads:         gauge("barnabas_partition_leads", "Whether the replica here leads.", labels...),
		replicas:      gauge("barnabas_partition_replicas", "Replicas of a partition that is led here.", labels...),
		inSync:        gauge("barnabas_partition_in_sync_replicas", "Replicas in sync of a partition that is led here.", labels...),
		lag:           gauge("barnabas_partition_replica_lag_records", "How far the slowest follower of a partition that is led here is behind, in offsets.", labels...),
		followerLag:   gauge("barnabas_partition_follower_lag_records", "How far a follower of a partition that is led here is behind, in offsets, once it has fetched.", "topic", "partition", "follower"),
		behind:        gauge("barnabas_partition_behind_leader_records", "How far the replica here, which follows, is behind its leader, in offsets: what it lacks of what the leader said is committed.", labels...),
	}
}

func (f *partitionFamilies) show(o out, v *view) {
	var lags []partition.FollowerLag
	for i := range v.replicas {
		s, l, t := &v.replicas[i].Status, v.replicas[i].Log(), v.replicas[i].Traffic()
		topic, number := s.ID.Topic, strconv.Itoa(int(s.ID.Partition))
		o.put(f.bytesIn, float64(t.BytesIn), topic, number)
		o.put(f.recordsIn, float64(t.RecordsIn), topic, number)
		o.put(f.bytesOut, float64(t.BytesOut), topic, number)
		o.put(f.recordsOut, float64(t.RecordsOut), topic, number)
		o.put(f.size, float64(l.Size()), topic, number)
		o.put(f.segments, float64(l.SegmentCount()), topic, number)
		o.put(f.start, float64(l.StartOffset()), topic, number)
		o.put(f.end, float64(l.EndOffset()), topic, number)
		o.put(f.highWatermark, float64(l.HighWatermark()), topic, number)
		o.put(f.leader, float64(s.Leader), topic, number)
		o.put(f.epoch, float64(s.LeaderEpoch), topic, number)
		o.is(f.leads, s.Leads, topic, number)
		if !s.Leads {
			o.put(f.behind, float64(s.Behind), topic, number)
			continue
		}
		o.put(f.replicas, float64(s.Replicas), topic, number)
		o.put(f.inSync, float64(s.InSync), topic, number)
		o.put(f.lag, float64(s.Lag), topic, number)
		lags = v.replicas[i].FollowerLags(lags[:0])
		for _, follower := range lags {
			o.put(f.followerLag, float64(follower.Records), topic, number, strconv.Itoa(int(follower.Broker)))
		}
	}
}
