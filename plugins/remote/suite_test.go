package remote_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/compression/compressiontest"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/remote"
)

// The contract suites, through real processes.

func TestPartitionerSuite(t *testing.T) {
	t.Parallel()
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return remote.NewPartitioner(options("good"), nil, nil) })
}

func TestCompressionSuite(t *testing.T) { // not beside others: it counts goroutines
	compressiontest.Run(t, func() (compression.Codec, error) {
		return remote.NewCodec(record.Snappy, options("codec"), nil, nil), nil
	})
}

func TestOffsetsSuite(t *testing.T) {
	t.Parallel()
	offsetstest.Run(t, func(t *testing.T) offsetstest.World {
		file := filepath.Join(t.TempDir(), "journal")
		return offsetstest.World{Keeps: true, Store: func() offsets.Store {
			o := options("store")
			o.Config = section(t, fmt.Sprintf("config: {file: %q}", file))
			return remote.NewStore(o, nil)
		}}
	})
}
