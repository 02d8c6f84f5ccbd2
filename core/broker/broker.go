package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/broker/internal/placement"
	"github.com/barnabas-mq/barnabas/core/broker/internal/producerid"
	"github.com/barnabas-mq/barnabas/core/broker/internal/replication"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Broker is one broker. Start and Stop are called by one goroutine, once each; the rest may be called from any.
type Broker struct {
	o   Options
	log *slog.Logger

	// stop undoes what Start has done so far, the last first. It is what Stop does, and Start when it fails.
	mu      sync.Mutex
	stop    []undo
	failure error         // why the broker can't go on
	failed  chan struct{} // closed when it can't

	id        int32
	clusterID string
	epoch     atomic.Int64 // of the registration; -1 before
	journal   *journal.Journal
	phase     atomic.Pointer[phase]
	lostAt    atomic.Int64  // when the registration was lost, in Unix nanoseconds; 0 while there is one
	lost      chan struct{} // closed when the registration is lost, and replaced when there is another one; guarded by mu
	addresses atomic.Pointer[[]kafka.Listener]
	serving   atomic.Bool   // all rooms below are there
	ready     chan struct{} // closed when clients are answered

	admin    *adminhttp.Server // nil without one
	requests *meter.Requests
	flushes  meter.Histogram

	storage      storage.Storage
	codecs       *compression.Set
	partitioners *partitioner.Set
	coordination election.Coordination
	offsets      offsets.Store

	dirs       []*log.Dir
	dirReports *dirReports
	logs       *log.Manager
	configs    *metadata.Configs
	cache      *metadata.Cache
	partitions *partition.Manager
	followers  *replication.Manager
	isr        *replication.ISR
	sent       *partition.Quota // of what goes to throttled followers
	fetched    *partition.Quota // of what throttled followers here fetch
	placement  *placement.Checks
	groups     *group.Manager
	controller *controller.Controller
	control    *control
	peers      *peers.Peers
	asker      *peers.Asker
	markers    *txn.Receiver
	creating   *peers.Channel // for topics that clients' interest creates
	server     *wire.Server

	producerIDs  *producerid.IDs
	transactions *txn.Manager
}

// undo is one step of stopping.
type undo struct {
	what string
	f    func(context.Context) error
}

// New composes a broker. It opens nothing: what can be wrong with the outside shows in Start.
func New(o Options) (*Broker, error) {
	if o.Storage == nil || o.Election == nil || o.Offsets == nil {
		return nil, errors.New("broker: a storage, an election and an offsets store are needed")
	}
	b := &Broker{o: o, log: o.Logger, id: -1, requests: meter.NewRequests(), ready: make(chan struct{}), failed: make(chan struct{}),
		journal: journal.New(journal.DefaultEvents, journal.DefaultPerSubject, time.Now)}
	if b.log == nil {
		b.o.Logger = slog.New(slog.DiscardHandler)
	}
	b.log = b.o.Logger
	b.log = b.logger(logging.Root)
	b.epoch.Store(-1)
	b.enter(notStarted)
	return b, nil
}

// ID is the broker's id, known once Start has returned.
func (b *Broker) ID() int32 { return b.id }

// Advertised lists what clients are told to connect to. It is known once Start has returned.
func (b *Broker) Advertised() []kafka.Listener {
	if p := b.addresses.Load(); p != nil {
		return *p
	}
	return nil
}

// Start brings the broker up and returns when it serves. It waits for recovery, however long that takes, unless ctx ends.
// After an error, or when ctx ended, nothing is left running; Stop may be called all the same.
func (b *Broker) Start(ctx context.Context) error {
	begin := time.Now()
	for _, step := range []struct {
		what string // as somebody reads who asks why the broker isn't ready
		do   func(context.Context) error
	}{
		{"starting the admin server", b.startAdmin},
		{"starting plug-ins", b.startPlugins},
		{"opening the log directories", b.openDirs},
		{"connecting to the coordination", b.startCoordination},
		{"making its rooms", b.makeRooms},
		{"reading configurations", b.loadConfigs},
		{"reading configurations", b.watchDirs},
		{"opening and recovering logs", b.openLogs},
		{"starting coordinators", b.startGroups},
		{"starting coordinators", b.startTransactions},
		{"starting coordinators", b.makeController},
		{"starting replication", b.startReplication},
		{"binding listeners", b.listen},
		{"registering in the cluster", b.register},
		{"registering in the cluster", b.open},
		{"waiting for the controller to say what it serves", b.startController},
		{"taking over topics found on disk", b.adopt},
		{"beginning to serve", b.serve},
	} {
		err := ctx.Err()
		if err == nil {
			b.enter(step.what)
			err = step.do(ctx)
		}
		if err != nil {
			return errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
		}
	}
	b.enter(servingPhase)
	topics, partitions := b.cache.Snapshot().Counts()
	b.log.Info("broker serves", "broker", b.id, "cluster", b.clusterID, "topics", topics, "partitions", partitions, "start", time.Since(begin).Round(time.Millisecond))
	return nil
}

// LoadProducerIDs waits until producers are given ids at once, or ctx ends. Start doesn't wait for that: the first producer that
// comes has the ids fetched, and is told to try again, as by Kafka. It is for who runs a broker and its clients in one process.
func (b *Broker) LoadProducerIDs(ctx context.Context) error { return b.producerIDs.Load(ctx) }

// Stop drains the broker and closes everything in order: connections first, logs last, so that the next start needs no
// recovery. When ctx ends the rest is cut short. It may be called twice, and after a Start that failed.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	steps := b.stop
	b.stop = nil
	b.mu.Unlock()
	b.enter("stopping")
	var errs error
	for i := len(steps) - 1; i >= 0; i-- {
		begin := time.Now()
		if err := steps[i].f(ctx); err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", steps[i].what, err))
		}
		b.log.Debug("stopping", "step", steps[i].what, "took", time.Since(begin).Round(time.Millisecond))
	}
	return errs
}

// onStop adds a step to what Stop does, before all that was added earlier.
func (b *Broker) onStop(what string, f func(context.Context) error) {
	b.mu.Lock()
	b.stop = append(b.stop, undo{what, f})
	b.mu.Unlock()
}

// run starts a component, and has it stopped in its turn.
func (b *Broker) run(ctx context.Context, what string, c plugin.Component) error {
	b.onStop("stop "+what, c.Stop)
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", what, err)
	}
	return nil
}

// settings are what every plug-in gets: a logger that bears its role and name. What it complains of is remembered, too.
func (b *Broker) settings(role, name string) plugin.Settings {
	return plugin.Settings{Logger: slog.New(remembering{b.logger(loggerPlugins).Handler(), b.journal, role, name}).With("plugin", role+"/"+name)}
}
