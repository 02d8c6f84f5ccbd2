package electiontest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	Run(t, Options{Portable: true}, func(*testing.T) Cluster { return NewMemory() })
}
