package logging_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/logging"
)

func TestLevels(t *testing.T) {
	levels := logging.NewLevels(slog.LevelInfo, "b", "a")
	var out bytes.Buffer
	// What is below decides nothing: its own level is higher.
	text := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})
	a, b := slog.New(levels.Handler("a", text)).With("x", 1).WithGroup("g"), slog.New(levels.Handler("b", text))
	writes := func(l *slog.Logger, level slog.Level) bool {
		out.Reset()
		l.Log(t.Context(), level, "m", "k", 2)
		return out.Len() > 0
	}
	assert.True(t, writes(a, slog.LevelInfo))
	assert.Contains(t, out.String(), "x=1 g.k=2")
	assert.False(t, writes(a, slog.LevelDebug))

	require.NoError(t, levels.Set("a", slog.LevelDebug))
	assert.True(t, writes(a, slog.LevelDebug))
	assert.False(t, writes(b, slog.LevelDebug))
	require.NoError(t, levels.Set(logging.Root, slog.LevelError))
	assert.True(t, writes(a, slog.LevelDebug), "it has a level of its own")
	assert.False(t, writes(b, slog.LevelWarn))
	assert.Equal(t, []logging.Level{{"root", slog.LevelError, true}, {"a", slog.LevelDebug, true}, {"b", slog.LevelError, false}}, levels.All())

	require.NoError(t, levels.Reset("a"))
	assert.False(t, writes(a, slog.LevelWarn))
	assert.True(t, writes(slog.New(levels.Handler("nobody", text)), slog.LevelError), "an unknown logger is root's")

	assert.ErrorIs(t, levels.Set("c", slog.LevelInfo), logging.ErrUnknown)
	assert.ErrorIs(t, levels.Reset("c"), logging.ErrUnknown)
	assert.EqualError(t, levels.Check("c"), `no such logger as "c": there are root, a, b`)
	assert.NoError(t, levels.Check("b"))
	assert.ErrorIs(t, levels.Reset("root"), logging.ErrRoot)
}

func TestNames(t *testing.T) {
	for _, name := range []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"} {
		level, err := logging.Parse(name)
		require.NoError(t, err)
		assert.Equal(t, name, logging.Name(level))
	}
	level, err := logging.Parse("warn")
	require.NoError(t, err)
	assert.Equal(t, slog.LevelWarn, level)
	_, err = logging.Parse("LOUD")
	assert.EqualError(t, err, `want TRACE, DEBUG, INFO, WARN, ERROR or FATAL, not "LOUD"`)
}

// TestLevelsFromManyGoroutines is for the race detector.
func TestLevelsFromManyGoroutines(t *testing.T) {
	levels := logging.NewLevels(slog.LevelInfo, "a")
	log := slog.New(levels.Handler("a", slog.DiscardHandler))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				assert.NoError(t, levels.Set("a", slog.LevelDebug))
				log.Info("x")
				assert.NoError(t, levels.Reset("a"))
				levels.All()
			}
		})
	}
	all.Wait()
}
