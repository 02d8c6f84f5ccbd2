package compression_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/record"
)

// upper is a codec that changes the case of letters.
type upper struct {
	compression.Gate
	id      record.Codec
	fail    error
	journal *[]string
}

func (u *upper) ID() record.Codec { return u.id }

func (u *upper) Start(ctx context.Context) error {
	if u.fail != nil {
		return u.fail
	}
	*u.journal = append(*u.journal, "start "+u.id.String())
	return u.Gate.Start(ctx)
}

func (u *upper) Stop(ctx context.Context) error {
	*u.journal = append(*u.journal, "stop "+u.id.String())
	return u.Gate.Stop(ctx)
}

func (u *upper) Compress(dst, src []byte) ([]byte, error) {
	return append(dst, strings.ToUpper(string(src))...), u.Check()
}

func (u *upper) Decompress(dst, src []byte, _ int) ([]byte, error) {
	return append(dst, strings.ToLower(string(src))...), u.Check()
}

func TestSet(t *testing.T) {
	var journal []string
	s, err := compression.NewSet(&upper{id: record.Zstd, journal: &journal}, &upper{id: record.Gzip, journal: &journal})
	require.NoError(t, err)
	require.Equal(t, []record.Codec{record.Zstd, record.Gzip}, s.IDs())

	_, err = s.Compress(record.Gzip, 0, nil, []byte("a"))
	require.ErrorIs(t, err, compression.ErrNotRunning)
	require.NoError(t, s.Start(context.Background()))
	out, err := s.Compress(record.Gzip, 0, []byte("b"), []byte("a"))
	require.NoError(t, err)
	require.Equal(t, "bA", string(out))
	out, err = s.Decompress(record.Zstd, nil, []byte("AB"), 9)
	require.NoError(t, err)
	require.Equal(t, "ab", string(out))

	_, err = s.Compress(record.Gzip, 5, nil, []byte("a"))
	require.ErrorIs(t, err, compression.ErrLevel)
	for _, id := range []record.Codec{record.LZ4, 5, -1} {
		_, err = s.Compress(id, 0, nil, nil)
		require.ErrorIs(t, err, compression.ErrMissing)
		_, err = s.Decompress(id, nil, nil, 1)
		require.ErrorIs(t, err, compression.ErrMissing)
	}
	out, err = s.Compress(record.None, 0, []byte("b"), []byte("a"))
	require.NoError(t, err)
	require.Equal(t, "ba", string(out))
	_, err = s.Decompress(record.None, nil, []byte("abc"), 2)
	require.ErrorIs(t, err, compression.ErrTooLarge)

	c, err := s.ByName("gzip")
	require.NoError(t, err)
	require.Equal(t, record.Gzip, c.ID())
	_, err = s.ByName("lz4")
	require.ErrorIs(t, err, compression.ErrMissing)
	_, err = s.ByName("none")
	require.ErrorIs(t, err, compression.ErrMissing)
	_, err = s.ByName("brotli")
	require.Error(t, err)

	require.NoError(t, s.Stop(context.Background()))
	require.Equal(t, []string{"start zstd", "start gzip", "stop gzip", "stop zstd"}, journal)
}

func TestSetRefuses(t *testing.T) {
	var journal []string
	_, err := compression.NewSet(&upper{id: record.Gzip, journal: &journal}, &upper{id: record.Gzip, journal: &journal})
	require.ErrorContains(t, err, "two codecs for gzip")
	for _, id := range []record.Codec{record.None, 5, -1} {
		_, err = compression.NewSet(&upper{id: id, journal: &journal})
		require.ErrorContains(t, err, "does not exist")
	}
}

func TestSetUndoesAFailedStart(t *testing.T) {
	var journal []string
	boom := errors.New("boom")
	s, err := compression.NewSet(&upper{id: record.Zstd, journal: &journal}, &upper{id: record.Gzip, journal: &journal, fail: boom})
	require.NoError(t, err)
	require.ErrorIs(t, s.Start(context.Background()), boom)
	require.Equal(t, []string{"start zstd", "stop zstd"}, journal)
}
