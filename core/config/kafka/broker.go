package kafka

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// BrokerConfig is what the broker's properties come to: one field for each thing that the broker acts on. Sizes are
// in bytes; a time too long for a Duration is the longest Duration. Topics' defaults are in [Layers.TopicConfig]; what
// is asked for at the moment it matters, such as how to create the offsets topic, is read through [Layers.Get].
type BrokerConfig struct {
	BrokerID                 int32  `kafka:"broker.id"` // -1: the id in the data directory, or a new one
	BrokerIDGenerationEnable bool   `kafka:"broker.id.generation.enable"`
	ReservedBrokerMaxID      int32  `kafka:"reserved.broker.max.id"`
	Rack                     string `kafka:"broker.rack"` // "" is none

	Listeners  []Listener // at least one; ports may be 0
	Advertised []Listener // as configured, empty when advertised.listeners is unset; see Advertise

	InterBrokerListener string          // the name of the listener that brokers use among themselves
	InterBrokerProtocol ProtocolVersion `kafka:"inter.broker.protocol.version"`

	ControlledShutdownEnable       bool          `kafka:"controlled.shutdown.enable"`
	ControlledShutdownMaxRetries   int32         `kafka:"controlled.shutdown.max.retries"`
	ControlledShutdownRetryBackoff time.Duration `kafka:"controlled.shutdown.retry.backoff.ms"`
	ControllerSocketTimeout        time.Duration `kafka:"controller.socket.timeout.ms"`
	ConnectionSetupTimeout         time.Duration `kafka:"socket.connection.setup.timeout.ms"`

	NumReplicaFetchers           int32         `kafka:"num.replica.fetchers"`
	ReplicaFetchBackoff          time.Duration `kafka:"replica.fetch.backoff.ms"`
	ReplicaFetchMaxBytes         int32         `kafka:"replica.fetch.max.bytes"`
	ReplicaFetchMinBytes         int32         `kafka:"replica.fetch.min.bytes"`
	ReplicaFetchResponseMaxBytes int32         `kafka:"replica.fetch.response.max.bytes"`
	ReplicaFetchWaitMax          time.Duration `kafka:"replica.fetch.wait.max.ms"`
	ReplicaLagTimeMax            time.Duration `kafka:"replica.lag.time.max.ms"`
	ReplicaSocketTimeout         time.Duration `kafka:"replica.socket.timeout.ms"`
	ReplicaSelectorClass         string        `kafka:"replica.selector.class"` // "" is none

	// Bytes a second of throttled replicas (KIP-73): the largest int64 is no limit.
	LeaderReplicationThrottledRate   int64 `kafka:"leader.replication.throttled.rate"`
	FollowerReplicationThrottledRate int64 `kafka:"follower.replication.throttled.rate"`

	LogDirs []string // at least one, cleaned, distinct

	MaxConnections               int32            `kafka:"max.connections"`
	MaxConnectionsPerIP          int32            `kafka:"max.connections.per.ip"`
	MaxConnectionsPerIPOverrides map[string]int32 // by address or host name
	ConnectionsMaxIdle           time.Duration    `kafka:"connections.max.idle.ms"` // negative is never
	SocketRequestMaxBytes        int32            `kafka:"socket.request.max.bytes"`
	SocketSendBufferBytes        int32            `kafka:"socket.send.buffer.bytes"`    // -1: the system's
	SocketReceiveBufferBytes     int32            `kafka:"socket.receive.buffer.bytes"` // -1 and the default: the system's

	FetchMaxBytes                int32 `kafka:"fetch.max.bytes"`
	FetchSessionCacheSlots       int32 `kafka:"max.incremental.fetch.session.cache.slots"`
	MaxRequestPartitionSizeLimit int32 `kafka:"max.request.partition.size.limit"`

	DeleteTopicEnable        bool  `kafka:"delete.topic.enable"`
	NumPartitions            int32 `kafka:"num.partitions"`
	DefaultReplicationFactor int32 `kafka:"default.replication.factor"`

	AutoLeaderRebalance       bool          `kafka:"auto.leader.rebalance.enable"`
	LeaderImbalanceCheck      time.Duration `kafka:"leader.imbalance.check.interval.seconds"`
	LeaderImbalancePercentage int32         `kafka:"leader.imbalance.per.broker.percentage"`

	NumRecoveryThreadsPerDataDir           int32         `kafka:"num.recovery.threads.per.data.dir"`
	LogInitialTaskDelay                    time.Duration `kafka:"log.initial.task.delay.ms"`
	LogRetentionCheckInterval              time.Duration `kafka:"log.retention.check.interval.ms"`
	LogFlushSchedulerInterval              time.Duration `kafka:"log.flush.scheduler.interval.ms"`
	LogFlushOffsetCheckpointInterval       time.Duration `kafka:"log.flush.offset.checkpoint.interval.ms"`
	LogFlushStartOffsetCheckpointInterval  time.Duration `kafka:"log.flush.start.offset.checkpoint.interval.ms"`
	ReplicaHighWatermarkCheckpointInterval time.Duration `kafka:"replica.high.watermark.checkpoint.interval.ms"`
	LogCleanerEnable                       bool          `kafka:"log.cleaner.enable"`
	LogCleanerBackoff                      time.Duration `kafka:"log.cleaner.backoff.ms"`
	LogCleanerThreads                      int32         `kafka:"log.cleaner.threads"`
	LogCleanerDedupeBufferSize             int64         `kafka:"log.cleaner.dedupe.buffer.size"`
	LogCleanerIOBufferLoadFactor           float64       `kafka:"log.cleaner.io.buffer.load.factor"`
	LogCleanerIOBufferSize                 int32         `kafka:"log.cleaner.io.buffer.size"`
	LogCleanerIOMaxBytesPerSecond          float64       `kafka:"log.cleaner.io.max.bytes.per.second"`
	ProducerIDExpiration                   time.Duration `kafka:"producer.id.expiration.ms"`
	ProducerIDExpirationCheckInterval      time.Duration `kafka:"producer.id.expiration.check.interval.ms"`

	GroupInitialRebalanceDelay time.Duration `kafka:"group.initial.rebalance.delay.ms"`
	GroupMinSessionTimeout     time.Duration `kafka:"group.min.session.timeout.ms"`
	GroupMaxSessionTimeout     time.Duration `kafka:"group.max.session.timeout.ms"`
	GroupMaxSize               int32         `kafka:"group.max.size"`

	OffsetMetadataMaxBytes        int32         `kafka:"offset.metadata.max.bytes"`
	OffsetsCommitTimeout          time.Duration `kafka:"offsets.commit.timeout.ms"`
	OffsetsRetention              time.Duration `kafka:"offsets.retention.minutes"`
	OffsetsRetentionCheckInterval time.Duration `kafka:"offsets.retention.check.interval.ms"`

	TransactionMaxTimeout            time.Duration `kafka:"transaction.max.timeout.ms"`
	TransactionAbortInterval         time.Duration `kafka:"transaction.abort.timed.out.transaction.cleanup.interval.ms"`
	TransactionPartitionVerification bool          `kafka:"transaction.partition.verification.enable"`
	TransactionalIDExpiration        time.Duration `kafka:"transactional.id.expiration.ms"`
	TransactionalIDExpirationCheck   time.Duration `kafka:"transaction.remove.expired.transaction.cleanup.interval.ms"`
}

