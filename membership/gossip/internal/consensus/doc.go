// Package consensus is raft with the state machine of package machine on it: where it is stored, how servers reach each other,
// how any server writes and reads, and when a session is over.
//
// Writes go to the raft leader, which every server finds and speaks for its callers to. Reads are served by every server from what it has
// applied, after it has asked the leader how far that must reach (a read index), which many readers share.
//
// # Sessions
//
// A server that is alive tells the leader so (a heartbeat), which isn't logged. The leader alone ends the session of one that is silent for
// the session timeout, by a command in the log. A new leader gives every session a full timeout, and so does one that has
// been asleep itself. A server that got no answer for seven eighths of the timeout must take its session for lost: in all cases before the
// leader does, for the leader makes sure that it still is leader after a heartbeat came and before it answers.
//
// What isn't its business: finding servers and deciding who votes (it does what it is told), and what the state means.
package consensus
