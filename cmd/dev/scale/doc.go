// Package scale puts much of one thing on a broker or a cluster and watches what it costs: partitions, connections, groups,
// segments, time. Each figure has a bound, and a run fails when one is missed.
//
// The bounds are for two cores that do nothing else; most of them leave room for a slower machine. What a broker must never do,
// slow or fast (lose what it acknowledged, keep descriptors of what is deleted), is among them.
//
// Comparisons with Apache Kafka aren't its business: package compare makes them.
package scale
