// Package storagesendfile is the storage that appends with pwrite(2) and sends with sendfile(2): bytes go from the page
// cache to the socket without passing through memory of this process. It works on every file system, and maps nothing.
// README.md says when to choose it; the contract is package storage.
//
// Where sendfile(2) can't be used (another system than Linux, TLS, any writer that isn't a *net.TCPConn) views are copied
// through a pooled buffer.
package storagesendfile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// Options are the YAML options of the storage.
type Options struct {
	// Chunk is the most that one sendfile(2) call moves.
	Chunk config.ByteSize `yaml:"chunk" doc:"the most bytes that one sendfile(2) call moves; a call also ends when the socket's send buffer is full"`
	// Reserve is the most that is reserved ahead.
	Reserve config.ByteSize `yaml:"reserve" doc:"the most bytes of disk that are reserved ahead of the appends to a segment (beyond 64 KiB, as many as it has); 0 for none"`
}

const (
	minChunk = 4 << 10
	maxChunk = 16 << 20

	maxReserve = 1 << 30

	// copyBuffer is how much is copied at a time where sendfile can't be used.
	copyBuffer = 32 << 10
)

// DefaultOptions are the options of a configuration that names none.
func DefaultOptions() Options { return Options{Chunk: 1 << 20, Reserve: 8 << 20} }

// Validate reports every option that is out of range.
func (o Options) Validate() error {
	var errs []error
	if o.Chunk < minChunk || o.Chunk > maxChunk {
		errs = append(errs, config.At("chunk", fmt.Errorf("%v is out of range, want %v to %v",
			o.Chunk, config.ByteSize(minChunk), config.ByteSize(maxChunk))))
	}
	if o.Reserve < 0 || o.Reserve > maxReserve {
		errs = append(errs, config.At("reserve", fmt.Errorf("%v is out of range, want 0 to %v", o.Reserve, config.ByteSize(maxReserve))))
	}
	return config.Join(errs...)
}

// NewFactory makes the factory for compositions; configurations call it "sendfile".
func NewFactory() storage.Factory {
	return plugin.NewFactory("sendfile", "segments written with pwrite(2), sent with sendfile(2)", DefaultOptions,
		func(o Options, _ storage.Settings) (storage.Storage, error) { return New(o) })
}

// New makes the storage. It opens nothing; Start has to be called before use.
func New(o Options) (*Storage, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Storage{chunk: int(o.Chunk), reserve: o.Reserve}
	s.views.New = func() any { return newView(s) }
	s.buffers.New = func() any {
		b := make([]byte, copyBuffer)
		return &b
	}
	return s, nil
}

// errNotRunning is the answer of a storage that isn't started, or is stopped.
var errNotRunning = errors.New("storage sendfile is not running")

// Storage implements storage.Storage. It has no goroutines; open segments belong to who opened them, and outlive Stop.
type Storage struct {
	running atomic.Bool
	chunk   int
	reserve config.ByteSize
	views   sync.Pool // of *view
	buffers sync.Pool // of *[]byte, each copyBuffer long
}

// Start allows Create and Open.
func (s *Storage) Start(context.Context) error {
	s.running.Store(true)
	return nil
}

// Stop ends Create and Open.
func (s *Storage) Stop(context.Context) error {
	s.running.Store(false)
	return nil
}

// Create makes the segment file at path; see storage.Storage. With Options.Preallocate its blocks are reserved beyond the
// end of the file, whose length stays true.
func (s *Storage) Create(path string, o storage.Options) (storage.Segment, error) {
	if !s.running.Load() {
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
	return &segment{storage: s, file: f, capacity: o.Capacity, surplus: reserve > 0, reserve: reserve}, nil
}

// Open opens the segment file at path; see storage.Storage.
func (s *Storage) Open(path string, o storage.Options) (storage.Segment, error) {
	if !s.running.Load() {
		return nil, errNotRunning
	}
	f, size, err := segmentfile.Open(path, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	g := &segment{storage: s, file: f, capacity: max(o.Capacity, size), readOnly: o.ReadOnly, sealed: o.ReadOnly}
	g.size.Store(size)
	return g, nil
}
