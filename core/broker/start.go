package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/api"
	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/broker/internal/producerid"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// This file has the steps of Start, in their order. Each leaves its counterpart with onStop.

// startPlugins makes and starts what needs nothing of the broker.
func (b *Broker) startPlugins(ctx context.Context) (err error) {
	name := b.o.Storage.Name()
	if b.storage, err = b.o.Storage.New(storage.Settings{Settings: b.settings("storage", name)}); err != nil {
		return err
	}
	if err := b.run(ctx, "storage "+name, b.storage); err != nil {
		return err
	}
	var codecs []compression.Codec
	for _, maker := range b.o.Compression {
		c, err := maker.New(compression.Settings{Settings: b.settings("compression", maker.Name())})
		if err != nil {
			return err
		}
		codecs = append(codecs, c)
	}
	if b.codecs, err = compression.NewSet(codecs...); err != nil {
		return err
	}
	if err := b.run(ctx, "compression", b.codecs); err != nil {
		return err
	}
	return b.startPartitioners(ctx)
}

// openDirs locks the log directories. From here on nobody else can open them.
func (b *Broker) openDirs(context.Context) (err error) {
	if b.dirs, err = openDirs(b.o.Config.LogDirs, b.log); err != nil {
		return err
	}
	b.onStop("close the log directories", func(context.Context) error {
		if b.logs != nil { // the manager has closed them
			return nil
		}
		return closeDirs(b.dirs)
	})
	return nil
}

// startCoordination finds out which cluster this is and which broker, and makes the directories say the same.
func (b *Broker) startCoordination(ctx context.Context) (err error) {
	meta, err := known(b.dirs)
	if err != nil {
		return err
	}
	name := b.o.Election.Name()
	b.coordination, err = b.o.Election.New(election.Settings{
		Settings: b.settings("election", name), DataDir: b.dirs[0].Path(), Properties: b.o.Layers.Static,
	})
	if err != nil {
		return err
	}
	if err := b.run(ctx, "election "+name, b.coordination); err != nil {
		return err
	}
	membership := b.coordination.Membership()
	if b.clusterID, err = membership.ClusterID(ctx, meta.ClusterID); err != nil {
		return fmt.Errorf("ask for the cluster id: %w", err)
	}
	switch b.id = b.o.Config.BrokerID; {
	case b.id >= 0:
	case meta.BrokerID >= 0:
		b.id = meta.BrokerID
	default:
		if b.id, err = membership.NewBrokerID(ctx); err != nil {
			return fmt.Errorf("ask for a broker id: %w", err)
		}
	}
	for _, d := range b.dirs {
		if err := d.Claim(log.Meta{BrokerID: b.id, ClusterID: b.clusterID}); err != nil {
			return err
		}
	}
	return nil
}

// makeRooms makes what others refer to: the cluster as this broker knows it, and its replicas. Both are empty until the
// controller speaks.
func (b *Broker) makeRooms(context.Context) error {
	b.cache = metadata.NewCache(b.epoch.Load)
	b.control = newControl(b)
	b.sent, b.fetched = partition.NewQuota(), partition.NewQuota()
	b.peers = peers.New(peers.Options{BrokerID: b.id, Listener: b.o.Config.InterBrokerListener, Cluster: b.cache, ConnectTimeout: b.o.Config.ConnectionSetupTimeout})
	b.partitions = partition.NewManager(partition.Options{
		BrokerID:    b.id,
		BrokerEpoch: b.epoch.Load,
		Logs:        logs{b},
		MinISR: func(topic string) int {
			return int(b.configs.TopicConfig(topic).MinInsyncReplicas)
		},
		ReplicaLagTimeMax: b.o.Config.ReplicaLagTimeMax,
		ProposeISR:        func(id partition.ID, p partition.ISRProposal) { b.isr.Propose(id, p) },
		Alive:             b.isAlive,
		Throttled:         b.throttled,
		Sent:              b.sent,
		OnLeader:          b.leads,
		OnFollower:        b.follows,
		OnRemoved:         b.removed,
		Now:               time.Now,
		Logger:            b.logger(loggerPartitions),
		Journal:           b.journal,
	})
	return nil
}

