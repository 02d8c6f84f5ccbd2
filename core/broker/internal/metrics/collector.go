package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/placement"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Rooms are the rooms of a broker that serves, as far as they are looked at.
type Rooms struct {
	BrokerID     int32
	ClusterID    string
	BrokerEpoch  func() int64
	Requests     *meter.Requests
	Flushes      *meter.Histogram
	Server       *wire.Server
	Cluster      *metadata.Cache
	Partitions   *partition.Manager
	Logs         *log.Manager
	Groups       *group.Manager
	Transactions *txn.Manager
	Controller   *controller.Controller
	Placement    *placement.Checks
	Sent         *partition.Quota
	Fetched      *partition.Quota
	// Plugins are the implementations that the broker is made of, by role and name.
	Plugins []Plugin
	// Leaders asks other brokers of the cluster.
	Leaders Leaders
}

// Plugin is one implementation.
type Plugin struct {
	Role, Name string
	Measured   plugin.Measured // nil when it has nothing to tell
}

// Collector collects the metrics of one broker. It is a prometheus.Collector that doesn't say beforehand what there will be: that
// depends on what the broker does. Scrapes may go on side by side.
type Collector struct {
	options Options
	rooms   func() *Rooms // nil before the broker serves
	lags    *lags
	recent  *recent
	own     ownFamilies
	jmx     *jmxFamilies
	ke      *exporterFamilies
}

// New makes a collector of the rooms that the function gives, nil as long as there are none. now is the clock.
func New(o Options, rooms func() *Rooms, now func() time.Time) *Collector {
	c := &Collector{options: o, rooms: rooms, lags: newLags(now), recent: newRecent(now), own: newOwnFamilies()}
	if slices.Contains(o.Aliases, aliasJMX) {
		c.jmx = newJMXFamilies()
	}
	if slices.Contains(o.Aliases, aliasKafkaExporter) {
		c.ke = newExporterFamilies()
	}
	return c
}

// Describe says nothing: see [Collector].
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// view is what one scrape sees: read once, and shown under all names.
type view struct {
	*Rooms
	answered      []meter.Answered
	failed        []meter.Failures
	flushes       meter.Distribution
	traffic       partition.Traffic
	byTopic       map[string]partition.Traffic
	replicas      []replica
	dirSizes      map[*log.Dir]int64
	cluster       *metadata.Snapshot
	groups        group.Coordinated
	lags          []groupLag
	unknownLags   int
	software      []softwareCount
	counts        wire.Counts
	topics        []topicView
	topicsLeftOut int
}

// replica is one that this broker hosts, with how it was when it was looked at.
type replica struct {
	*partition.Partition
	partition.Status
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	o := out(ch)
	r := c.rooms()
	o.is(c.own.serving, r != nil)
	if r == nil {
		return
	}
	v := c.look(r)
	c.own.requests.show(o, v)
	c.own.connections.show(o, v)
	c.own.topics.show(o, v)
	if c.options.PerPartition {
		c.own.partitions.show(o, v)
	}
	c.own.cluster.show(o, v)
	c.own.groups.show(o, v, c.options.PerPartition)
	c.own.plugins.show(o, v)
	if c.jmx != nil {
		c.jmx.show(o, v, c.recent.distributions(v.answered, v.flushes), c.options.PerPartition)
	}
	if c.ke != nil {
		c.ke.show(o, v)
	}
}

// look reads what there is to show.
func (c *Collector) look(r *Rooms) *view {
	v := &view{Rooms: r, answered: r.Requests.Read(), failed: r.Requests.ReadFailed(), cluster: r.Cluster.Snapshot(), counts: r.Server.Counts()}
	r.Flushes.Read(&v.flushes)
	v.traffic, v.byTopic = r.Partitions.Traffic()
	v.replicas = make([]replica, 0, r.Partitions.Len())
	for p := range r.Partitions.All() {
		v.replicas = append(v.replicas, replica{p, p.Status()})
	}
	v.software = countSoftware(r.Server.Peers())
	v.lookAtTopics()
	v.groups = r.Groups.Coordinated() // before any end is looked at: see lags
	v.lags, v.unknownLags = c.lags.of(r, v.cluster, v.groups.Groups)
	return v
}

// ownFamilies are the metrics under our own names.
type ownFamilies struct {
	serving     family
	requests    requestFamilies
	connections connectionFamilies
	topics      topicFamilies
	partitions  partitionFamilies
	cluster     clusterFamilies
	groups      groupFamilies
	plugins     pluginFamilies
}

func newOwnFamilies() ownFamilies {
	return ownFamilies{
		serving:     gauge("barnabas_serving", "Whether the broker answers clients: 0 while it starts."),
		requests:    newRequestFamilies(),
		connections: newConnectionFamilies(),
		topics:      newTopicFamilies(),
		partitions:  newPartitionFamilies(),
		cluster:     newClusterFamilies(),
		groups:      newGroupFamilies(),
		plugins:     newPluginFamilies(),
	}
}
