// Package local runs a whole cluster on one machine, for trying things out: several brokers, as processes of their own, of
// the program that runs already, and a ZooKeeper where they agree through that.
//
// What it knows about a broker is its command line and its configuration file; what the cluster does is asked through Kafka's
// protocol, by whoever wants to know.
package local
