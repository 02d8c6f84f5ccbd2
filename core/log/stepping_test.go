package log

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// steppingStorage tells of each change that it is about to make, and of each one that it made.
type steppingStorage struct {
	plainStorage
	step   func(op, path string)
	copies []dirCopy
}

type dirCopy struct{ name, dir string }

func (s *steppingStorage) tell(op, path string) {
	if s.step != nil {
		s.step(op, path)
	}
}

func (s *steppingStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	s.tell("before create", path)
	seg, err := s.plainStorage.Create(path, o)
	s.tell("after create", path)
	return &steppingSegment{seg.(*plainSegment), s}, err
}

func (s *steppingStorage) Open(path string, o storage.Options) (storage.Segment, error) {
	seg, err := s.plainStorage.Open(path, o)
	if err != nil {
		return nil, err
	}
	return &steppingSegment{seg.(*plainSegment), s}, nil
}

type steppingSegment struct {
	*plainSegment
	st *steppingStorage
}

func (s *steppingSegment) Append(b []byte) (int64, error) {
	pos, err := s.plainSegment.Append(b)
	s.st.tell("append", s.path)
	return pos, err
}

func (s *steppingSegment) Sync() error {
	s.st.tell("before sync", s.path)
	return s.plainSegment.Sync()
}

func (s *steppingSegment) Remove() error {
	s.st.tell("before remove", s.path)
	return s.plainSegment.Remove()
}

// Rename also tells of the states in which some of the indexes, which are renamed after the data, have followed. The data of
// a widened segment are renamed alone.
func (s *steppingSegment) Rename(path string) error {
	from := s.path
	s.st.tell("before rename", from)
	if err := s.plainSegment.Rename(path); err != nil {
		return err
	}
	s.st.tell("after rename", path)
	if s.st.step == nil || strings.HasSuffix(from, tmpSuffix) {
		return nil
	}
	last := s.st.copies[len(s.st.copies)-1]
	for i, suffix := range []string{indexSuffix, timeSuffix} {
		dir := filepath.Join(filepath.Dir(last.dir), fmt.Sprintf("%s+%d", filepath.Base(last.dir), i))
		if err := os.CopyFS(dir, os.DirFS(last.dir)); err != nil {
			return err
		}
		ending := func(path, suffix string) string {
			return filepath.Join(dir, strings.Replace(filepath.Base(path), logSuffix, suffix, 1))
		}
		if err := os.Rename(ending(from, suffix), ending(path, suffix)); err != nil {
			return err
		}
		s.st.copies = append(s.st.copies, dirCopy{last.name + " and " + suffix, dir})
		last.dir = dir
	}
	return nil
}

func copyDir(t testing.TB, dir, op, path string) dirCopy {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return dirCopy{op + " " + filepath.Base(path), to}
}
