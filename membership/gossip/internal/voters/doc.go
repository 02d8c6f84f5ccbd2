// Package voters decides who votes in raft, and who follows: who forms a cluster, what the raft leader does by itself, and
// what it refuses to do when it is told. Its functions look at what is known and say what to do; they do nothing.
//
// # Forming a cluster
//
// Servers without a store wait until gossip shows them as many of their kind as are expected, and nobody who has a store. The one
// with the lowest broker id then proposes a cluster to all of them. Each may promise itself to one proposal only, and remembers that on
// its disk; only when all have done so is the cluster made. So two proposals that overlap can't both succeed, whatever each
// server sees. Who proposes and is refused drops its proposal, for ever; who has promised itself asks the one that proposed from time
// to time whether the proposal stands.
//
// # Keeping it
//
// By itself the raft leader adds servers that gossip shows as ones that follow, brings addresses up to date, and
// drops a follower whose broker is there with another store. Who votes changes by an operator's word alone: a server that gossip
// calls dead keeps its vote.
//
// What isn't its business: gossip, raft, time.
package voters
