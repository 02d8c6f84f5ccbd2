package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// This file has what several of the requests about topics and configurations need.

// Operations that nobody was denied, as bits by AclOperation: there is no authorizer, so all that the resource has.
const (
	topicOperations   int32 = 3576 // read, write, create, delete, alter, describe, describe and alter configs
	clusterOperations int32 = 8096 // create, alter, describe, cluster action, describe and alter configs, idempotent write, tokens
	noOperations      int32 = -2147483648
)

// command has the controller carry out a command, and waits until it is done here.
func (h *handlers) command(ctx context.Context, r *Request, c controller.Event) error {
	r.Waiting()
	defer r.Resume()
	return h.Cluster.Controller.Do(ctx, c)
}

// awaitCluster waits until want is true of what this broker knows, for as long as the client is ready to wait.
func (h *handlers) awaitCluster(ctx context.Context, r *Request, millis int32, want func(*metadata.Snapshot) bool) (*metadata.Snapshot, bool) {
	if s := h.Cluster.Metadata.Snapshot(); want(s) {
		return s, true
	}
	r.Waiting()
	defer r.Resume()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(millis, 0))*time.Millisecond)
	defer cancel()
	s, err := h.Cluster.Metadata.Await(ctx, want)
	return s, err == nil
}

// led says whether all partitions of a topic have a leader.
func led(s *metadata.Snapshot, topic string, partitions int32) bool {
	t, ok := s.Topic(topic)
	if !ok || int32(len(t.Partitions)) < partitions {
		return false
	}
	for i := range t.Partitions {
		if t.Partitions[i].Leader < 0 {
			return false
		}
	}
	return true
}

// timedOut is what a client is told that wasn't ready to wait long enough. What it asked for is done, or will be.
func timedOut() error { return kerr.RequestTimedOut }

// timeoutMessage is message, but for a time-out, which Kafka sends without one.
func timeoutMessage(err error) *string {
	if code(err) == kerr.RequestTimedOut.Code {
		return nil
	}
	return message(err)
}

// duplicates are the names that stand in a list more than once.
func duplicates[T any](items []T, name func(*T) string) map[string]bool {
	seen, twice := make(map[string]bool, len(items)), map[string]bool{}
	for i := range items {
		n := name(&items[i])
		if seen[n] {
			twice[n] = true
		}
		seen[n] = true
	}
	return twice
}
