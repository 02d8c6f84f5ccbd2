// Package znodes holds what a cluster writes into ZooKeeper against what Apache Kafka writes.
//
// A fixed script of actions ([Play]) is played on a cluster: topics are created, changed, moved and deleted, brokers stop, die
// and come back, old tools put their wishes into nodes. After each step all nodes are read once they are at rest, with what differs from
// run to run (ids, times, ports) replaced by names. What Kafka 3.9 wrote is kept in testdata; another cluster's nodes are compared with
// it, path by path and field by field.
package znodes
