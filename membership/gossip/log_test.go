package gossip

import (
	"log/slog"
	"os"
	"testing"
)

// logger says what is going on when the tests are told to be verbose about it.
func logger(testing.TB) *slog.Logger {
	if os.Getenv("GOSSIP_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
