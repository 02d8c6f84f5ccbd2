package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
)

// family is a metric with its labels.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// out is where a scrape's metrics go.
type out chan<- prometheus.Metric

// put shows one value.
func (o out) put(f family, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
	o.send(f, m, err)
}

// is shows whether something is so, as 0 or 1.
func (o out) is(f family, so bool, labels ...string) {
	value := 0.0
	if so {
		value = 1
	}
	o.put(f, value, labels...)
}

// spread shows a distribution of seconds as a histogram.
func (o out) spread(f family, d *meter.Distribution, labels ...string) {
	m, err := prometheus.NewConstHistogram(f.desc, d.Count(), d.Sum().Seconds(), d.Buckets(), labels...)
	o.send(f, m, err)
}

// send sends a metric, or what is wrong with it: a label that isn't UTF-8, which only a hostile client can have brought about.
func (o out) send(f family, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	o <- m
}
