package consensus

import (
	"context"

	"github.com/hashicorp/raft"
)

// await waits for raft's answer to a call, until ctx ends, or raft has been shut down: then raft.ErrRaftShutdown, and nobody knows what came of
// the call. All waits for raft go through it but those that raft answers at once, and that of Close for raft itself.
//
// Raft takes calls into queues, and a call that gets into one while raft shuts down is never answered (v1.8.0: api.go chooses by
// chance between a queue that has room and the end, and who empties the queues may be gone). Its goroutine here stays for as long as the
// process does: there is no other way to ask, and a process shuts down few servers.
func (n *Node) await(ctx context.Context, call raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- call.Error() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.down:
	}
	select {
	case err := <-answer: // it came together with the end
		return err
	default:
		return raft.ErrRaftShutdown
	}
}
