// Package meter counts what a broker does, at the places where it is done: requests and how long they take, failures, calls of
// plug-ins. Counting costs some atomic additions and never allocates or waits, once a kind of thing has happened before.
//
// What isn't its business: what is merely there, such as partitions and groups, which whoever shows it takes from snapshots;
// and showing it (package metrics).
package meter
