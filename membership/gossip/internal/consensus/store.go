package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
)

// defaultSegmentSize is how large the log's files are. Each is allocated ahead, and there are always two.
const defaultSegmentSize = 8 << 20

// snapshotsKept is how many snapshots there are: the last, and the one before it in case the last can't be read.
const snapshotsKept = 2

// store is where raft keeps its log, its vote and its snapshots.
type store struct {
	log       *wal.WAL // keeps the vote, too
	meta      *metadb.BoltMetaDB
	snapshots *raft.FileSnapshotStore
}

// openStore opens the store in a directory, or makes it: wal/ and snapshots/.
func openStore(dir string, segment int, log hclog.Logger) (s *store, err error) {
	defer guard(dir, &err)()
	if segment == 0 {
		segment = defaultSegmentSize
	}
	path := filepath.Join(dir, "wal")
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	s = &store{snapshots: snapshots, meta: &metadb.BoltMetaDB{}}
	if s.log, err = wal.Open(path, wal.WithLogger(log), wal.WithSegmentSize(segment), wal.WithMetaStore(s.meta)); err != nil {
		return nil, errors.Join(damaged(dir, err), s.meta.Close())
	}
	return s, nil
}

// damaged names the directory, and what to do when it is damaged.
func damaged(dir string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if errors.Is(err, types.ErrCorrupt) || errors.Is(err, bbolt.ErrInvalid) || errors.Is(err, bbolt.ErrChecksum) || errors.Is(err, bbolt.ErrVersionMismatch) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return fmt.Errorf("%s: %w; to go on without it, remove this server from the cluster, set its store aside (coordination reset) and start the broker again", dir, err)
}

// check reads what raft is going to read, so that damage is named before anything is joined: raft itself would panic.
func (s *store) check(dir string) (has bool, err error) {
	defer guard(dir, &err)()
	has, err = raft.HasExistingState(s.log, s.log, s.snapshots)
	if err != nil {
		return false, damaged(dir, err)
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return false, damaged(dir, err)
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return false, damaged(dir, err)
	}
	var l raft.Log
	for i := first; i <= last && i > 0; i++ {
		if err := s.log.GetLog(i, &l); err != nil {
			return false, damaged(dir, fmt.Errorf("%w: entry %d: %w", ErrCorrupt, i, err))
		}
	}
	if err := s.checkSnapshots(first); err != nil {
		return false, damaged(dir, err)
	}
	return has, nil
}

// checkSnapshots sees that the log begins where the last snapshot that can be read ends.
func (s *store) checkSnapshots(first uint64) error {
	metas, err := s.snapshots.List()
	if err != nil {
		return err
	}
	if len(metas) == 0 {
		if first > 1 {
			return fmt.Errorf("%w: its log begins at entry %d, and there is no snapshot of what was before", ErrCorrupt, first)
		}
		return nil
	}
	if first > metas[0].Index+1 {
		return fmt.Errorf("%w: its log begins at entry %d, and its last snapshot ends at %d", ErrCorrupt, first, metas[0].Index)
	}
	_, r, err := s.snapshots.Open(metas[0].ID)
	if err != nil {
		return fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, metas[0].ID, err)
	}
	return r.Close()
}

// close ends the use of the store. The log leaves the file that describes it open.
func (s *store) close() error { return errors.Join(s.log.Close(), s.meta.Close()) }

// guard makes an error of a panic: the libraries map files into memory, and trust what is in them.
func guard(dir string, err *error) (done func()) {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = damaged(dir, fmt.Errorf("%w: %v", ErrCorrupt, p))
		}
	}
}
