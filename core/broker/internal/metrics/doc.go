// Package metrics shows what a broker does to Prometheus. Everything is collected when it is asked for, from counters that others keep
// (package meter, partition.Traffic) and from snapshots: between scrapes there is no work, and no timer.
//
// How many series there are is bounded: by topic, group and client software at most so many, the rest left out and counted
// (barnabas_metrics_left_out); by partition only where that is asked for. A counter never falls while its series is there.
//
// Lag is computed in one place ([lags]) for all names that it is shown under. Aliases show the same under the names that dashboards
// made for others use: Kafka's, as jmx_exporter writes them, and kafka_exporter's.
//
// What isn't its business: serving HTTP (adminhttp), and counting.
package metrics
