// Package testbroker composes the brokers of package core/brokertest of the implementations in the box, as a broker without a
// configuration is. It is a package of its own because core names no implementations; see core/brokertest for all the rest.
package testbroker

import (
	"testing"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/membership/standalone"
	"github.com/barnabas-mq/barnabas/plugins/compression/gzip"
	"github.com/barnabas-mq/barnabas/plugins/compression/lz4"
	"github.com/barnabas-mq/barnabas/plugins/compression/snappy"
	"github.com/barnabas-mq/barnabas/plugins/compression/zstd"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/crc32"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/fnv1a"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/murmur2"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/roundrobin"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/sticky"
	storagemmap "github.com/barnabas-mq/barnabas/storage-mmap"
)

// Start is brokertest.Start with what is in the box, and the options over it.
func Start(t testing.TB, options ...brokertest.Option) *brokertest.Broker {
	t.Helper()
	return brokertest.Start(t, append(InTheBox(), options...)...)
}

// StartCluster is brokertest.StartCluster with what is in the box, and the options over it.
func StartCluster(t testing.TB, n int, options ...brokertest.Option) *brokertest.Cluster {
	t.Helper()
	return brokertest.StartCluster(t, n, append(InTheBox(), options...)...)
}

// InTheBox are the options that choose, for each role, what a broker without a configuration has.
func InTheBox() []brokertest.Option {
	return []brokertest.Option{
		brokertest.Storage(storagemmap.NewFactory()),
		brokertest.Election(standalone.NewFactory()),
		brokertest.Offsets(topic.NewFactory()),
		brokertest.Compression(gzip.NewFactory()),
		brokertest.Compression(snappy.NewFactory()),
		brokertest.Compression(lz4.NewFactory()),
		brokertest.Compression(zstd.NewFactory()),
		brokertest.Partitioner(murmur2.NewFactory()),
		brokertest.Partitioner(roundrobin.NewFactory()),
		brokertest.Partitioner(sticky.NewFactory()),
		brokertest.Partitioner(crc32.NewFactory()),
		brokertest.Partitioner(fnv1a.NewFactory()),
	}
}
