// Package gossip coordinates brokers without a server of its own: hashicorp/memberlist finds them and suspects who fails, and
// hashicorp/raft decides. Each broker has all of what is decided; three or five of them vote.
//
// The plug-in is called memberlist. What gossip says is a hint: it brings brokers together, and tells the raft leader where they are.
// Who is controller, who is alive and what the cluster is made of is in raft alone, and so is who votes.
package gossip
