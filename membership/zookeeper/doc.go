// Package zookeeper is coordination through ZooKeeper, in the nodes that Apache Kafka 3.9 keeps there: brokers of both kinds may
// share a cluster, and Kafka's own tools see and do what they always did. FORMAT.md lists the nodes.
//
// How the parts work together:
//
//	session     one ZooKeeper session over the client library: requests that listen to contexts, and its end, in doubt too
//	points      the places in the tree that somebody is interested in; one loop keeps a watch on each, through everything
//	sources     what such places mean: brokers, topics, configurations, requests; they tell the watches of the contract
//	apply       a controller's writes: many items in few transactions, each of which checks the controller's epoch
//	coordination, membership, metadata, requests    the contract, on top of these
//
// What the bytes of a node mean is the business of internal/znode. What is decided, and why, is the controller's.
package zookeeper
