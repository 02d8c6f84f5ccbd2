package api

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/fetchsession"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/producerid"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Deps is what the handlers work with. The composition fills it in; a room that is nil isn't served.
type Deps struct {
	Logger *slog.Logger
	// LogLevels are the levels of the broker's loggers; nil: there are none to see or to change.
	LogLevels *logging.Levels
	Now       func() time.Time
	// Meter counts what is answered; nil is for one of the handlers' own.
	Meter *meter.Requests

	Cluster *Cluster
	// Partitions are the replicas of this broker.
	Partitions *partition.Manager
	LogDirs    LogDirs
	// Groups coordinates the consumer groups of this broker.
	Groups *group.Manager
	// Transactions coordinates the transactions of this broker. It needs Groups and ProducerIDs.
	Transactions *txn.Manager
	// ProducerIDs gives ids to producers.
	ProducerIDs *producerid.IDs

	// Control takes the controller's word.
	Control Control
	// Markers writes the markers of ended transactions into the partitions of this broker.
	Markers *txn.Receiver

	// InterBroker is the name of the listener that brokers use among themselves. Requests between brokers are served on it alone.
	InterBroker string
	// Alone says that there never is another broker: requests between brokers aren't served then, because none can be meant.
	Alone bool
	// Ready is closed when clients are to be answered; until then their requests wait, but for ApiVersions. Requests between
	// brokers don't. Nil answers at once.
	Ready <-chan struct{}

	// Codecs compress and decompress, for clients that fetch in an older message format.
	Codecs record.Codecs
	// FetchMaxBytes bounds the records of one fetch response: fetch.max.bytes. 0 means Kafka's default.
	FetchMaxBytes int
	// RackAware sends consumers to an in-sync replica in their rack: replica.selector.class is Kafka's RackAwareReplicaSelector.
	RackAware bool
	// FetchSessions is how many fetch sessions there may be: max.incremental.fetch.session.cache.slots. 0 means Kafka's
	// default, a negative number none.
	FetchSessions int
}

// Cluster is what this broker knows of its cluster and can have decided.
type Cluster struct {
	BrokerID     int32
	ClusterID    string
	Metadata     *metadata.Cache
	Configs      *metadata.Configs
	Controller   *controller.Controller
	Coordination election.Coordination
	// CreateTopics creates topics because a client is interested in them, with the properties of this broker, whichever broker
	// is controller. Each has a result; an error for all says that they weren't created, or nobody knows.
	CreateTopics func(ctx context.Context, topics []controller.NewTopic) ([]error, error)
}

// LogDirs knows the broker's log directories.
type LogDirs interface {
	// LogDirs lists all, those that failed too, with the replicas in each.
	LogDirs() []LogDir
}

// LogDir is one log directory.
type LogDir struct {
	Path          string
	Err           error // not nil when it failed; then nothing else is known
	Total, Usable int64 // bytes of its file system
	Replicas      []LogDirReplica
}

// LogDirReplica is one replica in a log directory.
type LogDirReplica struct {
	Topic     string
	Partition int32
	Size      int64 // bytes of its segments
	Lag       int64 // how far its end is behind the high watermark, 0 for a leader
	Future    bool  // it is on its way here from another directory
}

const (
	defaultFetchMaxBytes = 57671680
	defaultFetchSessions = 1000
	// maxSessionPartitions bounds what all fetch sessions remember together: some 200 bytes each.
	maxSessionPartitions = 1 << 20
)

// handlers holds the handlers' dependencies, and what they keep between requests.
type handlers struct {
	Deps

	sessions     *fetchsession.Cache
	inflation    *record.Inflation // of what is converted for old clients
	produceCalls sync.Pool
	fetchCalls   sync.Pool
}

func newHandlers(d Deps) *handlers {
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Meter == nil {
		d.Meter = meter.NewRequests()
	}
	if d.FetchMaxBytes <= 0 {
		d.FetchMaxBytes = defaultFetchMaxBytes
	}
	if d.FetchSessions == 0 {
		d.FetchSessions = defaultFetchSessions
	}
	return &handlers{Deps: d, inflation: record.NewInflation(), sessions: fetchsession.NewCache(fetchsession.Options{
		Slots:         max(d.FetchSessions, 0),
		EvictAfter:    fetchsession.DefaultEvictAfter,
		MaxPartitions: maxSessionPartitions,
		Random:        rand.Uint32,
	})}
}
