package metrics

import (
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
)

// topicFamilies are about what this broker has of topics.
type topicFamilies struct {
	bytesIn, recordsIn, bytesOut, recordsOut, replicatedIn, replicatedOut family
	appends, appendsFailed, fetches, fetchesFailed                        family

	size, segments, replicas, leaders, underReplicated, underMinISR, atMinISR, offline, lag, behind family

	shrinks, expands, flushes, dirOnline, dirSize, leftOut family
}

func newTopicFamilies() topicFamilies {
	return topicFamilies{
		bytesIn:         counter("barnabas_topic_bytes_in_total", "Bytes of record batches from producers.", "topic"),
		recordsIn:       counter("barnabas_topic_records_in_total", "Records from producers.", "topic"),
		bytesOut:        counter("barnabas_topic_bytes_out_total", "Bytes of record batches to consumers.", "topic"),
		recordsOut:      counter("barnabas_topic_records_out_total", "Records to consumers, by their offsets: of a compacted topic those that are gone count, too.", "topic"),
		replicatedIn:    counter("barnabas_topic_replication_bytes_in_total", "Bytes that followers here fetched from leaders elsewhere.", "topic"),
		replicatedOut:   counter("barnabas_topic_replication_bytes_out_total", "Bytes that followers elsewhere fetched from leaders here.", "topic"),
		appends:         counter("barnabas_topic_produce_batches_total", "Batches that producers sent, those that were refused included.", "topic"),
		appendsFailed:   counter("barnabas_topic_produce_batches_failed_total", "Batches of producers that were refused.", "topic"),
		fetches:         counter("barnabas_topic_fetches_total", "Reads of partitions that were answered, to consumers and followers.", "topic"),
		fetchesFailed:   counter("barnabas_topic_fetches_failed_total", "Reads of partitions that were answered with an error.", "topic"),
		size:            gauge("barnabas_topic_log_size_bytes", "Bytes of the log segments on this broker.", "topic"),
		segments:        gauge("barnabas_topic_log_segments", "Log segments on this broker.", "topic"),
		replicas:        gauge("barnabas_topic_replicas", "Replicas on this broker.", "topic"),
		leaders:         gauge("barnabas_topic_leaders", "Partitions that this broker leads.", "topic"),
		underReplicated: gauge("barnabas_topic_under_replicated_partitions", "Partitions led here with replicas out of sync.", "topic"),
		underMinISR:     gauge("barnabas_topic_under_min_isr_partitions", "Partitions led here with fewer replicas in sync than min.insync.replicas: they refuse acks=all.", "topic"),
		atMinISR:        gauge("barnabas_topic_at_min_isr_partitions", "Partitions led here with just as many replicas in sync as min.insync.replicas.", "topic"),
		offline:         gauge("barnabas_topic_offline_replicas", "Replicas on this broker whose log directory failed.", "topic"),
		lag:             gauge("barnabas_topic_replica_lag_records", "How far the slowest follower of the partitions led here is behind, in offsets.", "topic"),
		behind:          gauge("barnabas_topic_behind_leader_records", "How far the replica here that is furthest behind its leader is, in offsets: what it lacks of what the leader said is committed.", "topic"),
		shrinks:         counter("barnabas_isr_shrinks_total", "In-sync sets that this broker made smaller, as a leader."),
		expands:         counter("barnabas_isr_expands_total", "In-sync sets that this broker made larger, as a leader."),
		flushes:         family{desc: gauge("barnabas_log_flush_duration_seconds", "How long it took to make a log durable (fsync).").desc},
		dirOnline:       gauge("barnabas_log_dir_online", "Whether a log directory works.", "dir"),
		dirSize:         gauge("barnabas_log_dir_size_bytes", "Bytes of the log segments in a log directory.", "dir"),
		leftOut:         gauge("barnabas_metrics_left_out", "Topics, and pairs of a group and a topic, that are not shown because there are too many.", "what"),
	}
}

// maxTopics bounds how many topics are shown. It is more than a broker has that is well.
const maxTopics = 10_000

