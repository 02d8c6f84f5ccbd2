package standalone

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/configtest"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster makes members over one directory, one at a time.
type cluster struct {
	t   testing.TB
	dir string
	o   Options
}

func (c cluster) Member() election.Coordination {
	made, err := New(c.o, election.Settings{DataDir: c.dir})
	require.NoError(c.t, err)
	return made
}

func TestSuite(t *testing.T) {
	electiontest.Run(t, electiontest.Options{Single: true, Portable: true}, func(t *testing.T) electiontest.Cluster {
		return cluster{t, t.TempDir(), DefaultOptions()}
	})
}

// TestSuiteCompacting runs the suite with a file that is rewritten all the time.
func TestSuiteCompacting(t *testing.T) {
	electiontest.Run(t, electiontest.Options{Single: true, Portable: true}, func(t *testing.T) electiontest.Cluster {
		return cluster{t, t.TempDir(), Options{File: "c.jsonl", CompactAfter: 4096}}
	})
}

func TestOptions(t *testing.T) {
	configtest.CheckStruct(t, DefaultOptions())
	for yaml, ok := range map[string]bool{
		"file: a\ncompact_after: 4KiB": true, "file: ''": false, "file: a/": false, "compact_after: 4095": false, "fil: a": false,
	} {
		section, err := config.Parse("x.yaml", []byte(yaml))
		require.NoError(t, err)
		if err := NewFactory().Check(section); ok {
			require.NoError(t, err)
		} else {
			require.Error(t, err, yaml)
		}
	}
	made, err := NewFactory().New(config.Empty("election.standalone"), election.Settings{DataDir: t.TempDir()})
	require.NoError(t, err)
	require.NotNil(t, made)
	_, err = NewFactory().New(config.Empty("election.standalone"), election.Settings{})
	require.Error(t, err, "a relative path without a data directory")
}
