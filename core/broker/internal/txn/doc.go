// Package txn coordinates the transactions of producers (KIP-98, KIP-360, KIP-447, and the verification of KIP-890): which
// producer id and epoch a transactional id has, which partitions its open transaction has written to, and how it ended.
//
// [Transaction] decides: a state machine without I/O that takes an event and the time, and returns what is to be stored. The
// [Manager] around it stores that in the topic `__transaction_state`, in Kafka's own record format, before anybody is
// answered; has the markers of ended transactions written, again and again until all are; and loads what it coordinates from
// the topic when this broker begins to lead one of its partitions. [Receiver] is the other end: it writes the markers that
// coordinators ask for, into the partitions that this broker leads.
//
// What isn't its business: request formats other than the markers', the state that a partition keeps of its producers
// (core/log/producers), and the offsets that a group commits in a transaction (internal/group).
//
// # Locks
//
// Each transaction has a lock, held while an event is decided and never while anything waits or a log is called: a log asks
// [Manager.Verify] and [Manager.VerifyProducer] under its own lock. Order: a log's lock, a group's lock, Manager.mu, a
// transaction's lock, byProducer.mu.
package txn
