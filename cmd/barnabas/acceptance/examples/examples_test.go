package examples

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProtocolCopy holds the example's copy of the protocol, which its author would have taken along, against ours.
func TestProtocolCopy(t *testing.T) {
	ours, err := os.ReadFile("../../../../plugins/remote/proto/v1/plugin.proto")
	require.NoError(t, err)
	theirs, err := os.ReadFile(filepath.Join(example(t, "python-partitioner"), "plugin.proto"))
	require.NoError(t, err)
	require.Equal(t, string(ours), string(theirs), "run `go run ./cmd/dev generate`")
}

func TestRegion(t *testing.T) { goPlugin(t, "region") }

func TestSQLiteOffsets(t *testing.T) { goPlugin(t, "sqlite-offsets") }

func TestPythonPartitioner(t *testing.T) { pythonPlugin(t) }
