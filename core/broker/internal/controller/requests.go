package controller

import (
	"context"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// asked does what is asked for through the coordination (election.Requests): by the commands that do the same for clients. What is
// done, and what is refused, is taken away there; a move stays until it has arrived, so that the next controller knows of it.
func (s *Session) asked(ctx context.Context) error {
	requests, err := s.o.Requests.List(ctx)
	if err != nil {
		return err
	}
	var done []election.Request
	var move AlterReassignments
	var moves []election.Request
	var elect ElectLeaders
	failed := map[int32]bool{}
	for _, r := range requests {
		k := tp{r.Topic, r.Partition}
		switch r.Kind {
		case election.DirFailed:
			failed[r.Broker] = true
			done = append(done, r)
		case election.ElectPreferred:
			elect.Partitions = append(elect.Partitions, PartitionID{r.Topic, r.Partition})
			done = append(done, r)
		case election.Reassign:
			if known, ok := s.moving[k]; ok && slices.Equal(known.Replicas, r.Replicas) {
				continue
			}
			move.Partitions = append(move.Partitions, Reassignment{PartitionID{r.Topic, r.Partition}, r.Replicas})
			moves = append(moves, r)
		}
	}
	for broker := range failed {
		if err := s.handle(ctx, LogDirFailed{broker}); err != nil {
			return err
		}
	}
	if len(moves) > 0 {
		if err := s.handle(ctx, &move); err != nil {
			return err
		}
		for i, r := range moves {
			if move.Results[i] != nil {
				done = append(done, r)
			} else {
				s.moving[tp{r.Topic, r.Partition}] = r
			}
		}
	}
	if len(elect.Partitions) > 0 {
		if err := s.handle(ctx, &elect); err != nil {
			return err
		}
	}
	if len(done) > 0 {
		if _, err := s.o.Requests.Done(ctx, s.term.Epoch(), done); err != nil {
			return err
		}
	}
	return s.arrived(ctx)
}

// arrived takes away what was asked for of moves that go on no more, or to somewhere else.
func (s *Session) arrived(ctx context.Context) error {
	var done []election.Request
	for k, r := range s.moving {
		p := s.machine.partition(k)
		if p == nil || !p.reassigning() || p.back || !slices.Equal(p.target(), r.Replicas) {
			done = append(done, r)
			delete(s.moving, k)
		}
	}
	if len(done) == 0 {
		return nil
	}
	_, err := s.o.Requests.Done(ctx, s.term.Epoch(), done)
	return err
}
