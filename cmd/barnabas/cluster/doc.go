// Package cluster looks at a cluster and works out how to change it, for the commands of the command line: who leads what,
// what isn't healthy, where replicas go, who leads when a broker leaves.
//
// It speaks Kafka's protocol alone, so the cluster may be any that does. Reading ([Read]) is apart from working out, which
// is done by functions without I/O; carrying out what was worked out is the commands' business, and so is printing.
package cluster
