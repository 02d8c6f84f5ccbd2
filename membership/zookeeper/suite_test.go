package zookeeper

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// shared is a server for tests that leave it in peace. Each takes a root of its own.
var (
	shared *zktest.Ensemble
	roots  atomic.Int32
)

func TestMain(m *testing.M) {
	code := zktest.Main(m, func(e *zktest.Ensemble) { shared = e })
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience is how long something that must happen may take, on a machine that has much else to do.
const patience = 60 * time.Second

// newRoot is a place of its own on the shared server.
func newRoot() string { return fmt.Sprintf("%s/test/%d", shared.Connect(), roots.Add(1)) }

// cluster makes members over one root.
type cluster struct {
	t testing.TB
	o Options
}

func newCluster(t testing.TB) cluster {
	return cluster{t, Options{Connect: newRoot(), SessionTimeout: 10 * time.Second, ConnectionTimeout: patience}}
}

func (c cluster) Member() election.Coordination {
	made, err := New(c.o, election.Settings{DataDir: c.t.TempDir()})
	require.NoError(c.t, err)
	return made
}

func TestSuite(t *testing.T) {
	electiontest.Run(t, electiontest.Options{Patience: patience, Portable: true}, func(t *testing.T) electiontest.Cluster { return newCluster(t) })
}
