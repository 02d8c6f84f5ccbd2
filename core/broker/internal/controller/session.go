package controller

import (
	"context"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Session is one term of office: it gives events to a machine, carries the effects out, and gives it the answers. The loop of a
// [Controller] has one for each term. It belongs to one goroutine, and waits for nothing but the coordination.
type Session struct {
	o       Options
	machine *Machine
	term    election.Term
	moving  map[tp]election.Request // moves that were asked for through the coordination, and go on
}

// NewSession makes a session of a term. Its Rebalance is not looked at: events come from the caller.
func NewSession(o Options, term election.Term) *Session {
	return &Session{o: o, machine: NewMachine(o.Rules), term: term, moving: map[tp]election.Request{}}
}

// Begin takes over: it reads everything, and decides what is due. Errors as Handle's.
func (s *Session) Begin(ctx context.Context) error {
	brokers, err := s.o.Membership.Brokers(ctx)
	if err != nil {
		return err
	}
	topics, err := s.o.Metadata.Topics(ctx)
	if err != nil {
		return err
	}
	if err := s.Handle(ctx, Loaded{Epoch: s.term.Epoch(), Brokers: brokers, Topics: topics}); err != nil {
		return err
	}
	return s.asked(ctx)
}

// deal handles an event, or what is read because of it.
func (s *Session) deal(ctx context.Context, ev Event) error {
	if seen, ok := ev.(changesSeen); ok {
		return s.Changed(ctx, seen.changes)
	}
	return s.Handle(ctx, ev)
}

// Changed reads what watches reported as changed, and handles it. Errors as Handle's.
func (s *Session) Changed(ctx context.Context, changes []election.Change) error {
	var topics []string
	var members, requests, everything bool
	for _, ch := range changes {
		switch ch.Kind {
		case election.BrokersChanged:
			members = true
		case election.TopicChanged:
			topics = append(topics, ch.Topic)
		case election.RequestsChanged:
			requests = true
		case election.EverythingChanged:
			everything = true
		}
	}
	if members || everything {
		brokers, err := s.o.Membership.Brokers(ctx)
		if err != nil {
			return err
		}
		if err := s.Handle(ctx, BrokersChanged{brokers}); err != nil {
			return err
		}
	}
	if everything {
		all, err := s.o.Metadata.Topics(ctx)
		if err != nil {
			return err
		}
		if err := s.Handle(ctx, TopicsChanged{s.machine.names(all), all}); err != nil {
			return err
		}
	} else if len(topics) > 0 {
		if err := s.reread(ctx, topics); err != nil {
			return err
		}
	}
	if requests || everything {
		return s.asked(ctx)
	}
	return nil
}

func (s *Session) reread(ctx context.Context, names []string) error {
	ev, err := s.read(ctx, names)
	if err != nil {
		return err
	}
	return s.Handle(ctx, ev)
}

func (s *Session) read(ctx context.Context, names []string) (Event, error) {
	topics, err := s.o.Metadata.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	return TopicsChanged{names, topics}, nil
}

// Handle gives an event to the machine, and carries the effects out until none is left. The results of a command hold when it
// returns nil. After an error nobody knows what was done: the session is over, and the next one begins by reading everything.
// [election.ErrStaleController] when the term is over.
func (s *Session) Handle(ctx context.Context, ev Event) error {
	if err := s.handle(ctx, ev); err != nil {
		return err
	}
	if stop, ok := ev.(*ControlledShutdown); ok && stop.Err == nil {
		stop.Remaining = s.machine.remaining(stop.Broker)
	}
	return s.arrived(ctx)
}

func (s *Session) handle(ctx context.Context, ev Event) error {
	queue := s.machine.Handle(ev)
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if over(s.term) {
			return election.ErrStaleController
		}
		answer, err := s.execute(ctx, e)
		if err != nil {
			return err
		}
		if answer != nil {
			queue = append(queue, s.machine.Handle(answer)...)
		}
	}
	return nil
}

// execute carries out one effect and returns the event that answers it.
func (s *Session) execute(ctx context.Context, e Effect) (Event, error) {
	md, epoch := s.o.Metadata, s.term.Epoch()
	switch e := e.(type) {
	case WriteTopics:
		errs, err := md.CreateTopics(ctx, epoch, e.Topics)
		return topicsWritten{e, errs}, err
	case WriteAssignments:
		errs, err := md.SetAssignments(ctx, epoch, e.Assignments)
		return assignmentsWritten{e, errs}, err
	case WriteStates:
		results, err := md.UpdatePartitions(ctx, epoch, e.Updates)
		return statesWritten{e, results}, err
	case WriteMarks:
		errs, err := md.MarkDeleted(ctx, epoch, e.Topics)
		return marksWritten{e, errs}, err
	case WriteRemovals:
		errs, err := md.RemoveTopics(ctx, epoch, e.Topics)
		return removalsWritten{e, errs}, err
	case TakeMarksBack:
		_, err := s.o.Requests.Unmark(ctx, epoch, e.Topics)
		return marksTakenBack{}, err
	case Reread:
		return s.read(ctx, e.Topics)
	case Note:
		for _, ev := range e.Events {
			s.o.Journal.Record(ev)
		}
		return nil, nil
	case Push:
		resp := s.o.Pusher.Push(e.Broker, e.Epoch, e.Request)
		if resp == nil {
			return nil, nil
		}
		return Delivered{Broker: e.Broker, Epoch: e.Epoch, Request: e.Request, Response: resp}, nil
	}
	return nil, fmt.Errorf("controller: effect %T is not known", e)
}