// loadConfigs reads what was changed while brokers ran, and keeps it in force from then on.
func (b *Broker) loadConfigs(ctx context.Context) error {
	b.configs = metadata.NewConfigs(metadata.ConfigOptions{
		Metadata:     b.coordination.Metadata(),
		BrokerID:     b.id,
		Static:       b.o.Layers.Static,
		Codecs:       b.o.Layers.Codecs,
		Partitioners: b.o.Layers.Partitioners,
		Logger:       b.log,
		Changed:      b.configChanged,
	})
	if err := b.run(ctx, "configurations", b.configs); err != nil {
		return err
	}
	b.takeKept()
	return nil
}

// configChanged puts the configuration of a topic in force, or of all topics when topic is empty.
func (b *Broker) configChanged(topic string) {
	topics := map[string]bool{}
	if topic != "" {
		topics[topic] = true
	} else {
		for p := range b.partitions.All() {
			topics[p.ID().Topic] = true
		}
	}
	for topic := range topics {
		c := b.configs.TopicConfig(topic)
		b.partitions.Configure(topic, b.logConfig(topic, c), int(c.MinInsyncReplicas))
	}
	if topic == "" {
		b.reconfigure()
	}
	if b.serving.Load() {
		b.controller.ConfigChanged(topic)
	}
}

// openLogs opens what is on disk; after a crash it is checked first.
func (b *Broker) openLogs(ctx context.Context) error {
	c := &b.o.Config
	b.logs = log.NewManager(log.ManagerOptions{
		Storage:                    b.storage,
		Codecs:                     b.codecs,
		Logger:                     b.logger(loggerLogs),
		Config:                     func(topic string) log.Config { return b.logConfig(topic, b.configs.TopicConfig(topic)) },
		RecoveryThreads:            int(c.NumRecoveryThreadsPerDataDir),
		InitialDelay:               c.LogInitialTaskDelay,
		RetentionInterval:          c.LogRetentionCheckInterval,
		FlushInterval:              never(c.LogFlushSchedulerInterval),
		RecoveryPointInterval:      c.LogFlushOffsetCheckpointInterval,
		StartOffsetInterval:        c.LogFlushStartOffsetCheckpointInterval,
		HighWatermarkInterval:      c.ReplicaHighWatermarkCheckpointInterval,
		ProducerExpiration:         c.ProducerIDExpiration,
		ProducerExpirationInterval: c.ProducerIDExpirationCheckInterval,
		Compaction:                 c.LogCleanerEnable,
		Cleaner:                    cleanerOptions(c),
		Flushed:                    b.flushes.Observe,
		DirFailed:                  b.dirFailed,
	}, b.dirs...)
	b.onStop("close the logs", func(ctx context.Context) error { return b.logs.Close(ctx, b.epoch.Load()) })
	return b.logs.Open(ctx)
}

// never turns the longest time there is, Kafka's way to say "never", into the manager's.
func never(d time.Duration) time.Duration {
	if d == math.MaxInt64 {
		return 0
	}
	return d
}

// startGroups makes the group coordinator and the store under it.
func (b *Broker) startGroups(ctx context.Context) (err error) {
	c := &b.o.Config
	name := b.o.Offsets.Name()
	b.offsets, err = b.o.Offsets.New(offsets.Settings{
		Settings: b.settings("offsets", name),
		Log: &group.Log{
			Partitions:  b.partitions,
			Snapshot:    b.cache.Snapshot,
			EnsureTopic: b.ensureTopic,
			Verify:      b.verifyProducer,
		},
		Codecs: b.codecs,
	})
	if err != nil {
		return err
	}
	if err := b.run(ctx, "offsets "+name, b.offsets); err != nil {
		return err
	}
	b.groups = group.New(group.Options{
		Config: group.Config{
			MinSession:     c.GroupMinSessionTimeout,
			MaxSession:     c.GroupMaxSessionTimeout,
			InitialDelay:   c.GroupInitialRebalanceDelay,
			MaxSize:        int(c.GroupMaxSize),
			MaxMetadata:    int(c.OffsetMetadataMaxBytes),
			CommitTimeout:  c.OffsetsCommitTimeout,
			Retention:      c.OffsetsRetention,
			RetentionCheck: c.OffsetsRetentionCheckInterval,
		},
		Store:   b.offsets,
		Logger:  b.logger(loggerGroups),
		Journal: b.journal,
	})
	b.onStop("stop the group coordinator", b.groups.Stop)
	b.groups.Start()
	return nil
}

