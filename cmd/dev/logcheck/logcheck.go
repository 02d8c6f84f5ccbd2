// Package logcheck says what doesn't fit together in the log directory of a broker of ours that has stopped. It is core/log/inspect,
// for tests: when the broker stopped in order nothing is harmless.
package logcheck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
)

// Found is what a directory has.
type Found struct{ Partitions, Segments, Batches, OffsetEntries, TimeEntries int }

// Directory checks all partitions of a log directory. The error joins everything that is wrong. A directory that was offline when its
// broker stopped may have unfinished ends.
func Directory(dir string) (Found, error) {
	_, err := os.Stat(filepath.Join(dir, ".kafka_cleanshutdown"))
	inOrder := err == nil
	r, err := inspect.Verify(dir, inspect.Options{Exact: true})
	faults := []error{err}
	for _, f := range r.Findings {
		if inOrder || !f.Harmless {
			faults = append(faults, errors.New(f.String()))
		}
	}
	if n := r.Unlisted(); n > 0 {
		faults = append(faults, fmt.Errorf("and %d more", n))
	}
	return Found{r.Partitions, r.Segments, r.Batches, r.OffsetEntries, r.TimeEntries}, errors.Join(faults...)
}
