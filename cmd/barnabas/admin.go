package main

import (
	"errors"
	"net"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/config"
)

// adminKey is the key of the YAML file whose presence turns the admin server on.
const adminKey = "admin"

// adminSummary says what the admin server is, for the reference of keys.
const adminSummary = "the HTTP server for those who watch and run the broker: metrics, health, and what the broker tells of itself"

// metricsKey is the key of the YAML file that says what the admin server shows on /metrics.
const metricsKey = "metrics"

// metricsSummary says what that is, for the reference of keys.
const metricsSummary = "what the admin server shows on /metrics"

// chooseMetrics reads the section of the metrics, and warns when nobody is going to show them.
func chooseMetrics(root config.Section) (o broker.MetricsOptions, idle string, err error) {
	section, ok := root.Sub(metricsKey)
	if !ok {
		return o, "", nil
	}
	if section.IsZero() {
		return o, "", section.Wrap(errors.New("want options of metrics, {} for the defaults"))
	}
	if _, shown := root.Sub(adminKey); !shown {
		idle = section.Wrap(errors.New("has no effect without `admin: {}`, whose server shows the metrics")).Error()
	}
	err = section.Decode(&o)
	return o, idle, err
}

// chooseAdmin reads the section of the admin server. nil is for none.
func chooseAdmin(root config.Section) (*adminhttp.Options, error) {
	section, ok := root.Sub(adminKey)
	if !ok {
		return nil, nil
	}
	if section.IsZero() {
		return nil, section.Wrap(errors.New("want the admin server's options, {} for the defaults"))
	}
	o := adminhttp.DefaultOptions()
	err := section.Decode(&o)
	return &o, err
}

// administered is a broker that may have an admin server; AdminAddr is nil where there is none.
type administered interface{ AdminAddr() net.Addr }
