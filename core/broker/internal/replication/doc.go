// Package replication is the follower's side of replication, and what a leader has to tell the controller about it.
//
// [Manager] fetches: for each leader broker that this broker follows there are up to num.replica.fetchers fetchers, each with one
// connection and one goroutine, and each partition is fetched by one of them. What a fetcher does next is decided by a state machine
// without I/O (machine.go): where partitions stand, whether they have to be truncated first, which wait after an error. What it asks goes
// by Kafka's ordinary Fetch with sessions (KIP-227); diverging logs are cut by leader epochs (KIP-101, KIP-279, KIP-595), out of Fetch
// answers or by OffsetForLeaderEpoch. A partition's state is bound to its leader epoch and its log end: package partition throws away what
// was answered to a question that has been overtaken.
//
// [ISR] brings leaders' proposals of other in-sync sets to the controller (AlterPartition, KIP-497), many in one request and one request
// at a time, and wakes leaders to look for followers that lag.
//
// Not its business: logs, roles and high watermarks (package partition), who leads (the controller), and finding brokers (package peers).
package replication
