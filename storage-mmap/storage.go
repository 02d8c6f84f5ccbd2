// Package storagemmap is the storage that maps segments into memory: small appends are copies into the map, without a
// system call, and views are parts of the map, which the kernel sends without a copy in this process.
// README.md says when to choose it, FORMAT.md what is on disk and after a crash; the contract is package storage.
//
// The map and the file descriptor are two doors to the same page cache. Each access takes the cheaper one: a large append
// is one pwrite(2), since that costs less than the page faults of a copy; a large read that has to end up in Go memory is
// one pread(2), since a goroutine that waits for the disk in a system call gives its thread back, and one that waits in a
// page fault does not. Go code itself touches the map only in guard.go, where a fault becomes an error.
package storagemmap

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Options are the YAML options of the storage.
type Options struct {
	// CopyBelow is the length from which on appends and reads go through system calls instead of the map.
	CopyBelow config.ByteSize `yaml:"copy_below" doc:"appends and reads shorter than this are copies into and out of the map, longer ones are pwrite(2) and pread(2)"`
	// MinGrowth is the length up to which nothing is allocated ahead, and the least that is beyond it.
	MinGrowth config.ByteSize `yaml:"min_growth" doc:"a segment up to this size is written without a map; beyond it as many bytes are allocated ahead as it has, up to max_growth"`
	// MaxGrowth is the most that is allocated ahead.
	MaxGrowth config.ByteSize `yaml:"max_growth" doc:"the most bytes that are allocated ahead of the appends to a segment"`
	// MaxMaps is the most segments that are mapped at the same time.
	MaxMaps int64 `yaml:"max_maps" doc:"the most maps at the same time; segments beyond go through system calls. Keep it well below vm.max_map_count: a process that has used that up ends"`
}

const (
	pageSize  = 4 << 10 // the smallest of any system; only the unit of growth
	maxGrowth = 1 << 30
)

// DefaultOptions are the options of a configuration that names none.
func DefaultOptions() Options {
	return Options{CopyBelow: 4 << 10, MinGrowth: 64 << 10, MaxGrowth: 8 << 20, MaxMaps: 30_000}
}

// Validate reports every option that is out of range.
func (o Options) Validate() error {
	var faults []error
	if o.CopyBelow < 0 {
		faults = append(faults, config.At("copy_below", fmt.Errorf("%d is negative", o.CopyBelow)))
	}
	if o.MinGrowth < pageSize || o.MinGrowth > maxGrowth {
		faults = append(faults, config.At("min_growth", fmt.Errorf("%v is out of range, want %v to %v",
			o.MinGrowth, config.ByteSize(pageSize), config.ByteSize(maxGrowth))))
	}
	if o.MaxGrowth < o.MinGrowth || o.MaxGrowth > maxGrowth {
		faults = append(faults, config.At("max_growth", fmt.Errorf("%v is out of range, want min_growth (%v) to %v",
			o.MaxGrowth, o.MinGrowth, config.ByteSize(maxGrowth))))
	}
	if o.MaxMaps < 0 {
		faults = append(faults, config.At("max_maps", fmt.Errorf("%d is negative", o.MaxMaps)))
	}
	return config.Join(faults...)
}

// NewFactory makes the factory for compositions; configurations call it "mmap".
func NewFactory() storage.Factory {
	return plugin.NewFactory("mmap", "segments written and sent through memory maps", DefaultOptions,
		func(o Options, _ storage.Settings) (storage.Storage, error) { return New(o) })
}
