package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

func isTooLarge(err error) bool { return errors.Is(err, offsets.ErrTooLarge) }

// Join joins a group and waits for the rebalance to complete, or for ctx. A client that has gone still counts as joined;
// its answer is dropped. NewID is filled in here.
func (m *Manager) Join(ctx context.Context, group string, r Join) JoinAnswer {
	refuse := func(err error) JoinAnswer { return JoinAnswer{Err: err, Generation: -1, MemberID: r.MemberID} }
	s, err := m.findValid(group)
	if err != nil {
		return refuse(err)
	}
	if r.Session < m.cfg.MinSession || r.Session > m.cfg.MaxSession {
		return refuse(ErrInvalidSession)
	}
	e, err := m.lock(s, group, r.MemberID == "")
	if err != nil {
		return refuse(err)
	}
	if e == nil {
		return refuse(ErrUnknownMember)
	}
	r.NewID = newMemberID(r.ClientID, r.InstanceID)
	t, ch := e.ticket()
	e.deliver(e.group.Join(time.Now(), t, r))
	e.finish(true)
	a, err := e.wait(ctx, t, ch)
	if err != nil {
		return refuse(err)
	}
	return *a.Join
}

// Sync asks for a member's assignment and waits for it, or for ctx.
func (m *Manager) Sync(ctx context.Context, group string, r Sync) SyncAnswer {
	e, err := m.member(group)
	if err != nil {
		return SyncAnswer{Err: err}
	}
	t, ch := e.ticket()
	e.deliver(e.group.Sync(time.Now(), t, r))
	e.finish(true)
	a, err := e.wait(ctx, t, ch)
	if err != nil {
		return SyncAnswer{Err: err}
	}
	return *a.Sync
}

// member gives the group, locked, for a request of one of its members.
func (m *Manager) member(group string) (*entry, error) {
	s, err := m.findValid(group)
	if err != nil {
		return nil, err
	}
	e, err := m.lock(s, group, false)
	if err == nil && e == nil {
		err = ErrUnknownMember
	}
	return e, err
}

// wait waits for an answer. Whoever stops waiting gives up the answer alone.
func (e *entry) wait(ctx context.Context, t Ticket, ch chan Answer) (Answer, error) {
	select {
	case a := <-ch:
		return a, nil
	default:
	}
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiting, t)
		return Answer{}, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

// Heartbeat keeps a member's session alive. While the group is loading, members are told to go on.
func (m *Manager) Heartbeat(group string, who Member) error {
	e, err := m.member(group)
	if errors.Is(err, ErrLoading) {
		return nil
	}
	if err != nil {
		return err
	}
	fx, err := e.group.Heartbeat(time.Now(), who)
	e.deliver(fx)
	e.finish(false)
	return err
}

// Leave takes members out of a group: an error or nil for each of them, or one for the whole request.
func (m *Manager) Leave(group string, leaving []Leaving) ([]error, error) {
	e, err := m.member(group)
	if errors.Is(err, ErrUnknownMember) {
		errs := make([]error, len(leaving))
		for i := range errs {
			errs[i] = err
		}
		return errs, nil
	}
	if err != nil {
		return nil, err
	}
	errs, fx, err := e.group.Leave(time.Now(), leaving)
	e.deliver(fx)
	e.finish(false)
	return errs, err
}

// Commit stores offsets of a group and waits until they are as durable as the store promises. Partitions whose metadata
// is too large are in tooLarge and not committed; all others have the one outcome. When ctx ends first, the offsets may
// be stored all the same.
func (m *Manager) Commit(ctx context.Context, group string, r Commit) (tooLarge map[TopicPartition]bool, err error) {
	s, err := m.find(group)
	if err != nil {
		return nil, err
	}
	e, err := m.lock(s, group, r.Generation < 0)
	switch {
	case err != nil:
		return nil, err
	case e == nil: // of an older life of the group
		return nil, ErrIllegalGeneration
	}
	tooLarge = map[TopicPartition]bool{}
	for tp, o := range r.Offsets {
		if len(o.Metadata) > m.cfg.MaxMetadata {
			tooLarge[tp] = true
			delete(r.Offsets, tp)
		}
	}
	t, ch := e.ticket()
	fx, err := e.group.Commit(time.Now(), t, r)
	if err != nil {
		delete(e.waiting, t)
		e.deliver(fx)
		e.finish(false)
		return nil, err
	}
	e.deliver(fx)
	e.finish(true)
	a, err := e.wait(ctx, t, ch)
	if err == nil {
		err = a.Err
	}
	return tooLarge, err
}

