package bench

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeasureItself(t *testing.T) {
	u, err := Measure(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, u.RSSAnon)
	require.Greater(t, u.RSS, u.RSSAnon)
	require.Eventually(t, func() bool {
		for range 1000 {
			_ = strings.Repeat("x", 1000)
		}
		later, err := Measure(os.Getpid())
		return err == nil && later.CPU > u.CPU && later.System <= later.CPU
	}, time.Minute, time.Millisecond)
	_, err = Measure(1 << 30)
	require.Error(t, err)
}

func TestUsageOfSeveral(t *testing.T) {
	one, err := (&Load{Pids: []int{os.Getpid()}}).usage()
	require.NoError(t, err)
	three, err := (&Load{Pids: []int{os.Getpid(), os.Getpid(), os.Getpid()}}).usage()
	require.NoError(t, err)
	require.Greater(t, three.RSSAnon, 2*one.RSSAnon)
	require.GreaterOrEqual(t, three.CPU, 3*one.CPU)
	none, err := (&Load{}).usage()
	require.NoError(t, err)
	require.Zero(t, none)
	_, err = (&Load{Pids: []int{os.Getpid(), 1 << 30}}).usage()
	require.Error(t, err)
}
