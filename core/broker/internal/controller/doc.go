// Package controller makes the cluster's decisions: which brokers get a topic's replicas, which replica leads, who is in
// sync, what is deleted, what moves.
//
// [Machine] is the decider: a state machine that takes an event and returns effects, without I/O, goroutine or clock. Its
// effects are writes to the coordination's Metadata, each fenced by the controller epoch and by the partition epochs, and
// pushes to brokers in Kafka's own request formats. It is level-triggered: whatever happens (an election, a broker that
// comes or goes, a topic that appears) marks partitions, and one pass over those marked decides what they need. So a
// controller that takes over in the middle of anything does what a controller does when it starts: it reads, marks
// everything, and goes on.
//
// [Session] carries the effects of one term out, in order, one event at a time until nothing is left to do, and stops mid-step when
// the term is over. What was written stays written; nothing is half done. [Controller] is the loop around it: it campaigns, and
// brings events from watches, clients and brokers.
//
// States (Kafka's names): a partition is NonExistent without an assignment, New without a state, Online with a leader,
// Offline without one. A replica is New or Online on a living broker, Offline on a dead one; its deletion is started when
// StopReplica was pushed, successful when the broker has confirmed, ineligible while the broker is dead.
//
// What isn't its business: connections and requests' encodings (packages wire and api), the meaning of configurations
// (package config/kafka), hosting replicas (package partition), where metadata is kept (package election).
package controller
