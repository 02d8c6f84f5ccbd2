package main

import (
	"errors"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/membership/standalone"
	"github.com/barnabas-mq/barnabas/plugins/compression/gzip"
	"github.com/barnabas-mq/barnabas/plugins/compression/lz4"
	"github.com/barnabas-mq/barnabas/plugins/compression/snappy"
	"github.com/barnabas-mq/barnabas/plugins/compression/zstd"
	"github.com/barnabas-mq/barnabas/plugins/gateway"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/memory"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/crc32"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/fnv1a"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/murmur2"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/roundrobin"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/sticky"
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
}

// The gateway is no role, for there is one only; the rest of the program knows it by these names.
type (
	gatewayFactory  = gateway.Factory
	gatewaySettings = gateway.Settings
	gatewayServer   = *gateway.Gateway
)

// newComponents fills the registries. The first of each role is the one that serves when a configuration names none;
// of compression, all are.
func newComponents() (components, error) {
	var c components
	var errs [5]error
	c.storage, errs[0] = plugin.NewRegistry("storage",
		storagemmap.NewFactory(), storagesendfile.NewFactory())
	c.election, errs[1] = plugin.NewRegistry("election",
		standalone.NewFactory())
	c.partitioner, errs[2] = plugin.NewRegistry("partitioner",
		murmur2.NewFactory(), roundrobin.NewFactory(), sticky.NewFactory(), crc32.NewFactory(), fnv1a.NewFactory())
	c.compression, errs[3] = plugin.NewRegistry("compression",
		gzip.NewFactory(), snappy.NewFactory(), lz4.NewFactory(), zstd.NewFactory())
	c.offsets, errs[4] = plugin.NewRegistry("offsets",
		topic.NewFactory(), memory.NewFactory())
	c.gateway = gateway.NewFactory()
	return c, errors.Join(errs[:]...)
}
