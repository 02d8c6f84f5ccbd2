package replication

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// Versions are those of the requests that followers send. Brokers don't negotiate them: inter.broker.protocol.version says them.
type Versions struct {
	Fetch                int16 // 12 or more
	ListOffsets          int16
	OffsetForLeaderEpoch int16
}

// Options are what a Manager works with.
type Options struct {
	// BrokerID is the id of this broker; BrokerEpoch the epoch of its registration.
	BrokerID    int32
	BrokerEpoch func() int64
	// Partitions are the replicas of this broker.
	Partitions *partition.Manager
	// Dial connects to another broker.
	Dial     func(ctx context.Context, broker int32) (*wire.Client, error)
	Versions Versions

	Fetchers          int           // num.replica.fetchers
	MaxWait           time.Duration // replica.fetch.wait.max.ms
	MinBytes          int           // replica.fetch.min.bytes
	MaxBytes          int           // replica.fetch.response.max.bytes
	PartitionMaxBytes int           // replica.fetch.max.bytes
	Backoff           time.Duration // replica.fetch.backoff.ms: the longest pause after an error
	Timeout           time.Duration // replica.socket.timeout.ms

	// Quota is that of what throttled partitions fetch while they lag; nil is no limit.
	Quota *partition.Quota

	Now    func() time.Time
	Logger *slog.Logger
	// Journal remembers which leaders couldn't be reached, and what replicas lost; nil for none.
	Journal *journal.Journal
}

// Manager fetches for all replicas of this broker that follow. Its methods may be called from any goroutine, and don't block, save Stop.
type Manager struct {
	o      Options
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	done   sync.WaitGroup // the fetchers

	mu       sync.Mutex
	stopped  bool
	count    int // num.replica.fetchers
	fetchers map[fetcherID]*fetcher
	assigned map[partition.ID]*fetcher
}

// fetcherID names a fetcher: the leader that it asks, and one of num.replica.fetchers numbers.
type fetcherID struct {
	leader int32
	number int
}

// New makes a manager that fetches nothing yet.
func New(o Options) *Manager {
	m := &Manager{o: o, count: max(o.Fetchers, 1), fetchers: map[fetcherID]*fetcher{}, assigned: map[partition.ID]*fetcher{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Follow begins to fetch a partition from the leader that it follows now, in the place of an earlier one. It is what
// partition.Options.OnFollower wants to call. A partition without a leader isn't fetched.
func (m *Manager) Follow(id partition.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.assign(id)
}

// Unfollow ends fetching a partition: it leads now, or is gone.
func (m *Manager) Unfollow(id partition.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unassign(id)
}

// SetFetchers changes num.replica.fetchers. Partitions that another fetcher has from now on go on where they are.
func (m *Manager) SetFetchers(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n = max(n, 1); n == m.count {
		return
	}
	m.count = n
	for id := range m.assigned {
		m.assign(id)
	}
}

// Stop ends all fetchers. When it returns, nothing is appended to a follower any more.
func (m *Manager) Stop(ctx context.Context) error {
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	m.cancel()
	ended := make(chan struct{})
	go func() {
		m.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// assign gives a partition to the fetcher that it belongs to now, which begins with a new state. Called with mu held.
func (m *Manager) assign(id partition.ID) {
	p, err := m.o.Partitions.Get(id)
	var leader int32
	if err == nil {
		leader, _, err = p.Following()
	}
	if err != nil || m.stopped || leader == m.o.BrokerID {
		m.unassign(id)
		return
	}
	key := fetcherID{leader, fetcherOf(id, m.count)}
	f := m.fetchers[key]
	if old := m.assigned[id]; old != nil && old != f {
		m.unassign(id)
	}
	if f == nil {
		f = newFetcher(m, key)
		m.fetchers[key] = f
		m.done.Go(f.run)
	}
	m.assigned[id] = f
	f.change(id, p)
}

// unassign takes a partition from its fetcher. Called with mu held.
func (m *Manager) unassign(id partition.ID) {
	if f := m.assigned[id]; f != nil {
		delete(m.assigned, id)
		f.change(id, nil)
	}
}
