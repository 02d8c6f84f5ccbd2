package metrics

import (
	"net"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// exporterFamilies are metrics under the names of github.com/danielqsj/kafka_exporter. It is one program that asks the whole cluster;
// here each broker tells of the partitions that it leads and the groups that it coordinates, and the controller of the cluster, so
// that the sum over the brokers is what kafka_exporter says. A group that hasn't committed an offset of a partition has no lag there:
// kafka_exporter says -1. Its names are about partitions, so choosing it asks for them.
type exporterFamilies struct {
	brokers, info, partitions                                             family
	current, oldest, inSync, leader, preferred, replicas, underReplicated family
	groupOffset, groupOffsetSum, groupLag, groupLagSum, groupMembers      family
}

func newExporterFamilies() *exporterFamilies {
	one, group := []string{"topic", "partition"}, []string{"consumergroup", "topic", "partition"}
	return &exporterFamilies{
		brokers:         gauge("kafka_brokers", "Brokers of the cluster."),
		info:            gauge("kafka_broker_info", "Where brokers are.", "id", "address"),
		partitions:      gauge("kafka_topic_partitions", "Partitions of a topic.", "topic"),
		current:         gauge("kafka_topic_partition_current_offset", "Offset up to which a partition can be consumed.", one...),
		oldest:          gauge("kafka_topic_partition_oldest_offset", "First offset of a partition.", one...),
		inSync:          gauge("kafka_topic_partition_in_sync_replica", "Replicas in sync of a partition.", one...),
		leader:          gauge("kafka_topic_partition_leader", "Broker that leads a partition.", one...),
		preferred:       gauge("kafka_topic_partition_leader_is_preferred", "1 when the preferred leader leads a partition.", one...),
		replicas:        gauge("kafka_topic_partition_replicas", "Replicas of a partition.", one...),
		underReplicated: gauge("kafka_topic_partition_under_replicated_partition", "1 when replicas of a partition are out of sync.", one...),
		groupOffset:     gauge("kafka_consumergroup_current_offset", "Offset that a group has committed.", group...),
		groupOffsetSum:  gauge("kafka_consumergroup_current_offset_sum", "Offsets that a group has committed, over all partitions of a topic.", group[:2]...),
		groupLag:        gauge("kafka_consumergroup_lag", "How far a group is behind in a partition.", group...),
		groupLagSum:     gauge("kafka_consumergroup_lag_sum", "How far a group is behind, over all partitions of a topic.", group[:2]...),
		groupMembers:    gauge("kafka_consumergroup_members", "Members of a group.", group[0]),
	}
}

func (f *exporterFamilies) show(o out, v *view) {
	if v.Controller.Active() {
		f.showCluster(o, v.cluster)
	}
	for i := range v.replicas {
		if v.replicas[i].Leads {
			f.showPartition(o, &v.replicas[i])
		}
	}
	for n, g := range v.groups.Groups {
		if shown(g.ID) && n < maxGroups {
			o.put(f.groupMembers, float64(g.Members), label(g.ID))
		}
	}
	all, _ := byTopic(v.lags)
	there := pairsOf(all)
	for _, t := range all {
		o.put(f.groupOffsetSum, float64(t.committed), label(t.group), t.topic)
		o.put(f.groupLagSum, float64(t.records), label(t.group), t.topic)
	}
	for i := range v.lags {
		g := &v.lags[i]
		if !there[groupTopic{g.group, g.partition.Topic}] {
			continue
		}
		number := strconv.Itoa(int(g.partition.Partition))
		o.put(f.groupOffset, float64(g.committed), label(g.group), g.partition.Topic, number)
		o.put(f.groupLag, float64(g.records), label(g.group), g.partition.Topic, number)
	}
}

func (f *exporterFamilies) showCluster(o out, s *metadata.Snapshot) {
	o.put(f.brokers, float64(len(s.Brokers())))
	for _, b := range s.Brokers() {
		if len(b.Endpoints) > 0 {
			e := b.Endpoints[0]
			o.put(f.info, 1, strconv.Itoa(int(b.ID)), net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
		}
	}
	topics := s.Topics()
	for _, t := range topics[:min(len(topics), maxTopics)] {
		o.put(f.partitions, float64(len(t.Partitions)), t.Name)
	}
}

func (f *exporterFamilies) showPartition(o out, r *replica) {
	s, l := &r.Status, r.Log()
	labels := []string{s.ID.Topic, strconv.Itoa(int(s.ID.Partition))}
	o.put(f.current, float64(l.HighWatermark()), labels...)
	o.put(f.oldest, float64(l.StartOffset()), labels...)
	o.put(f.inSync, float64(s.InSync), labels...)
	o.put(f.leader, float64(s.Leader), labels...)
	o.is(f.preferred, s.Preferred, labels...)
	o.put(f.replicas, float64(s.Replicas), labels...)
	o.is(f.underReplicated, s.UnderReplicated(), labels...)
}
