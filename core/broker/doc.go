// Package broker builds a broker from a configuration and chosen implementations, starts it, drains it and stops it.
//
// It is the only place that knows all rooms: the connections (internal/wire), the requests (internal/api), the replicas
// (internal/partition), what followers fetch (internal/replication), consumer groups (internal/group), transactions
// (internal/txn), the cluster's decisions (internal/controller), what every broker knows of its cluster (internal/metadata), and
// the connections between brokers (internal/peers). Each of them gets what it needs here, and none of them knows this package.
// Which implementations of the contracts it runs on is decided by whoever calls New.
//
// Not its business: reading YAML, naming implementations, command lines.
package broker
