// Package log keeps the log of one partition: a row of segments, their indexes, what is known of leader epochs and
// producers, in Apache Kafka's files (FORMAT.md says which, and what a crash does to them).
//
// It gives offsets, checks what a leader appends, finds batches by offset and by time, rolls, deletes, truncates, syncs, and
// brings a directory back to a state that can be vouched for. What the bytes of a batch mean is core/record's business, and
// how they get to and from the disk is the storage's (core/storage). Who leads, who may read up to where, and who waits for
// what is decided above: the high watermark is only kept here.
//
// # LOCKS
//
// There is one lock per log, Log.mu: appends, rolls, truncations, deletions and everything that isn't read by readers. What
// readers need is published: the segments as an immutable slice, offsets and sizes as atomics. A reader takes no lock but
// those of the indexes it looks into, and an append is never held up by one.
//
//   - An append writes the bytes, then the indexes, then the producers' state; then it publishes the segment's next offset,
//     the segment's size, and last the end of the log. Readers load in the opposite order, so that what they find below the
//     end they loaded is whole.
//   - A truncation raises Log.cuts before and after. A reader that sees another value than when it began starts over.
//   - index.mu and txnIndex.mu are leaves: nothing is locked under them.
//   - A compaction reads closed segments without the lock, and writes new ones beside them. It takes the lock to put one in the
//     place of those it was made of, if they are still the log's; readers that have the old ones go on with those.
//   - Log.flushMu is never held while Log.mu is taken, or during a sync.
//   - Events are told under Log.mu and must not call back. Some of them write a checkpoint file before they return.
//
// # COMPACTION
//
// A log with cleanup.policy=compact is compacted up to its last stable offset, but for the active segment, when enough of that
// is dirty: records behind CleanedTo, which the file cleaner-offset-checkpoint keeps. Which records stay is decided in
// package compact; Log.Compact does the work on one log, crash-safely (see Log.replace and Log.finishSwaps), and the manager's
// cleaner chooses the next one. What a compaction leaves of some segments always ends at their last offset, in a batch without
// records if need be, so that a crash can't leave it in doubt which segments it stands for.
//
// No log has a goroutine or a timer. A closed segment has an open file of data and nothing else; its indexes are read when
// somebody looks something up.
package log
