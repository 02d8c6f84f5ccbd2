//go:build unix

package storagemmap

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// mapping is a range of memory in which a file is mapped from its beginning, counted so that it outlives the segment's
// use of it for as long as a view needs it.
type mapping struct {
	data     []byte
	writable bool
	users    atomic.Int64
	budget   *budget
}

// budget bounds the number of maps. A process that has as many as the system allows can't get memory any more: the Go
// runtime would end it. So the storage stays well below, and goes on without maps.
type budget struct {
	limit int64 // set by Start
	used  atomic.Int64
}

func (b *budget) take() bool {
	if b.used.Add(1) > b.limit {
		b.used.Add(-1)
		return false
	}
	return true
}

var errBudget = errors.New("there are as many maps as may be")

// newMapping maps length bytes, which may be more than the file has by now: what lies beyond its end can be touched as
// soon as the file has grown. The maker is its first user. The caller must be a user of the file.
func newMapping(f *segmentfile.File, length int64, writable bool, b *budget) (*mapping, error) {
	if !b.take() {
		return nil, errBudget
	}
	protection := unix.PROT_READ
	if writable {
		protection |= unix.PROT_WRITE
	}
	data, err := unix.Mmap(f.Fd(), 0, int(length), protection, unix.MAP_SHARED)
	if err != nil {
		b.used.Add(-1)
		return nil, err
	}
	m := &mapping{data: data, writable: writable, budget: b}
	m.users.Store(1)
	return m, nil
}

// retain adds a user, unless the last has gone.
func (m *mapping) retain() bool {
	for {
		users := m.users.Load()
		if users == 0 {
			return false
		}
		if m.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// share adds a user on behalf of one that is there already.
func (m *mapping) share() { m.users.Add(1) }

// release takes a user away; the last one unmaps. The only error that munmap(2) could give is that of wrong arguments.
func (m *mapping) release() {
	if m.users.Add(-1) == 0 {
		_ = unix.Munmap(m.data)
		m.budget.used.Add(-1)
	}
}
