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
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		_ = strings.Repeat("x", 1000)
	}
	later, err := Measure(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, later.CPU, u.CPU)
	_, err = Measure(1 << 30)
	require.Error(t, err)
}
