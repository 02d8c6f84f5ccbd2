package record

import (
	"errors"
	"fmt"
)

// The errors of this package, from the general to the particular. They come
// wrapped with what was wrong; compare with errors.Is, the particular first.
var (
	// ErrShort: the bytes end before the batch does. At the end of a fetch or
	// of a torn log that is ordinary.
	ErrShort = errors.New("incomplete batch")

	// ErrCorrupt: the bytes contradict themselves: an impossible length, a
	// magic byte that no format has, a checksum that does not match.
	ErrCorrupt = errors.New("corrupt batch")

	// ErrLegacy: the bytes hold a message of format 0 or 1, where a batch of
	// format 2 was asked for. It is an ErrCorrupt for whoever has no use for
	// the difference.
	ErrLegacy = fmt.Errorf("%w: message format before 2", ErrCorrupt)

	// ErrInvalid: the checksum may well be right, but what it covers is no
	// batch as the format defines it, or not one that this sender may write.
	// An ErrCorrupt, too, and Kafka's INVALID_RECORD.
	ErrInvalid = fmt.Errorf("%w: invalid record", ErrCorrupt)

	// ErrUnreadable: the records are compressed with a codec that does not
	// exist or is not there, or do not decompress, or the length of the batch
	// overflows. An ErrCorrupt, too. Kafka answers UNKNOWN_SERVER_ERROR, which, unlike CORRUPT_MESSAGE, does not
	// make a producer send the same bytes again and again.
	ErrUnreadable = fmt.Errorf("%w: unreadable records", ErrCorrupt)

	// ErrPayloadTooLarge: what is in a compressed batch is more than the caller
	// allows. Codecs wrap it, and what this package makes of it is an
	// ErrUnreadable, too.
	ErrPayloadTooLarge = errors.New("holds more than allowed")

	// ErrTooLarge: a batch is larger than max.message.bytes, as it was sent or
	// as it would be stored. Kafka's MESSAGE_TOO_LARGE.
	ErrTooLarge = errors.New("batch is larger than max.message.bytes")

	// ErrLargerThanSegment: a batch would not fit into a segment of its own.
	// Kafka's RECORD_LIST_TOO_LARGE.
	ErrLargerThanSegment = errors.New("batch is larger than segment.bytes")

	// ErrTimestamp: timestamps are out of the range that the topic allows, or
	// a producer claims the time of the append. Kafka's INVALID_TIMESTAMP.
	ErrTimestamp = errors.New("invalid timestamp")

	// ErrUnsupportedCodec: the codec exists, but not for this version of the
	// request or this message format. Kafka's UNSUPPORTED_COMPRESSION_TYPE.
	ErrUnsupportedCodec = errors.New("compression is not supported here")
)

func corrupt(format string, args ...any) error { return wrap(ErrCorrupt, format, args) }

func invalid(format string, args ...any) error { return wrap(ErrInvalid, format, args) }

func wrap(err error, format string, args []any) error {
	return fmt.Errorf("%w: "+format, append([]any{err}, args...)...)
}

// RecordError says what is wrong with one record of a refused batch.
type RecordError struct {
	Index   int32 // of the record in its batch, from 0
	Message string
}

// maxRecordErrors is how many refused records are listed. A hundred KB can
// inflate to millions of bad records, which nobody wants to read about.
const maxRecordErrors = 10_000

// RecordErrors is the error of a batch that was refused for some of its
// records (KIP-467). It wraps ErrTimestamp when at least one of them has a wrong
// timestamp, else ErrInvalid.
type RecordErrors struct {
	Records []RecordError // never empty, in order of Index; at most the first maxRecordErrors
	cause   error
}

// Error tells the number of refused records and the first reason.
func (e *RecordErrors) Error() string {
	first := e.Records[0]
	return fmt.Sprintf("%v: %d records refused, record %d first: %s", e.cause, len(e.Records), first.Index, first.Message)
}

// Unwrap returns ErrTimestamp or ErrInvalid.
func (e *RecordErrors) Unwrap() error { return e.cause }

// add collects one refusal; e may be nil.
func (e *RecordErrors) add(index int32, cause error, message string) *RecordErrors {
	if e == nil {
		e = &RecordErrors{cause: cause}
	}
	if cause == ErrTimestamp {
		e.cause = cause
	}
	if len(e.Records) < maxRecordErrors {
		e.Records = append(e.Records, RecordError{index, message})
	}
	return e
}