// startTransactions makes the transaction coordinator.
func (b *Broker) startTransactions(context.Context) error {
	c := &b.o.Config
	guards := txn.NewGuards()
	others := b.makeCoordinators(guards)
	b.producerIDs = producerid.New(b.coordination.Metadata(), b.id, b.log)
	b.onStop("stop giving producer ids", b.producerIDs.Stop)
	b.transactions = txn.New(txn.Options{
		Config: txn.Config{
			MaxTimeout:      c.TransactionMaxTimeout,
			AbortInterval:   c.TransactionAbortInterval,
			Expiration:      c.TransactionalIDExpiration,
			ExpirationCheck: c.TransactionalIDExpirationCheck,
			Verify:          c.TransactionPartitionVerification,
		},
		Log:     &group.Log{Partitions: b.partitions, Snapshot: b.cache.Snapshot, EnsureTopic: b.ensureTopic},
		Codecs:  b.codecs,
		NewID:   b.producerIDs.Next,
		Leader:  b.leaderOf,
		Markers: others,

		Coordinators:  others,
		VerifyVersion: peers.VersionsOf(c.InterBrokerProtocol).AddPartitionsToTxn,
		Guards:        guards,

		Now:    time.Now,
		Logger: b.logger(loggerTransactions),
	})
	b.onStop("stop the transaction coordinator", b.transactions.Stop)
	b.transactions.Start()
	return nil
}

// verifyProducer says whether a producer may commit offsets of groups in a partition.
func (b *Broker) verifyProducer(id int64, epoch int16, to partition.ID) error {
	return b.transactions.VerifyProducer(txn.Producer{ID: id, Epoch: epoch}, to)
}

// leaderOf says who leads a partition. Before the broker serves, it may not have been told of all that there are: then none is
// taken for deleted.
func (b *Broker) leaderOf(id partition.ID) (leader int32, exists bool) {
	if b.groups.Topic() == "" && id.Topic == b.groups.TransactionTopic() {
		leader, _ = b.cache.Snapshot().Controller() // see coordinateGroups
		return leader, true
	}
	serving := b.serving.Load()
	if t, ok := b.cache.Snapshot().Topic(id.Topic); ok {
		if p, ok := t.Partition(id.Partition); ok {
			return p.Leader, true
		}
	}
	return -1, !serving
}

// leads is told that this broker leads a partition from now on.
func (b *Broker) leads(id partition.ID, epoch int32) {
	b.followers.Unfollow(id)
	switch {
	case b.groups != nil && id.Topic == b.groups.Topic():
		b.groups.Lead(id.Partition, epoch)
	case b.transactions != nil && id.Topic == txn.Topic:
		b.transactions.Lead(id.Partition, epoch)
	}
}

// follows is told that this broker follows another's leadership of a partition from now on, or nobody's.
func (b *Broker) follows(id partition.ID, _ int32) {
	b.resigned(id)
	b.followers.Follow(id)
}

// removed is told that this broker has no replica of a partition any more.
func (b *Broker) removed(id partition.ID) {
	b.followers.Unfollow(id)
	b.resigned(id)
}

// resigned is told that this broker doesn't lead a partition any more.
func (b *Broker) resigned(id partition.ID) {
	switch {
	case b.groups != nil && id.Topic == b.groups.Topic():
		b.groups.Resign(id.Partition)
	case b.transactions != nil && id.Topic == txn.Topic:
		b.transactions.Resign(id.Partition)
	}
}

