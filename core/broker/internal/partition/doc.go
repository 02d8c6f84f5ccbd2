// Package partition is one replica on this broker: leader or follower, under which epochs, with which in-sync replicas, how
// high its high watermark stands, and who waits for it to move.
//
// A Partition joins a log (core/log: bytes, offsets, producer state) with a decider (state.go: a state machine without I/O)
// and with those who wait: produce requests for the high watermark, fetch requests for anything new. The Manager holds all
// replicas of the broker and takes the controller's LeaderAndIsr and StopReplica requests.
//
// Not its business: connections and request formats other than the controller's pushes, fetching from other brokers, what
// the controller decides, and what the bytes of a batch mean.
//
// # Locks
//
// Each Partition has three: role, read-locked by appends and write-locked by changes of leadership, so that no append of an old
// epoch slips in behind a change; following, held by who changes a follower's log; and mu, which guards the decider and the waiting
// requests and is held for moments only. Order: Manager.mu, role, following, mu, the log's own lock. A [Watch] is signalled (a non-blocking
// send) under mu. Callbacks to those who wait are made without mu, but others of these locks may be held: they are quick, wait for nobody and
// call nothing of this package.
package partition
