package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// clusterFamilies are about the cluster as this broker knows it, and its place in it.
type clusterFamilies struct {
	info, epoch, brokers, topics, partitions, leaderless, underReplicated, unbalanced  family
	controllerID, controllerEpoch, active, transactional, throttle, throttled, counted family
}

func newClusterFamilies() clusterFamilies {
	return clusterFamilies{
		info:            gauge("barnabas_broker_info", "Which broker this is, of which cluster; always 1.", "broker", "cluster"),
		epoch:           gauge("barnabas_broker_epoch", "Epoch of this broker's registration, -1 without one."),
		brokers:         gauge("barnabas_cluster_brokers", "Living brokers of the cluster, as far as this one was told."),
		topics:          gauge("barnabas_cluster_topics", "Topics of the cluster."),
		partitions:      gauge("barnabas_cluster_partitions", "Partitions of the cluster."),
		leaderless:      gauge("barnabas_cluster_leaderless_partitions", "Partitions of the cluster without a leader: nobody can read or write them."),
		underReplicated: gauge("barnabas_cluster_under_replicated_partitions", "Partitions of the cluster with replicas out of sync."),
		unbalanced:      gauge("barnabas_cluster_not_preferred_leaders", "Partitions of the cluster that another than their preferred leader leads."),
		controllerID:    gauge("barnabas_controller_id", "Broker that is controller, -1 for none."),
		controllerEpoch: gauge("barnabas_controller_epoch", "Epoch of the controller that this broker heard of last."),
		active:          gauge("barnabas_controller_active", "Whether this broker is controller."),
		transactional:   gauge("barnabas_transactional_ids", "Transactional ids that this broker coordinates, by the state of their transaction.", "state"),
		throttle:        gauge("barnabas_replication_throttle_bytes_per_second", "Limit for throttled replicas, +Inf for none.", "direction"),
		throttled:       gauge("barnabas_replication_throttled", "Whether throttled replicas have to wait now.", "direction"),
		counted:         counter("barnabas_replication_throttled_bytes_total", "Bytes of throttled replicas that counted for the limit.", "direction"),
	}
}

// clusterCounts are what there is of each kind in the cluster.
type clusterCounts struct{ topics, partitions, leaderless, underReplicated, unbalanced int }

func countCluster(s *metadata.Snapshot) (n clusterCounts) {
	n.topics, n.partitions = s.Counts()
	for _, t := range s.Topics() {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if p.Leader == metadata.NoLeader {
				n.leaderless++
			}
			if len(p.ISR) < len(p.Replicas) {
				n.underReplicated++
			}
			if len(p.Replicas) > 0 && p.Leader != p.Replicas[0] {
				n.unbalanced++
			}
		}
	}
	return n
}

func (f *clusterFamilies) show(o out, v *view) {
	o.put(f.info, 1, strconv.Itoa(int(v.BrokerID)), v.ClusterID)
	o.put(f.epoch, float64(v.BrokerEpoch()))
	o.put(f.brokers, float64(len(v.cluster.Brokers())))
	n := countCluster(v.cluster)
	o.put(f.topics, float64(n.topics))
	o.put(f.partitions, float64(n.partitions))
	o.put(f.leaderless, float64(n.leaderless))
	o.put(f.underReplicated, float64(n.underReplicated))
	o.put(f.unbalanced, float64(n.unbalanced))
	id, epoch := v.cluster.Controller()
	o.put(f.controllerID, float64(id))
	o.put(f.controllerEpoch, float64(epoch))
	o.is(f.active, v.Controller.Active())
	f.showTransactions(o, v)
	now := time.Now()
	for direction, q := range map[string]*partition.Quota{"out": v.Sent, "in": v.Fetched} {
		rate, unlimited, total := q.Rate()
		limit := float64(rate)
		if unlimited {
			limit = infinite
		}
		o.put(f.throttle, limit, direction)
		o.is(f.throttled, !q.Owes(now).IsZero(), direction)
		o.put(f.counted, float64(total), direction)
	}
}

// showTransactions counts the transactional ids. While some are still being read, there is no number that is right.
func (f *clusterFamilies) showTransactions(o out, v *view) {
	list, err := v.Transactions.List()
	if err != nil {
		return
	}
	states := map[string]int{"Empty": 0, "Ongoing": 0}
	for i := range list {
		states[list[i].State.String()]++
	}
	names := make([]string, 0, len(states))
	for name := range states {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		o.put(f.transactional, float64(states[name]), name)
	}
}
