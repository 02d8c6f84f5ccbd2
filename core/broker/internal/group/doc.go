// Package group coordinates consumer groups: the classic protocol of Kafka (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)
// and the offsets that groups commit.
//
// [Group] is one group as a state machine: it takes an event and the time, changes its state and returns [Effects]:
// waiting requests to answer, records to write. It does no I/O, starts nothing and never asks for the time. [Manager]
// is the thin loop around all groups of this broker: it finds the group of a request, holds the requests that wait,
// writes records through an offsets store and wakes groups when a deadline passes.
//
// Groups are kept in shards, the units that move between brokers. A shard is loaded when this broker begins to lead it
// and dropped when it stops.
//
// What isn't its business: connections and the encoding of requests (package api), how records are stored (package
// offsets and its stores), and which broker leads a shard (the controller).
package group
