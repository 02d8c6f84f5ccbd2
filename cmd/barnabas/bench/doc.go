// Package bench puts load on a broker that speaks Kafka's protocol, and measures what it costs the broker.
//
// There are two paths. The raw one speaks the wire protocol itself, so that it is never the bottleneck: batches are built once
// and sent again and again by vectored writes, fetch responses are walked batch header by batch header and no record is looked
// at, except for the stamp of an end-to-end run. The other goes through franz-go, as a program would that uses it. Both are
// measured alike: throughput and delay from here, processor time and memory of the broker from the system (see [Usage]), for a
// broker on the same machine, and the generator's own processor time beside them.
//
// A load with a rate is open: when requests are due doesn't depend on the broker, and their delay counts from when they were
// due, also when they could be sent only later. So a broker that stalls is seen to stall, for all that would have come in
// meanwhile. A load without a rate is closed: each answer makes room for the next request.
package bench
