package broker

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metrics"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// MetricsOptions are the keys below `metrics:` in the YAML file.
type MetricsOptions = metrics.Options

// maxScrapes is how many scrapes are served at a time. More of them come from somebody who asks again before the answer is there.
const maxScrapes = 4

// metrics makes the handler that shows the broker's metrics. The registry is the broker's own: two brokers in one process share
// nothing but what is the process's.
func (b *Broker) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.New(b.o.Metrics, b.rooms, time.Now),
	)
	// Compressing costs the broker more than sending does. What can't be shown, such as two groups whose names come to the same text, is
	// left out rather than keeping the rest from being seen.
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError, DisableCompression: true, Registry: registry})
}

// rooms are what metrics are about, nil until all of them are there.
func (b *Broker) rooms() *metrics.Rooms {
	if !b.serving.Load() {
		return nil
	}
	return &metrics.Rooms{
		BrokerID:     b.id,
		ClusterID:    b.clusterID,
		BrokerEpoch:  b.epoch.Load,
		Requests:     b.requests,
		Flushes:      &b.flushes,
		Server:       b.server,
		Cluster:      b.cache,
		Partitions:   b.partitions,
		Logs:         b.logs,
		Groups:       b.groups,
		Transactions: b.transactions,
		Controller:   b.controller,
		Placement:    b.placement,
		Sent:         b.sent,
		Fetched:      b.fetched,
		Plugins:      b.implementations(),
		Leaders:      &leaders{asker: b.asker, listOffsets: peers.VersionsOf(b.o.Config.InterBrokerProtocol).ListOffsets},
	}
}

// implementations are the plug-ins that the broker is made of.
func (b *Broker) implementations() []metrics.Plugin {
	var all []metrics.Plugin
	add := func(role, name string, made any) {
		m, _ := made.(plugin.Measured)
		all = append(all, metrics.Plugin{Role: role, Name: name, Measured: m})
	}
	add("storage", b.o.Storage.Name(), b.storage)
	add("election", b.o.Election.Name(), b.coordination)
	add("offsets", b.o.Offsets.Name(), b.offsets)
	for _, p := range b.partitioners.All() {
		add("partitioner", p.Name, p.Partitioner)
	}
	for _, id := range b.codecs.IDs() {
		if c, err := b.codecs.Get(id); err == nil {
			add("compression", id.String(), c)
		}
	}
	return all
}
