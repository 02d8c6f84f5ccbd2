// Package record reads, checks and builds record batches: the bytes that
// producers send, that lie on disk and that consumers get. It knows the
// batches of message format 2 (KIP-98) in full, and the message sets of
// formats 0 and 1 (KIP-31, KIP-32) as far as old clients still need them.
//
// Everything here is a function over bytes: no I/O, no goroutines, no clock.
// Whatever a function returns points into the bytes it was given, unless it
// says otherwise, and the input may come from anybody: truncated batches,
// lengths that lie and hostile varints end in [ErrCorrupt] or [ErrShort].
//
// Three kinds of readers need it. The log walks, checks and stamps batches
// ([Next], [All], [CheckCRC], [SetBaseOffset]). A leader asks a [Validator] what
// to make of the bytes of a producer. And whoever has records instead of bytes
// uses [Iterate] and [Builder]: compaction, the offsets topic, the command line.
//
// Compression is not this package's business: what it needs of it is the
// interface [Codecs], which the caller fills. Nor are the offsets of a log,
// producer state, or Kafka's numeric error codes; the broker maps the errors
// defined here to those.
package record
