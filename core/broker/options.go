package broker

import (
	"log/slog"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Maker makes an implementation of a role when its settings are known. A plugin.Choice is one.
type Maker[S, T any] interface {
	Name() string
	New(settings S) (T, error)
}

// Options say what a broker is to be.
type Options struct {
	// Layers are the properties under Kafka's names, as the file, the environment and the command line give them.
	Layers kafka.Layers
	// Config is what the layers come to, from Layers.BrokerConfig.
	Config kafka.BrokerConfig

	// The implementations.
	Storage     Maker[storage.Settings, storage.Storage]
	Election    Maker[election.Settings, election.Coordination]
	Compression []Maker[compression.Settings, compression.Codec]
	Offsets     Maker[offsets.Settings, offsets.Store]
	// Partitioners are those that topics may declare (barnabas.partitioner), each under a name of its own. The first is for topics
	// that declare none (see [Broker.Partitioner]).
	Partitioners []Maker[partitioner.Settings, partitioner.Partitioner]

	// Admin turns on the HTTP server for those who watch and run the broker; nil is for none.
	Admin *adminhttp.Options
	// Metrics say what the admin server shows on /metrics.
	Metrics MetricsOptions
	// AdminRoutes are what the admin server is to answer beside the broker's own: what concerns the process, such as its logger.
	AdminRoutes []adminhttp.Route

	// Logger gets what the broker has to say; nil discards it.
	Logger *slog.Logger
	// LogLevels are the levels of its loggers ([Loggers]), which may be changed while the broker runs: by the admin server, and by
	// Kafka's tools (the resource BROKER_LOGGER, KIP-412). Logger's own level doesn't count then. Nil: the level is Logger's, and stays.
	LogLevels *logging.Levels
}
