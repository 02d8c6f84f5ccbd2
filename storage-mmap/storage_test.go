package storagemmap

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func harness(change func(o *Options)) storagetest.Harness {
	o := DefaultOptions()
	change(&o)
	return storagetest.Harness{New: func() (storage.Storage, error) { return New(o) }}
}

func defaults(*Options) {}

// TestContract runs the suite on each way that bytes can take.
func TestContract(t *testing.T) {
	for name, change := range map[string]func(o *Options){
		"defaults":         defaults,
		"all through maps": func(o *Options) { o.CopyBelow, o.MinGrowth = 1<<40, 4<<10 },
		"no copies":        func(o *Options) { o.CopyBelow = 0 },
		"no maps":          func(o *Options) { o.MaxMaps = 0 },
		"few maps":         func(o *Options) { o.MaxMaps, o.MinGrowth = 1, 4<<10 },
	} {
		t.Run(name, func(t *testing.T) { storagetest.Run(t, harness(change)) })
	}
}

func FuzzOperations(f *testing.F) { storagetest.FuzzOperations(f, harness(defaults)) }

func BenchmarkStorage(b *testing.B) { storagetest.RunBenchmarks(b, harness(defaults)) }
