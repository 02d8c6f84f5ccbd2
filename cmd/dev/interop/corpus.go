package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// The corpus: whole files, each below the default limit of a record, until there are enough.
const (
	corpusFileMax  = 600 << 10
	corpusBytesMax = 3 << 20
	corpusFilesMin = 20
)

// writeCorpus chooses the files, writes the manifest to path and returns them. Timestamps lie in the last hours, so that
// no retention takes the records away, and differ from each other, so that each can be looked up.
func writeCorpus(ctx context.Context, e *task.Env, path string) ([]probe.File, error) {
	stdlib, err := e.Output(ctx, task.Command{Args: []string{"python3", "-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pattern := range []string{
		"/usr/share/common-licenses/*", // Debian's base-files; not there on other systems
		filepath.Join(strings.TrimSpace(stdlib), "pydoc_data", "*.py"),
		filepath.Join(strings.TrimSpace(stdlib), "*.py"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	files, err := chooseFiles(names, time.Now().Add(-2*time.Hour).Truncate(time.Millisecond))
	if err != nil {
		return nil, err
	}
	var manifest strings.Builder
	for _, f := range files {
		manifest.WriteString(f.Line())
	}
	return files, os.WriteFile(path, []byte(manifest.String()), 0o644)
}

func chooseFiles(names []string, begin time.Time) ([]probe.File, error) {
	var files []probe.File
	total := 0
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		size := int(info.Size())
		if !info.Mode().IsRegular() || size == 0 || size > corpusFileMax || total+size > corpusBytesMax {
			continue // an empty value and none at all are the same to some clients
		}
		f, err := probe.NewFile(filepath.Base(name), name, begin.Add(time.Duration(len(files))*time.Second))
		if err != nil {
			return nil, err
		}
		total += size
		files = append(files, f)
	}
	if len(files) < corpusFilesMin {
		return nil, errors.New("corpus: too few texts found on this machine (licences, Python's library)")
	}
	return files, nil
}