// BrokerConfig gives what the layers come to. The error joins one [Fault] for each thing that is wrong: values that
// aren't valid by themselves, and those that don't fit together.
func (l Layers) BrokerConfig() (BrokerConfig, error) {
	var faults []error
	for _, values := range []Values{l.Static, l.DynamicDefault, l.Dynamic} {
		for _, name := range sortedNames(values) {
			if d, ok := BrokerDefinition(name); ok {
				if _, err := d.Canonical(values[name]); err != nil {
					faults = append(faults, err)
				}
			}
		}
	}
	if len(faults) > 0 {
		return BrokerConfig{}, errors.Join(faults...)
	}
	var c BrokerConfig
	fill(&c, func(name string) (string, bool) {
		value, _, ok := l.Get(name)
		return value, ok
	})
	collect := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	var err error
	c.Listeners, c.Advertised, err = l.listeners()
	collect(err)
	if err == nil {
		c.InterBrokerListener, err = l.interBroker(c.Listeners, c.Advertised)
		collect(err)
	}
	c.LogDirs, err = l.logDirs()
	collect(err)
	c.MaxConnectionsPerIPOverrides, err = parseOverrides(l.text("max.connections.per.ip.overrides"))
	collect(err)
	collect(c.checkTogether())
	collect(l.checkTogether(nil))
	return c, errors.Join(faults...)
}

