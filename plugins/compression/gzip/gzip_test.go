package gzip_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/compression/compressiontest"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/plugins/compression/gzip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCodec() (compression.Codec, error) {
	return gzip.NewFactory().New(config.Empty("compression.gzip"), compression.Settings{})
}

func started(t testing.TB) compression.Codec {
	t.Helper()
	c, err := newCodec()
	require.NoError(t, err)
	require.NoError(t, c.Start(context.Background()))
	return c
}

func TestContract(t *testing.T) { compressiontest.Run(t, newCodec) }

func FuzzDecompress(f *testing.F) {
	c := started(f)
	for _, s := range []string{"", "hello", "hello hello hello hello hello hello hello hello"} {
		block, err := c.Compress(nil, []byte(s))
		require.NoError(f, err)
		f.Add(block)
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		const limit = 1 << 16
		out, err := c.Decompress(nil, block, limit)
		switch {
		case err == nil && len(out) > limit:
			t.Fatalf("%d bytes over a limit of %d", len(out), limit)
		case err != nil && !errors.Is(err, compression.ErrCorrupt) && !errors.Is(err, compression.ErrTooLarge):
			t.Fatal(err)
		}
	})
}
