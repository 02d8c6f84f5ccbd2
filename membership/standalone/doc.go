// Package standalone is coordination for a broker that is alone: what a cluster would agree on is kept in one local file.
//
// The one member is always elected and always alive, as soon as it asks; epochs rise all the same, through restarts, so
// that everything above works as in a cluster. The file is a journal of checksummed JSON lines (FORMAT.md): each write of
// any size is one line and one sync, and a crash at any byte leaves the state before or after it.
//
// What isn't its business: deciding anything (package controller), the locks, logs and checkpoints of the data directory
// (package log), and clusters: a second process on the same file is refused.
package standalone