// topicView is what there is to see of a topic.
type topicView struct {
	name                                                               string
	traffic                                                            partition.Traffic
	size                                                               int64
	segments                                                           int
	replicas, leaders, underReplicated, underMinISR, atMinISR, offline int
	lag, behind                                                        int64
}

// lookAtTopics lists the topics, by name, and how many were left out: those last in the alphabet; and adds up what the log directories
// hold. It goes once over the replicas and once over the logs, of which there may be tens of thousands.
func (v *view) lookAtTopics() {
	byName := make(map[string]*topicView, len(v.byTopic))
	of := func(name string) *topicView {
		t := byName[name]
		if t == nil {
			t = &topicView{name: name, traffic: v.byTopic[name]}
			byName[name] = t
		}
		return t
	}
	for i := range v.replicas {
		s := &v.replicas[i].Status
		of(s.ID.Topic).add(s)
	}
	v.dirSizes = map[*log.Dir]int64{}
	for l := range v.Logs.All() {
		t, size := of(l.Topic()), l.Size()
		t.size += size
		t.segments += l.SegmentCount()
		if d := v.Logs.DirOf(l); d != nil {
			v.dirSizes[d] += size
		}
	}
	all := make([]topicView, 0, len(byName))
	for _, t := range byName {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b topicView) int { return strings.Compare(a.name, b.name) })
	shown := min(len(all), maxTopics)
	v.topics, v.topicsLeftOut = all[:shown], len(all)-shown
}

// add counts a replica of the topic.
func (t *topicView) add(s *partition.Status) {
	t.replicas++
	t.lag = max(t.lag, s.Lag)
	t.behind = max(t.behind, s.Behind)
	for _, one := range [...]struct {
		n  *int
		so bool
	}{{&t.leaders, s.Leads}, {&t.underReplicated, s.UnderReplicated()}, {&t.underMinISR, s.UnderMinISR()}, {&t.atMinISR, s.AtMinISR()}, {&t.offline, s.Offline}} {
		if one.so {
			*one.n++
		}
	}
}

func (f *topicFamilies) show(o out, v *view) {
	for i := range v.topics {
		t := &v.topics[i]
		f.showTraffic(o, &t.traffic, t.name)
		o.put(f.size, float64(t.size), t.name)
		o.put(f.segments, float64(t.segments), t.name)
		o.put(f.replicas, float64(t.replicas), t.name)
		o.put(f.leaders, float64(t.leaders), t.name)
		o.put(f.underReplicated, float64(t.underReplicated), t.name)
		o.put(f.underMinISR, float64(t.underMinISR), t.name)
		o.put(f.atMinISR, float64(t.atMinISR), t.name)
		o.put(f.offline, float64(t.offline), t.name)
		o.put(f.lag, float64(t.lag), t.name)
		o.put(f.behind, float64(t.behind), t.name)
	}
	o.put(f.leftOut, float64(v.topicsLeftOut), "topics")
	o.put(f.shrinks, float64(v.traffic.Shrinks))
	o.put(f.expands, float64(v.traffic.Expands))
	o.spread(f.flushes, &v.flushes)
	for _, d := range v.Logs.Dirs() {
		o.is(f.dirOnline, d.Err() == nil, d.Path())
		o.put(f.dirSize, float64(v.dirSizes[d]), d.Path())
	}
}

// showTraffic shows what went in and out of a topic.
func (f *topicFamilies) showTraffic(o out, t *partition.Traffic, topic string) {
	o.put(f.bytesIn, float64(t.BytesIn), topic)
	o.put(f.recordsIn, float64(t.RecordsIn), topic)
	o.put(f.bytesOut, float64(t.BytesOut), topic)
	o.put(f.recordsOut, float64(t.RecordsOut), topic)
	o.put(f.replicatedIn, float64(t.ReplicatedIn), topic)
	o.put(f.replicatedOut, float64(t.ReplicatedOut), topic)
	o.put(f.appends, float64(t.Appends), topic)
	o.put(f.appendsFailed, float64(t.AppendsFailed), topic)
	o.put(f.fetches, float64(t.Fetches), topic)
	o.put(f.fetchesFailed, float64(t.FetchesFailed), topic)
}
