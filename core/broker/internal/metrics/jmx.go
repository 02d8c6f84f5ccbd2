package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// jmxFamilies are metrics under the names that jmx_exporter's rules for Kafka make of Kafka's MBeans (kafka-2_0_0.yml and what came of it,
// in lower case), as far as they have a counterpart here. Values follow Kafka in what they count: the sum of all topics has an empty
// topic, what the controller alone knows is 0 on other brokers, times are in milliseconds, quantiles are of the last minutes.
type jmxFamilies struct {
	topics     [9]family
	partitions [5]family
	logs       [4]family

	partitionCount, leaderCount, underReplicated, underMinISR, atMinISR, offlineReplicas, shrinks, expands, maxLag family
	activeController, offline, imbalance, globalTopics, globalPartitions, activeBrokers, brokerState, peers        family
	requests, errors, totalTime, flushes                                                                           family
}

func newJMXFamilies() *jmxFamilies {
	f := &jmxFamilies{
		partitionCount:   gauge("kafka_server_replicamanager_partitioncount", "Replicas on this broker."),
		leaderCount:      gauge("kafka_server_replicamanager_leadercount", "Partitions that this broker leads."),
		underReplicated:  gauge("kafka_server_replicamanager_underreplicatedpartitions", "Partitions led here with replicas out of sync."),
		underMinISR:      gauge("kafka_server_replicamanager_underminisrpartitioncount", "Partitions led here with fewer replicas in sync than min.insync.replicas."),
		atMinISR:         gauge("kafka_server_replicamanager_atminisrpartitioncount", "Partitions led here with just min.insync.replicas in sync."),
		offlineReplicas:  gauge("kafka_server_replicamanager_offlinereplicacount", "Replicas here whose log directory failed."),
		shrinks:          counter("kafka_server_replicamanager_isrshrinks_total", "In-sync sets that became smaller."),
		expands:          counter("kafka_server_replicamanager_isrexpands_total", "In-sync sets that became larger."),
		maxLag:           gauge("kafka_server_replicafetchermanager_maxlag", "How far the replica here that is furthest behind its leader is, in offsets.", "clientid"),
		activeController: gauge("kafka_controller_kafkacontroller_activecontrollercount", "1 on the controller, else 0."),
		offline:          gauge("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader; 0 but on the controller."),
		imbalance:        gauge("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions that another than the preferred leader leads; 0 but on the controller."),
		globalTopics:     gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics; 0 but on the controller."),
		globalPartitions: gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions; 0 but on the controller."),
		activeBrokers:    gauge("kafka_controller_kafkacontroller_activebrokercount", "Living brokers; 0 but on the controller."),
		brokerState:      gauge("kafka_server_kafkaserver_brokerstate", "3: the broker runs."),
		peers:            gauge("kafka_server_socket_server_metrics_connections", "Open connections by client software.", "clientsoftwarename", "clientsoftwareversion", "listener"),
		requests:         counter("kafka_network_requestmetrics_requests_total", "Requests that were answered.", "request", "version"),
		errors:           counter("kafka_network_requestmetrics_errors_total", "Error codes in responses; NONE isn't counted.", "request", "error"),
		totalTime:        gauge("kafka_network_requestmetrics_totaltimems", "Time from the end of a request to the end of its response.", "request"),
		flushes:          gauge("kafka_log_logflushstats_logflushrateandtimems", "How long it took to make a log durable."),
	}
	for i, name := range []string{"messagesin", "bytesin", "bytesout", "totalproducerequests", "failedproducerequests", "totalfetchrequests", "failedfetchrequests",
		"replicationbytesin", "replicationbytesout"} {
		f.topics[i] = counter("kafka_server_brokertopicmetrics_"+name+"_total", "Kafka's BrokerTopicMetrics of that name.", "topic")
	}
	for i, name := range []string{"replicascount", "insyncreplicascount", "underreplicated", "underminisr", "atminisr"} {
		f.partitions[i] = gauge("kafka_cluster_partition_"+name, "Kafka's Partition metrics of that name, of partitions that this broker leads.", "topic", "partition")
	}
	for i, name := range []string{"size", "numlogsegments", "logstartoffset", "logendoffset"} {
		f.logs[i] = gauge("kafka_log_log_"+name, "Kafka's Log metrics of that name.", "topic", "partition")
	}
	return f
}

func (f *jmxFamilies) show(o out, v *view, recently reading, perPartition bool) {
	f.showTopics(o, v)
	f.showReplicas(o, v)
	f.showController(o, v)
	f.showRequests(o, v, recently)
	if perPartition {
		f.showPartitions(o, v)
	}
	for _, s := range v.software {
		o.put(f.peers, float64(s.connections), s.name, s.version, s.listener)
	}
	o.put(f.brokerState, 3)
	o.summary(f.flushes, &v.flushes, &recently.flushes)
}

