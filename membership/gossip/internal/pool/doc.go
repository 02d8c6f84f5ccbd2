// Package pool is gossip: which servers there are, where, and what each says of itself, by hashicorp/memberlist over the
// coordination port. What it says is a hint, for it may be late, wrong, and different on each server; decisions are raft's.
//
// A server's name in gossip is its broker id. Two living ones with one name don't mix: who comes later is refused, and told so.
// A name is free again when its server has left, or has been dead for the reclaim time.
//
// Servers of another cluster, and of a later version that this one doesn't understand, are left out and named in the log.
//
// What isn't its business: what follows from who is there (packages forming and upkeep).
package pool