// listen binds the listeners, so that their ports are known. Nobody is answered yet.
func (b *Broker) listen(ctx context.Context) (err error) {
	c := &b.o.Config
	listeners := make([]wire.Listener, len(c.Listeners))
	for i, l := range c.Listeners {
		listeners[i] = wire.Listener{Name: l.Name, Address: l.Address()}
	}
	b.server, err = wire.New(wire.Options{
		Logger: b.logger(loggerConnections),
		Handler: api.Handlers(api.Deps{
			Meter:     b.requests,
			Logger:    b.logger(loggerRequests),
			LogLevels: b.o.LogLevels,
			Now:       time.Now,
			Cluster: &api.Cluster{
				BrokerID:     b.id,
				ClusterID:    b.clusterID,
				Metadata:     b.cache,
				Configs:      b.configs,
				Controller:   b.controller,
				Coordination: b.coordination,
				CreateTopics: b.createTopics,
			},
			Partitions:    b.partitions,
			LogDirs:       logDirs{b.logs},
			Groups:        b.groups,
			Transactions:  b.transactions,
			ProducerIDs:   b.producerIDs,
			Control:       b.control,
			Markers:       b.markers,
			InterBroker:   c.InterBrokerListener,
			Alone:         b.solitary(),
			Ready:         b.ready,
			Codecs:        b.codecs,
			FetchMaxBytes: int(c.FetchMaxBytes),
			RackAware:     c.ReplicaSelectorClass != "",
			FetchSessions: int(c.FetchSessionCacheSlots),
		}),
		Listeners:       listeners,
		MaxRequestBytes: int(c.SocketRequestMaxBytes),
		Limits:          b.limits(ctx, c),
		MaxIdle:         maxIdle(c.ConnectionsMaxIdle),
		SendBuffer:      int(c.SocketSendBufferBytes),
		ReceiveBuffer:   receiveBuffer(c),
		Meter:           b.requests,
	})
	if err != nil {
		return err
	}
	b.onStop("close the connections", b.server.Stop)
	return b.server.Listen(ctx)
}

// rebalance is how often the controller sees whether leadership is balanced, 0 for never.
func rebalance(c *kafka.BrokerConfig) time.Duration {
	if !c.AutoLeaderRebalance {
		return 0
	}
	return c.LeaderImbalanceCheck
}

// rules are what the controller goes by.
func (b *Broker) rules() controller.Rules {
	c := &b.o.Config
	return controller.Rules{
		BrokerID:          b.id,
		InterBroker:       c.InterBrokerListener,
		Partitions:        c.NumPartitions,
		ReplicationFactor: int16(c.DefaultReplicationFactor),
		DeleteTopics:      c.DeleteTopicEnable,
		Imbalance:         c.LeaderImbalancePercentage,
		Unclean:           func(topic string) bool { return b.configs.TopicConfig(topic).UncleanLeaderElection },
		CheckConfig: func(config map[string]string) error {
			settings := make([]kafka.Setting, 0, len(config))
			for name, value := range config {
				settings = append(settings, kafka.Setting{Name: name, Value: &value})
			}
			_, err := b.configs.Layers().ChangeTopic(settings)
			return err
		},
		Draw: mathrand.IntN,
		NewID: func() (id election.TopicID) {
			for {
				rand.Read(id[:]) // never fails
				// Kafka's tools take an id that begins with '-' for an option, and zero means none.
				if id != (election.TopicID{}) && log.FormatTopicID(id)[0] != '-' {
					return id
				}
			}
		},
	}
}

// serve begins to answer clients. It is the last step of Start, and so its counterpart the first of Stop: hand leaderships
// over and drain the connections before anything that they need is stopped.
func (b *Broker) serve(context.Context) error {
	b.onStop("drain the connections", b.server.Stop)
	b.onStop("stop leading", func(context.Context) error {
		if !b.alone() {
			b.partitions.StandDown()
		}
		return nil
	})
	b.onStop("hand the leaderships over", b.handOver)
	b.serving.Store(true)
	b.reconfigure() // what changed since the properties were read
	b.controller.ConfigChanged("")
	close(b.ready)
	return nil
}
