package partition

import (
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/log"
)

// Options is what a Manager works with.
type Options struct {
	// BrokerID is the id of this broker.
	BrokerID int32
	// BrokerEpoch is the epoch of this broker's registration; requests of the controller for an older one are refused.
	BrokerEpoch func() int64
	// Logs has the logs of this broker.
	Logs Logs
	// MinISR is the min.insync.replicas of a topic, as in force now.
	MinISR func(topic string) int
	// ReplicaLagTimeMax is replica.lag.time.max.ms.
	ReplicaLagTimeMax time.Duration
	// ProposeISR asks the controller to record another in-sync set; [Partition.ISRAnswered] brings the answer. It must not
	// block and not call back. Nil for a broker that can have no followers.
	ProposeISR func(ID, ISRProposal)
	// Alive says whether a broker is registered, as far as this one knows: others aren't taken into the in-sync set, and nobody waits for
	// what they have deleted. Nil: all are.
	Alive func(broker int32) bool
	// Throttled says whether what this broker sends for a replica that it leads, and what it fetches for one that follows, counts for the
	// quotas (KIP-73), as configured now. Nil: none does.
	Throttled func(ID) (leader, follower bool)
	// Sent is the quota of what goes to throttled followers that aren't in sync; nil is no limit.
	Sent *Quota
	// OnLeader, OnFollower and OnRemoved are told of a change of leadership after it was applied, in order per partition, on
	// the goroutine that applied it. They must not block. Each may be nil.
	OnLeader   func(id ID, leaderEpoch int32)
	OnFollower func(id ID, leaderEpoch int32)
	OnRemoved  func(id ID)

	Now    func() time.Time
	Logger *slog.Logger
	// Journal remembers who fell behind, and who leads since when; nil for none.
	Journal *journal.Journal
}

// Logs opens and deletes logs. Its methods may be called from any goroutine, for different partitions at the same time.
type Logs interface {
	// Open gives the log of a partition, configured as its topic is; a new one when there is none. isNew says that there
	// should be none (any log dir will do); otherwise a missing log is made only while no log dir is offline, for it may lie
	// in that one.
	Open(topic string, partition int32, isNew bool) (*log.Log, error)
	// Delete takes the log out of service and deletes its files, now or later. A log that isn't there is deleted without error.
	Delete(topic string, partition int32) error
}

// Manager holds the replicas of this broker. Its methods may be called from any goroutine.
type Manager struct {
	o Options

	// mu serialises changes: the controller's requests and what follows from them.
	mu              sync.Mutex
	controllerEpoch int32

	hosted atomic.Pointer[hosted]

	// trafficMu keeps replicas from going while what went in and out of all is added up.
	trafficMu sync.Mutex
	left      map[string]Traffic // by topic: of replicas that are gone
	gone      Traffic            // of topics that are gone
}

// hosted is an immutable snapshot of what the broker hosts. Requests look partitions up in it without a lock; a push of the
// controller replaces it once, however many partitions it brings.
type hosted struct {
	byID   map[ID]*Partition
	topics map[[16]byte]string
}

// NewManager makes a manager that hosts nothing yet: the controller's first LeaderAndIsr says what this broker serves.
func NewManager(o Options) *Manager {
	m := &Manager{o: o, controllerEpoch: -1}
	m.hosted.Store(&hosted{})
	return m
}

// Get finds the replica of a partition on this broker, leader or follower. ErrUnknownPartition when there is none.
func (m *Manager) Get(id ID) (*Partition, error) {
	if p, ok := m.hosted.Load().byID[id]; ok {
		return p, nil
	}
	return nil, ErrUnknownPartition
}

// ByTopicID is Get for a topic given by its id. ErrUnknownTopicID when this broker hosts no replica of that topic.
func (m *Manager) ByTopicID(topicID [16]byte, partition int32) (*Partition, error) {
	h := m.hosted.Load()
	topic, ok := h.topics[topicID]
	if !ok {
		return nil, ErrUnknownTopicID
	}
	if p, ok := h.byID[ID{topic, partition}]; ok {
		return p, nil
	}
	return nil, ErrUnknownPartition
}

// All walks the replicas hosted at the time of the call, in no particular order.
func (m *Manager) All() iter.Seq[*Partition] { return maps.Values(m.hosted.Load().byID) }

// Len is how many replicas this broker hosts.
func (m *Manager) Len() int { return len(m.hosted.Load().byID) }

// Configure puts a topic's configuration in force for all its replicas on this broker, at once.
func (m *Manager) Configure(topic string, c log.Config, minISR int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.All() {
		if p.id.Topic == topic {
			p.log.Configure(c)
			p.setMinISR(minISR)
			p.throttle(m.o.Throttled)
		}
	}
}

// FailDir takes all replicas in a failed log dir offline: whoever waits for them is told, and they serve nothing until the
// broker is restarted with a mended disk.
func (m *Manager) FailDir(dir string, cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.All() {
		if filepath.Dir(p.log.Dir()) == dir {
			p.takeOffline(fmt.Errorf("log dir %s: %w", dir, cause))
		}
	}
}

// StandDown makes this broker lead nothing any more, until the controller says so under a newer leader epoch. Whoever waits for followers is
// answered with ErrNotLeader, and asks the next leader. It is for a broker that stops and has others to go on: its followers don't come
// any more, be it that they have another leader, or that their requests aren't read.
func (m *Manager) StandDown() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.All() {
		p.standDown()
	}
}

// CheckISR lets each leader drop followers that lag, and no longer wait for brokers that are gone. It wants to be called every half of
// ReplicaLagTimeMax, and when Alive says something else than before.
func (m *Manager) CheckISR() {
	now := m.o.Now()
	for p := range m.All() {
		p.checkISR(now)
	}
}

// update replaces the snapshot. Called with mu held.
func (m *Manager) update(change func(h *hosted)) {
	old := m.hosted.Load()
	h := &hosted{byID: maps.Clone(old.byID), topics: maps.Clone(old.topics)}
	if h.byID == nil {
		h.byID, h.topics = map[ID]*Partition{}, map[[16]byte]string{}
	}
	change(h)
	m.hosted.Store(h)
}
