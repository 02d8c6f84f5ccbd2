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
// Compression is not this package's business. Nor are offsets of a log,
// producer state, or Kafka's numeric error codes; the broker maps the errors
// defined here to those.
package record
