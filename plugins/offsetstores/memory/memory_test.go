package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	offsetstest.Run(t, func(*testing.T) offsetstest.World {
		return offsetstest.World{Store: func() offsets.Store { return memory.New() }}
	})
}

func TestFactory(t *testing.T) {
	f := memory.NewFactory()
	require.Equal(t, "memory", f.Name())
	s, err := f.New(config.Empty("offsets.memory"), offsets.Settings{})
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))
}
