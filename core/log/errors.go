package log

import "errors"

// The errors of this package. They come wrapped with the topic, the partition and what was wrong; compare with errors.Is.
// Errors of core/record (a batch that is corrupt, too large, …) are passed on as they are.
var (
	// ErrOffsetOutOfRange says that an offset lies below the log's start or above its end.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrUnexpectedOffset says that a follower was given batches that do not start at its end, or do not rise. Nothing of
	// the offending batch or what follows it was appended.
	ErrUnexpectedOffset = errors.New("batches do not continue the log")
	// ErrStaleEpoch says that a leader of an older epoch than the log has seen tried to append. Nothing was appended.
	ErrStaleEpoch = errors.New("leader epoch is older than the log's")
	// ErrCorrupt says that a file of the log contradicts itself where it can't be mended without losing what was
	// acknowledged.
	ErrCorrupt = errors.New("log is corrupt")
	// ErrFailed says that an earlier write or sync of this log or of its directory failed: it takes no more writes until it
	// was reopened, because what the disk holds is unknown.
	ErrFailed = errors.New("log failed")
	// ErrClosed says that the log was closed or deleted before the call.
	ErrClosed = errors.New("log is closed")
	// ErrInterrupted says that the log was cut, closed or failed, or lost segments to retention, while it was compacted.
	ErrInterrupted = errors.New("log changed while it was being compacted")
	// ErrTopicID says that partition.metadata belongs to another topic of the same name.
	ErrTopicID = errors.New("topic id differs from the log's")
)
