package probe

import (
	"encoding/json"
	"io"
	"sync"
)

// Result is the outcome of one check.
type Result struct {
	Client  string `json:"client"`
	Version string `json:"version"`
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail,omitempty"`
}

// The events a group member tells.
const (
	EventAssigned  = "assigned"  // Partitions is everything the member owns now
	EventRecord    = "record"    // it read the record at Partition and Offset
	EventCommitted = "committed" // the group will go on at Offset in Partition, and the broker has said so
)

// Event is something that happened to a group member.
type Event struct {
	Event      string  `json:"event"`
	Partitions []int32 `json:"partitions,omitempty"`
	Partition  int32   `json:"partition"`
	Offset     int64   `json:"offset"`
	Value      string  `json:"value,omitempty"`
}

// Lines writes JSON objects, one a line; any goroutine may use it.
type Lines struct {
	mu  sync.Mutex
	enc *json.Encoder
}

// NewLines returns Lines that go to w, each with one Write.
func NewLines(w io.Writer) *Lines {
	return &Lines{enc: json.NewEncoder(w)}
}

// Put writes v; a reader that is gone ends the program soon enough, so errors are not told.
func (l *Lines) Put(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.enc.Encode(v)
}
