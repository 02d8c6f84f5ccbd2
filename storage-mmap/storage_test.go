package storagemmap

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func harness() storagetest.Harness {
	return storagetest.Harness{New: func() (storage.Storage, error) { return New(DefaultOptions()) }}
}

func TestContract(t *testing.T) { storagetest.Run(t, harness()) }

func FuzzOperations(f *testing.F) { storagetest.FuzzOperations(f, harness()) }

func BenchmarkStorage(b *testing.B) { storagetest.RunBenchmarks(b, harness()) }
