//go:build unix

package storagemmap

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// New makes the storage. It opens nothing; Start has to be called before use.
func New(o Options) (storage.Storage, error) {
	if runtime.GOOS == "openbsd" {
		return nil, errors.New("storage mmap doesn't work on openbsd, where maps and write(2) don't see each other's bytes: choose storage sendfile")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m := &mmapStorage{options: o}
	m.views.New = func() any { return &view{storage: m} }
	m.buffers.New = func() any { return new([copyBuffer]byte) }
	return m, nil
}

// errNotRunning is the answer of a storage that isn't started, or is stopped.
var errNotRunning = errors.New("storage mmap is not running")

// copyBuffer is how much of a view is copied at once to a writer that can't take the map.
const copyBuffer = 64 << 10

// mmapStorage implements storage.Storage. It has no goroutines; open segments belong to who opened them, and outlive Stop.
type mmapStorage struct {
	running atomic.Bool
	options Options
	budget  budget
	views   sync.Pool // of *view
	buffers sync.Pool // of *[copyBuffer]byte
}

func (m *mmapStorage) Start(context.Context) error {
	m.budget.limit = mapLimit(m.options.MaxMaps, systemMaps)
	m.running.Store(true)
	return nil
}

func (m *mmapStorage) Stop(context.Context) error {
	m.running.Store(false)
	return nil
}

func (m *mmapStorage) Create(path string, o storage.Options) (storage.Segment, error) {
	if !m.running.Load() {
		return nil, errNotRunning
	}
	var reserve int64
	if o.Preallocate {
		reserve = o.Capacity
	}
	f, err := segmentfile.Create(path, reserve)
	if err != nil {
		return nil, err
	}
	return &segment{storage: m, file: f, capacity: o.Capacity, reserved: reserve > 0}, nil
}

func (m *mmapStorage) Open(path string, o storage.Options) (storage.Segment, error) {
	if !m.running.Load() {
		return nil, errNotRunning
	}
	f, size, err := segmentfile.Open(path, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	g := &segment{storage: m, file: f, capacity: max(o.Capacity, size), readOnly: o.ReadOnly, length: size}
	g.sealed.Store(o.ReadOnly)
	g.size.Store(size)
	return g, nil
}
