package consensus

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// Config is what a Node is made of.
type Config struct {
	// ID is the server's id in raft: never that of another server, for ever.
	ID string
	// Address is where others reach this server's coordination port.
	Address string
	// Dir is the directory of the store, which exists and is locked by the caller (LockDir).
	Dir string
	// Raft gives the connections that carry raft's messages, Requests those that carry requests. Close closes both.
	Raft, Requests net.Listener
	// DialRaft and DialRequests open such connections to a server at an address.
	DialRaft, DialRequests func(ctx context.Context, server, address string) (net.Conn, error)
	// Locate says where a server is now, as far as that is known by other means than raft's configuration, else "".
	Locate func(server string) string
	// Timings are how long things take.
	Timings Timings
	// SnapshotThreshold is how many entries the log may hold before they are replaced by a snapshot.
	SnapshotThreshold int
	// SegmentSize is how large the files of the log are that are allocated ahead, in bytes; 0 is 8 MiB.
	SegmentSize int
	// Logger is told what an operator should know.
	Logger *slog.Logger
	// Observer is called with the state and what may have changed, after commands were applied: by one goroutine at a time, that of raft, which waits
	// for it. It must not call the Node. Nil is nobody.
	Observer Observer
}

// Timings are how long things take.
type Timings struct {
	Session   time.Duration // after which a silent server's session ends
	Heartbeat time.Duration // after which a voter that hears nothing of the leader stands for election
	Election  time.Duration // that a candidate waits for votes
	Lease     time.Duration // that a leader which hears of no majority stays leader; at most Heartbeat
	Snapshot  time.Duration // between two looks at whether a snapshot is due; 0 is 30 s
	// Commit is after how long, and at the latest after twice that, servers are told what was decided which they couldn't be told at
	// once. It costs an idle leader a message to each of them. 0 is 500 ms.
	Commit time.Duration
}

// Patience is how long a write or read tries to find a leader before it fails.
func (t Timings) Patience() time.Duration {
	return max(3*time.Second, 4*(t.Heartbeat+t.Election)+t.Heartbeat)
}

// Doubt is how long after a heartbeat that was answered was sent a server must take its session for lost. The leader counts the whole session, and
// from when it received the heartbeat, which was later; so the eighth that is left is only for clocks that don't run equally fast, and for the time
// from when the session ends here until whoever holds something of it has stopped.
func (t Timings) Doubt() time.Duration { return t.Session * 7 / 8 }

// Errors about the store. They are wrapped with the directory and what to do.
var (
	// ErrInUse says that another process has the directory.
	ErrInUse = errors.New("in use by another process")
	// ErrCorrupt says that the store is damaged.
	ErrCorrupt = errors.New("raft store is damaged")
)

// Server is one of raft's configuration.
type Server struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}
