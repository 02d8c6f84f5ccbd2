package main

import (
	"errors"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/membership/gossip"
	"github.com/barnabas-mq/barnabas/membership/standalone"
	"github.com/barnabas-mq/barnabas/membership/zookeeper"
	"github.com/barnabas-mq/barnabas/plugins/compression/gzip"
	"github.com/barnabas-mq/barnabas/plugins/compression/lz4"
	"github.com/barnabas-mq/barnabas/plugins/compression/snappy"
	"github.com/barnabas-mq/barnabas/plugins/compression/zstd"
	"github.com/barnabas-mq/barnabas/plugins/gateway"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/memory"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
	zookeeperoffsets "github.com/barnabas-mq/barnabas/plugins/offsetstores/zookeeper"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/crc32"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/fnv1a"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/murmur2"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/roundrobin"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/sticky"
	pluginremote "github.com/barnabas-mq/barnabas/plugins/remote"
	storagemmap "github.com/barnabas-mq/barnabas/storage-mmap"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

// components are the implementations in this binary, by role. To put another in, import it here and name its factory;
// nothing else in the repository names implementations.
type components struct {
	storage     plugin.Registry[storage.Settings, storage.Storage]
	election    plugin.Registry[election.Settings, election.Coordination]
	partitioner plugin.Registry[partitioner.Settings, partitioner.Partitioner]
	compression plugin.Registry[compression.Settings, compression.Codec]
	offsets     plugin.Registry[offsets.Settings, offsets.Store]
	gateway     gatewayFactory

	// inProcess are the codecs that need no executable: all of them serve when a configuration names none.
	inProcess plugin.Registry[compression.Settings, compression.Codec]
}

// The gateway is no role, for there is one only; the rest of the program knows it by these names.
type (
	gatewayFactory  = gateway.Factory
	gatewaySettings = gateway.Settings
	gatewayServer   = *gateway.Gateway
)

// Who votes in a cluster on memberlist is asked and ordered by its own protocol; the rest of the program knows it by these names.
type (
	voterAdmin   = gossip.Admin
	voterOptions = gossip.Options
	voterStatus  = gossip.Status
	voterOrder   = gossip.Order
	keyHolder    = gossip.KeyHolder

	recoverOptions = gossip.RecoverOptions
	recovery       = gossip.Recovery
	setAside       = gossip.Aside
)

// votersPlugin is the coordination that has voters.
const votersPlugin = "memberlist"

func newVoterOptions() voterOptions                     { return gossip.DefaultOptions() }
func newVoterAdmin(o voterOptions) (*voterAdmin, error) { return gossip.NewAdmin(o) }

// newComponents fills the registries. The first of each role is the one that serves when a configuration names none;
// of compression, all that run in this process do.
func newComponents() (components, error) {
	var c components
	var errs [7]error
	c.storage, errs[0] = plugin.NewRegistry("storage",
		storagemmap.NewFactory(), storagesendfile.NewFactory())
	c.election, errs[1] = plugin.NewRegistry("election",
		standalone.NewFactory(), zookeeper.NewFactory(), gossip.NewFactory())
	partitioners := []partitioner.Factory{murmur2.NewFactory(), roundrobin.NewFactory(), sticky.NewFactory(), crc32.NewFactory(), fnv1a.NewFactory()}
	inProcess, err := plugin.NewRegistry("partitioner", partitioners...)
	errs[2] = err
	c.partitioner, errs[3] = plugin.NewRegistry("partitioner", append(partitioners, pluginremote.NewPartitionerFactory(inProcess))...)
	codecs := []compression.Factory{gzip.NewFactory(), snappy.NewFactory(), lz4.NewFactory(), zstd.NewFactory()}
	c.inProcess, errs[4] = plugin.NewRegistry("compression", codecs...)
	c.compression, errs[5] = plugin.NewRegistry("compression", append(codecs, pluginremote.NewCompressionFactory(c.inProcess))...)
	c.offsets, errs[6] = plugin.NewRegistry("offsets",
		topic.NewFactory(), zookeeperoffsets.NewFactory(), memory.NewFactory(), pluginremote.NewOffsetsFactory())
	c.gateway = gateway.NewFactory()
	return c, errors.Join(errs[:]...)
}