func (f *jmxFamilies) showTopics(o out, v *view) {
	show := func(topic string, t *partition.Traffic) {
		for i, n := range []uint64{t.RecordsIn, t.BytesIn, t.BytesOut, t.Appends, t.AppendsFailed, t.Fetches, t.FetchesFailed} {
			o.put(f.topics[i], float64(n), topic)
		}
	}
	show("", &v.traffic)
	o.put(f.topics[7], float64(v.traffic.ReplicatedIn), "")
	o.put(f.topics[8], float64(v.traffic.ReplicatedOut), "")
	for i := range v.topics {
		show(v.topics[i].name, &v.topics[i].traffic)
	}
}

func (f *jmxFamilies) showReplicas(o out, v *view) {
	var sum topicView
	for i := range v.topics {
		t := &v.topics[i]
		sum.leaders += t.leaders
		sum.underReplicated += t.underReplicated
		sum.underMinISR += t.underMinISR
		sum.atMinISR += t.atMinISR
		sum.offline += t.offline
		sum.behind = max(sum.behind, t.behind)
	}
	o.put(f.partitionCount, float64(len(v.replicas)))
	o.put(f.leaderCount, float64(sum.leaders))
	o.put(f.underReplicated, float64(sum.underReplicated))
	o.put(f.underMinISR, float64(sum.underMinISR))
	o.put(f.atMinISR, float64(sum.atMinISR))
	o.put(f.offlineReplicas, float64(sum.offline))
	o.put(f.shrinks, float64(v.traffic.Shrinks))
	o.put(f.expands, float64(v.traffic.Expands))
	o.put(f.maxLag, float64(sum.behind), "Replica")
}

func (f *jmxFamilies) showController(o out, v *view) {
	active := v.Controller.Active()
	var n clusterCounts
	brokers := 0
	if active {
		n, brokers = countCluster(v.cluster), len(v.cluster.Brokers())
	}
	o.is(f.activeController, active)
	o.put(f.offline, float64(n.leaderless))
	o.put(f.imbalance, float64(n.unbalanced))
	o.put(f.globalTopics, float64(n.topics))
	o.put(f.globalPartitions, float64(n.partitions))
	o.put(f.activeBrokers, float64(brokers))
}

// showRequests shows requests as Kafka counts them: a Fetch is one of a consumer or of a follower, and a Fetch besides.
func (f *jmxFamilies) showRequests(o out, v *view, recently reading) {
	const fetch = meter.Kind(kmsg.Fetch)
	var both, lately meter.Distribution
	versions := map[int]uint64{}
	for i := range v.answered {
		a := &v.answered[i]
		d := recently.took[a.Kind]
		name := a.Kind.String()
		switch a.Kind {
		case fetch, meter.FetchFollower:
			both.Add(&a.Took)
			lately.Add(&d)
			for version, n := range a.ByVersion {
				versions[version] += n
			}
			if a.Kind == fetch {
				name = "FetchConsumer"
			}
		}
		o.summary(f.totalTime, &a.Took, &d, name)
		for version, n := range a.ByVersion {
			if n > 0 {
				o.put(f.requests, float64(n), name, strconv.Itoa(version))
			}
		}
	}
	if both.Count() > 0 {
		o.summary(f.totalTime, &both, &lately, fetch.String())
		for version, n := range versions {
			if n > 0 {
				o.put(f.requests, float64(n), fetch.String(), strconv.Itoa(version))
			}
		}
	}
	for _, e := range v.failed {
		name := e.Kind.String()
		if e.Kind == fetch {
			name = "FetchConsumer"
		}
		o.put(f.errors, float64(e.Count), name, errorName(e.Code))
	}
}

func (f *jmxFamilies) showPartitions(o out, v *view) {
	for i := range v.replicas {
		s, l := &v.replicas[i].Status, v.replicas[i].Log()
		topic, number := s.ID.Topic, strconv.Itoa(int(s.ID.Partition))
		for i, n := range []int64{l.Size(), int64(l.SegmentCount()), l.StartOffset(), l.EndOffset()} {
			o.put(f.logs[i], float64(n), topic, number)
		}
		if s.Leads {
			o.put(f.partitions[0], float64(s.Replicas), topic, number)
			o.put(f.partitions[1], float64(s.InSync), topic, number)
			o.is(f.partitions[2], s.UnderReplicated(), topic, number)
			o.is(f.partitions[3], s.UnderMinISR(), topic, number)
			o.is(f.partitions[4], s.AtMinISR(), topic, number)
		}
	}
}

// summary shows a distribution in milliseconds, with the quantiles of what came lately.
func (o out) summary(f family, all, lately *meter.Distribution, labels ...string) {
	quantiles := map[float64]float64{}
	for _, q := range []float64{0.5, 0.75, 0.95, 0.98, 0.99, 0.999} {
		quantiles[q] = millis(lately.Quantile(q))
	}
	m, err := prometheus.NewConstSummary(f.desc, all.Count(), millis(all.Sum()), quantiles, labels...)
	o.send(f, m, err)
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }
