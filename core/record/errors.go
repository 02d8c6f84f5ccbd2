package record

import (
	"errors"
	"fmt"
)

// The errors of this package. All of them come wrapped with what was wrong;
// compare with errors.Is.
var (
	// ErrShort: the bytes end before the batch does. At the end of a fetch or
	// of a torn log that is ordinary, in a produce request it is corruption.
	ErrShort = errors.New("incomplete batch")

	// ErrCorrupt: the bytes contradict themselves: an impossible length, a
	// checksum that does not match, a varint that never ends, a block that
	// does not decompress.
	ErrCorrupt = errors.New("corrupt batch")

	// ErrLegacy: the bytes hold a message of format 0 or 1, where a batch of
	// format 2 was asked for. It is an ErrCorrupt for whoever has no use for
	// the difference.
	ErrLegacy = fmt.Errorf("%w: message format before 2", ErrCorrupt)
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}
