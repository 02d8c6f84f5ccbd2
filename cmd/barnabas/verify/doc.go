// Package verify puts load on a cluster that speaks Kafka's protocol and sees whether it keeps what it promises.
//
// Producers write numbered records with acks=all and idempotence, in transactions if wanted. Readers follow meanwhile, as
// consumers do. When the producers have ended, every replica of every partition is read from the start of the run to its end: a
// consumer may fetch from any replica since Fetch version 11 (KIP-392), and is shown there what that replica knows to be
// committed. With EveryLeader each replica is made the leader once, too, and read as such: then also what it has beyond
// the high watermark comes out. What clients were told and shown is a history, and package history judges it.
//
// Any number of runs may go on side by side, each in a topic of its own. What happens to the cluster during a run isn't the
// business of this package: who breaks things runs beside it, and ends it with Finish.
package verify
