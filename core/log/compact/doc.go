// Package compact decides what compaction keeps of a log (cleanup.policy=compact): which batches of a cleaned range stay as
// they are, which lose some of their records, and which go.
//
// It works in two walks over the same batches, as Apache Kafka's LogCleaner does. The first, an [Indexer], notes in an
// [OffsetMap] the last offset of each key of the range that was not cleaned yet. The second, a [Filter], goes over the log
// from its start to the end of that range, and keeps a record when no later one has its key. Transactions, tombstones and
// what idempotent producers need are taken care of by the same rules as in Kafka (KIP-98, KIP-534).
//
// Files, segments, locks, throttles and the choice of the log that is cleaned next aren't its business: that is core/log's.
// Nothing here does I/O, starts a goroutine or asks for the time.
package compact
