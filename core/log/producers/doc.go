// Package producers keeps what a partition knows of its idempotent and transactional producers (KIP-98): the epoch and the
// last batches of each, its open transaction, and from all of them the offset up to which no transaction is undecided.
//
// It is a state machine over batch headers: no I/O, no clock, no goroutine and no lock; core/log calls it under the log's
// lock, with batches that are about to be appended (Check) and that were appended (Apply). Files, offsets of the log and
// what clients are told aren't its business.
package producers