func (c BrokerConfig) checkTogether() error {
	var faults []error
	fault := func(name, format string, args ...any) {
		faults = append(faults, &Fault{Name: name, Kind: ErrInvalidValue, Text: name + ": " + fmt.Sprintf(format, args...)})
	}
	if c.BrokerID < -1 {
		fault("broker.id", "must be -1 or more, not %d", c.BrokerID)
	}
	if c.BrokerIDGenerationEnable && c.BrokerID > c.ReservedBrokerMaxID {
		fault("broker.id", "%d is above reserved.broker.max.id (%d): ids above that are generated", c.BrokerID, c.ReservedBrokerMaxID)
	}
	if !c.BrokerIDGenerationEnable && c.BrokerID < 0 {
		fault("broker.id", "must be given, for broker.id.generation.enable is false")
	}
	if c.GroupMinSessionTimeout > c.GroupMaxSessionTimeout {
		fault("group.min.session.timeout.ms", "must not be above group.max.session.timeout.ms")
	}
	if c.DefaultReplicationFactor < 1 {
		fault("default.replication.factor", "must be at least 1, not %d", c.DefaultReplicationFactor)
	}
	if c.ReplicaFetchWaitMax > c.ReplicaSocketTimeout {
		fault("replica.socket.timeout.ms", "must not be below replica.fetch.wait.max.ms, or fetches that wait fail")
	}
	if c.ReplicaFetchWaitMax > c.ReplicaLagTimeMax {
		fault("replica.fetch.wait.max.ms", "must not be above replica.lag.time.max.ms, or followers that wait count as lagging")
	}
	if c.LogCleanerThreads > 0 && c.LogCleanerDedupeBufferSize/int64(c.LogCleanerThreads) <= 1<<20 {
		fault("log.cleaner.dedupe.buffer.size", "must be more than 1 MiB for each of log.cleaner.threads")
	}
	for name, size := range map[string]int32{"socket.send.buffer.bytes": c.SocketSendBufferBytes, "socket.receive.buffer.bytes": c.SocketReceiveBufferBytes} {
		if size < 1 && size != -1 {
			fault(name, "must be at least 1, or -1 for the system's default, not %d", size)
		}
	}
	return errors.Join(faults...)
}

// logDirs splits log.dirs, or log.dir when that is unset.
func (l Layers) logDirs() ([]string, error) {
	name := "log.dirs"
	value, _, ok := l.Get(name)
	if !ok {
		name = "log.dir"
		value = l.text(name)
	}
	var dirs []string
	seen := map[string]bool{}
	for _, dir := range splitList(value) {
		if dir == "" {
			return nil, &Fault{Name: name, Kind: ErrInvalidValue, Text: fmt.Sprintf("%s: %q names an empty directory", name, value)}
		}
		dir = filepath.Clean(dir)
		if seen[dir] {
			return nil, &Fault{Name: name, Kind: ErrInvalidValue, Text: fmt.Sprintf("%s: the directory %s is given twice", name, dir)}
		}
		seen[dir] = true
		dirs = append(dirs, dir)
	}
	if len(dirs) == 0 {
		return nil, &Fault{Name: name, Kind: ErrInvalidValue, Text: name + ": at least one directory is needed"}
	}
	return dirs, nil
}

// parseOverrides reads "HOST:COUNT,…".
func parseOverrides(text string) (map[string]int32, error) {
	const name = "max.connections.per.ip.overrides"
	overrides := map[string]int32{}
	for _, pair := range splitList(text) {
		i := strings.LastIndexByte(pair, ':')
		n := int64(-1)
		if i > 0 {
			if parsed, err := strconv.ParseInt(strings.TrimSpace(pair[i+1:]), 10, 32); err == nil {
				n = parsed
			}
		}
		if n < 0 {
			return nil, &Fault{Name: name, Kind: ErrInvalidValue, Text: fmt.Sprintf("%s: want HOST:COUNT, not %q", name, pair)}
		}
		overrides[strings.Trim(pair[:i], "[] ")] = int32(n)
	}
	return overrides, nil
}
