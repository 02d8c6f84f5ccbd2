package electiontest

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Ask puts a request there, as tools of older days do. One for the same partition is replaced.
func (m *Memory) Ask(r election.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Replicas = slices.Clone(r.Replicas)
	m.requests = slices.DeleteFunc(m.requests, func(o election.Request) bool {
		return r.Kind != election.DirFailed && o.Kind == r.Kind && o.Topic == r.Topic && o.Partition == r.Partition
	})
	m.requests = append(m.requests, r)
	m.tell(election.Change{Kind: election.RequestsChanged})
}

// memoryRequests implements election.Requests.
type memoryRequests struct{ c *memoryMember }

func (s memoryRequests) List(ctx context.Context) (all []election.Request, err error) {
	err = s.c.do(ctx, func(m *Memory) error {
		for _, r := range m.requests {
			r.Replicas = slices.Clone(r.Replicas)
			all = append(all, r)
		}
		return nil
	})
	return all, err
}

func (s memoryRequests) Watch(ctx context.Context) (election.Watch, error) {
	return s.c.watch(ctx, func(k election.ChangeKind) bool { return k == election.RequestsChanged })
}

func (s memoryRequests) Done(ctx context.Context, epoch int32, requests []election.Request) ([]error, error) {
	return memoryMetadata(s).write(ctx, "Done", epoch, len(requests), func(m *Memory, i int) error {
		m.requests = slices.DeleteFunc(m.requests, func(r election.Request) bool { return reflect.DeepEqual(r, requests[i]) })
		m.tell(election.Change{Kind: election.RequestsChanged})
		return nil
	})
}

func (s memoryRequests) ReportDirFailure(ctx context.Context, id int32) error {
	return s.c.do(ctx, func(m *Memory) error {
		if id < 0 {
			return election.ErrInvalid
		}
		m.reports++
		m.requests = append(m.requests, election.Request{Kind: election.DirFailed, Broker: id, ID: fmt.Sprint(m.reports)})
		m.tell(election.Change{Kind: election.RequestsChanged})
		return nil
	})
}

func (s memoryRequests) Unmark(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	return memoryMetadata(s).write(ctx, "Unmark", epoch, len(topics), func(m *Memory, i int) error {
		if t, ok := m.topics[topics[i]]; ok && t.Deleting {
			t.Deleting = false
			m.topics[topics[i]] = t
			m.tellTopic(topics[i])
		}
		return nil
	})
}
