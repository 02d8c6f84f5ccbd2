// Package machine is what raft replicates: the cluster's metadata (core/election/state), who is controller, who is alive, and the
// sessions that these hang on. It is a state machine without I/O, time or goroutines: every server that applies the same commands in
// the same order has the same state, and gives the same results.
//
// A session stands for one broker being there. It begins and ends by a command; nothing in here expires. When it ends, so does
// the controller's term and do the registrations that belong to it, in the same step.
//
// What isn't its business: when a session is over (package consensus), who asks, files and connections.
package machine
