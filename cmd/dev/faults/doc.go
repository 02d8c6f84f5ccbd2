// Package faults breaks clusters of real processes, on a real ZooKeeper, while package verify holds them to their word.
//
// A [Scenario] is one way of breaking: processes are killed or paused, wires are cut (package network), disks fill up. Each one gets a
// cluster of its own: three brokers, whose connections among themselves, to ZooKeeper and with clients go through gates. When it has
// done its worst everything is mended, and then nothing acknowledged may be missing, nothing may be there twice or out of
// order, every replica must have come back, and the files of all replicas must be the same, byte for byte.
package faults
