//go:build !unix

package storagemmap

import (
	"fmt"
	"runtime"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// New says that this storage can't work here.
func New(Options) (storage.Storage, error) {
	return nil, fmt.Errorf("storage mmap doesn't work on %s, whose files can't change their length while mapped: choose storage sendfile", runtime.GOOS)
}
