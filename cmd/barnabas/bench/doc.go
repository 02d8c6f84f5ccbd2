// Package bench puts load on a broker that speaks Kafka's protocol, and measures what it costs the broker.
//
// It speaks the wire protocol itself, so that it is never the bottleneck: produce requests are encoded once and sent again
// and again, fetch responses are walked batch header by batch header and no record is looked at. What is measured is the
// broker: throughput and latency from here, processor time and memory from the system (see [Usage]), for a broker on the
// same machine. What any real client makes of the same broker is not this package's business.
package bench
