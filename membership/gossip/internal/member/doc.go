// Package member says who a broker is to the others that coordinate with it: its server id, which belongs to the directory of its
// raft store and not to the broker alone, and the raft cluster that this directory is part of. Both are in one small file there.
//
// What isn't its business: finding others (pool), talking to them (port), and what they agree on.
package member
