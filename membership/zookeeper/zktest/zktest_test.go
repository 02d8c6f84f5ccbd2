package zktest

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneServer(t *testing.T) {
	e := New(t, 1)
	s := e.Servers()[0]
	require.Equal(t, s.Addr, e.Connect())
	require.Equal(t, "standalone", s.Mode())
	require.True(t, s.Running())
	pid := s.Pid()
	require.Positive(t, pid)
	require.NoError(t, s.Start(context.Background()), "one that runs is left alone")
	require.Equal(t, pid, s.Pid())

	require.NoError(t, s.Pause())
	_, err := s.Ask("ruok")
	require.Error(t, err)
	require.NoError(t, s.Resume())
	require.Eventually(t, func() bool { return s.Mode() == "standalone" }, time.Minute, 20*time.Millisecond)

	require.NoError(t, s.Pause())
	require.NoError(t, s.Kill(), "paused as well")
	require.False(t, s.Running())
	require.NoError(t, s.Kill(), "again")
	require.NoError(t, s.Start(context.Background()))
	require.NotEqual(t, pid, s.Pid())
	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop())
}

func TestEnsemble(t *testing.T) {
	e := New(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.Kill())
	next, err := e.Leader(ctx)
	require.NoError(t, err)
	require.NotEqual(t, leader.ID, next.ID)
	require.NoError(t, leader.Start(ctx))
	require.Equal(t, "follower", leader.Mode())
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	e := New(t, 1)
	require.NoError(t, e.Stop())
	s := e.Servers()[0]
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "zoo.cfg"), []byte("nothing=useful\n"), 0o644))
	require.ErrorContains(t, s.Start(context.Background()), "dataDir is not set")
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Servers: 2}, {Servers: -1}, {Servers: 1, Ports: []int{1, 2}}} {
		_, err := Start(context.Background(), o)
		require.ErrorContains(t, err, "want 1, or at least 3")
	}
	t.Setenv("ZOOKEEPER_HOME", t.TempDir())
	_, err := Jars(context.Background(), t.TempDir())
	require.ErrorContains(t, err, "has no ZooKeeper")
}

func TestThePomNamesTheVersion(t *testing.T) {
	var project struct {
		Version string `xml:"properties>zookeeper.version"`
	}
	require.NoError(t, xml.Unmarshal(pom, &project))
	require.Equal(t, Version, project.Version)
}
