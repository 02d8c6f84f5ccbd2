// Package zookeeper keeps the offsets of consumer groups in ZooKeeper, where Kafka's first consumers kept them: the offset of
// a group's partition is the decimal text in /consumers/<group>/offsets/<topic>/<partition>, so that the tools and dashboards
// of that time read it. It has one shard and no topic: the controller coordinates all groups.
//
// A commit is more than a number. What else belongs to it, and to groups, stands in nodes of this store's own that old readers
// don't come across; FORMAT.md has the layout. When somebody else has written an offset since, what stands there for another
// offset doesn't count, and the number does.
//
// The broker that loads the shard owns it: the load writes a new owner into the node /barnabas/offsets, and each write is one
// transaction that begins with that node's version and raises it. So the write of a former owner fails, however late it comes,
// and a write whose answer got lost is told from one that never happened.
//
// What isn't its business: offsets that old consumers commit while the shard is loaded (they are seen by the next load), their
// /consumers/<group>/ids and owners, and the nodes in which brokers coordinate (membership/zookeeper).
package zookeeper
