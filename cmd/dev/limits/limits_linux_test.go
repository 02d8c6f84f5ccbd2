package limits

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const some = 32 << 20

func TestTouchedMemoryIsGivenBack(t *testing.T) {
	const bytes = 600 << 20 // two parts, and some of a third
	before, err := bench.Measure(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, Touch(t.Context(), bytes))
	after, err := bench.Measure(os.Getpid())
	require.NoError(t, err)
	require.Less(t, after.RSSAnon-before.RSSAnon, int64(bytes/4))
	var most unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &most))
	require.Greater(t, most.Maxrss<<10, int64(bytes), "it was not used")

	require.NoError(t, Touch(t.Context(), 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Touch(ctx, 1), context.Canceled)
}

func TestWhatIsDoneIsMeasured(t *testing.T) {
	dir := t.TempDir()
	appended, err := Append(t.Context(), dir, 64<<10, some)
	require.NoError(t, err)
	sender, receiver, err := Send(t.Context(), 1<<20, some)
	require.NoError(t, err)
	for name, c := range map[string]Cost{"append": appended, "send": sender, "receive": receiver} {
		require.GreaterOrEqual(t, c.Bytes, int64(some), name)
		require.Positive(t, c.CPU, name)
		require.Positive(t, c.MiBPerSecond(), name)
		require.Positive(t, c.CPUPerGB(), name)
	}
	answered, err := Answer(t.Context(), 1100, 70, 1000)
	require.NoError(t, err)
	require.Equal(t, int64(1000), answered.Answers)
	require.Positive(t, answered.AnswersPerSecond())
	require.Positive(t, answered.CPUPerAnswer())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "files are removed again")
}

func TestBothEndsEnd(t *testing.T) {
	refused := errors.New("refused")
	_, _, err := connected(t.Context(), some, func(int, int64) (int, error) { return 0, refused })
	require.ErrorIs(t, err, refused)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Send(ctx, 1<<20, some)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Answer(ctx, 1100, 70, 1000)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Append(t.Context(), filepath.Join(t.TempDir(), "missing"), 64<<10, some)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Sendfile(t.Context(), filepath.Join(t.TempDir(), "missing"), 64<<10, some)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNothingOfNothing(t *testing.T) {
	require.Zero(t, Cost{}.MiBPerSecond())
	require.Zero(t, Cost{}.CPUPerGB())
	require.Zero(t, Cost{}.AnswersPerSecond())
	require.Zero(t, Cost{}.CPUPerAnswer())
}