// Fetch gives the committed offsets of partitions, in order, or of all that have one when partitions is nil. A group that
// does not exist has none.
func (m *Manager) Fetch(group string, partitions []TopicPartition, stable bool) ([]Fetched, error) {
	s, err := m.find(group)
	if err != nil {
		return nil, err
	}
	e, err := m.lock(s, group, false)
	if err != nil {
		return nil, err
	}
	if e == nil {
		list := make([]Fetched, 0, len(partitions))
		for _, tp := range partitions {
			list = append(list, Fetched{TopicPartition: tp, Offset: noOffset})
		}
		return list, nil
	}
	defer e.mu.Unlock()
	return e.group.Fetch(partitions, stable), nil
}

// Delete removes a group that has no members, and waits until that is stored.
func (m *Manager) Delete(ctx context.Context, group string) error {
	s, err := m.find(group)
	if err != nil {
		return err
	}
	e, err := m.lock(s, group, false)
	if err == nil && e == nil {
		err = ErrGroupNotFound
	}
	if err != nil {
		return err
	}
	t, ch := e.ticket()
	fx, err := e.group.Delete(time.Now(), t)
	return e.removal(ctx, t, ch, err, err != nil, fx)
}

// removal ends an event that may have a write to wait for.
func (e *entry) removal(ctx context.Context, t Ticket, ch chan Answer, err error, done bool, fx Effects) error {
	if done {
		delete(e.waiting, t)
	}
	e.deliver(fx)
	e.finish(true)
	if done {
		return err
	}
	a, err := e.wait(ctx, t, ch)
	if err != nil {
		return err
	}
	return a.Err
}

// DeleteOffsets removes committed offsets, and waits until that is stored. Partitions in refused belong to topics that the
// group reads; their offsets stay.
func (m *Manager) DeleteOffsets(ctx context.Context, group string, partitions []TopicPartition) (refused map[TopicPartition]bool, err error) {
	s, err := m.findValid(group)
	if err != nil {
		return nil, err
	}
	e, err := m.lock(s, group, false)
	if err == nil && e == nil {
		err = ErrGroupNotFound
	}
	if err != nil {
		return nil, err
	}
	t, ch := e.ticket()
	refused, done, fx, err := e.group.DeleteOffsets(time.Now(), t, partitions)
	return refused, e.removal(ctx, t, ch, err, done, fx)
}

// Describe describes a group; one that does not exist is Dead.
func (m *Manager) Describe(group string) (Description, error) {
	dead := Description{ID: group, State: Dead}
	s, err := m.find(group)
	if err != nil {
		return dead, err
	}
	e, err := m.lock(s, group, false)
	if err != nil || e == nil {
		return dead, err
	}
	defer e.mu.Unlock()
	return e.group.Describe(), nil
}

// List lists the groups that this broker coordinates, in order of their ids. With ErrLoading the list has only those that
// are loaded.
func (m *Manager) List() ([]Overview, error) {
	m.mu.RLock()
	var err error
	var shards []*shard
	for _, s := range m.shards {
		if s.loading {
			err = ErrLoading
			continue
		}
		shards = append(shards, s)
	}
	if m.stopped {
		err = ErrUnavailable
	}
	m.mu.RUnlock()
	var list []Overview
	for _, s := range shards {
		for _, e := range s.all() {
			e.mu.Lock()
			if o := e.group.Overview(); !e.gone && o.State != Dead {
				list = append(list, o)
			}
			e.mu.Unlock()
		}
	}
	slices.SortFunc(list, func(a, b Overview) int { return strings.Compare(a.ID, b.ID) })
	return list, err
}

// Expire removes what is too old from all groups. It returns when that is stored, or ctx ends.
func (m *Manager) Expire(ctx context.Context) {
	m.each(ctx, true, func(e *entry) { e.deliver(e.group.Expire(time.Now())) })
}

// TopicDeleted has everything removed that groups committed for a topic. It does not wait until that is stored, but what is
// committed after its return, for a new topic of that name, stays: writes of a group keep their order. A group that is loading
// keeps its offsets until they expire.
func (m *Manager) TopicDeleted(topic string) {
	m.each(m.ctx, false, func(e *entry) { e.deliver(e.group.DropTopic(time.Now(), topic)) })
}

// each does something to every loaded group, and stores what comes of it here if it may wait.
func (m *Manager) each(ctx context.Context, mayWait bool, event func(e *entry)) {
	m.mu.RLock()
	var shards []*shard
	for _, s := range m.shards {
		if !s.loading {
			shards = append(shards, s)
		}
	}
	m.mu.RUnlock()
	for _, s := range shards {
		for _, e := range s.all() {
			if ctx.Err() != nil {
				return
			}
			e.mu.Lock()
			if e.gone {
				e.mu.Unlock()
				continue
			}
			event(e)
			e.finish(mayWait)
		}
	}
}
