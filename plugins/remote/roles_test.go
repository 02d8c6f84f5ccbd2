package remote_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/remote"
)

// kill ends a plug-in's process as nobody can prevent.
func kill(t *testing.T, p interface {
	Describe() (name, version string, pid int)
}) {
	t.Helper()
	_, _, pid := p.Describe()
	require.NotZero(t, pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func entry(at int64) offsets.Batch {
	return offsets.Batch{Entries: []offsets.Entry{{Key: offsets.OffsetKey("g", "t", 0), Offset: &offsets.Offset{Offset: at, LeaderEpoch: -1, ExpireTimestamp: -1}}}}
}

// TestStoreStartsAgain wants a store whose process was killed to be owned as before, so that the broker needs to know nothing
// of it, and to have all that was acknowledged.
func TestStoreStartsAgain(t *testing.T) {
	t.Parallel()
	o := options("store")
	o.Config = section(t, fmt.Sprintf("config: {file: %q}", filepath.Join(t.TempDir(), "journal")))
	s := remote.NewStore(o, nil)
	require.NoError(t, s.Start(t.Context()))
	require.NoError(t, s.Load(t.Context(), 0, 5, func(offsets.Event) error { return nil }))
	require.NoError(t, s.Write(t.Context(), 0, 5, entry(1)))
	kill(t, s)
	last := int64(1)
	require.Eventually(t, func() bool {
		err := s.Write(t.Context(), 0, 5, entry(last+1))
		if err == nil {
			last++
			return last > 3
		}
		require.True(t, errors.Is(err, offsets.ErrUnavailable) || errors.Is(err, offsets.ErrTimedOut), "%v", err)
		return false
	}, time.Minute, 10*time.Millisecond)
	var got int64
	require.NoError(t, s.Load(t.Context(), 0, 6, func(e offsets.Event) error { got = e.Entry.Offset.Offset; return nil }))
	require.Equal(t, last, got)
	require.ErrorIs(t, s.Write(t.Context(), 0, 5, entry(9)), offsets.ErrNotOwner)
	require.NoError(t, s.Stop(t.Context()))
}

// TestStoreWithoutAnswer wants writes whose outcome isn't known told as such, and a load that says nothing ended.
func TestStoreWithoutAnswer(t *testing.T) {
	t.Parallel()
	o := options("store")
	o.CallTimeout, o.PingInterval = time.Second, time.Hour
	o.Config = section(t, fmt.Sprintf("config: {file: %q}", filepath.Join(t.TempDir(), "journal")))
	s := remote.NewStore(o, nil)
	require.NoError(t, s.Start(t.Context()))
	require.NoError(t, s.Load(t.Context(), 0, 1, func(offsets.Event) error { return nil }))
	_, _, pid := s.Describe()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	var err error
	for err == nil { // it stops within moments
		err = s.Write(t.Context(), 0, 1, entry(1))
	}
	require.ErrorIs(t, err, offsets.ErrTimedOut)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Load(ctx, 0, 2, func(offsets.Event) error { return nil }), context.DeadlineExceeded)
	require.ErrorIs(t, s.Write(t.Context(), 0, 2, entry(1)), offsets.ErrNotOwner)
	require.NoError(t, s.Stop(t.Context()))
	gone(t, pid)
}

// copying is a codec of the same id as the plug-in's that marks what it makes.
type copying struct{ compression.Gate }

func (*copying) ID() record.Codec { return record.Snappy }
func (*copying) Compress(dst, src []byte) ([]byte, error) {
	return append(append(dst, '!'), src...), nil
}
func (*copying) Decompress(dst, src []byte, _ int) ([]byte, error) {
	return append(dst, src[1:]...), nil
}

func TestCodecFallback(t *testing.T) {
	t.Parallel()
	c := remote.NewCodec(record.Snappy, options("codec"), nil, &copying{})
	require.NoError(t, c.Start(t.Context()))
	require.NoError(t, c.CheckLevel(3))
	require.ErrorIs(t, c.CheckLevel(4), compression.ErrLevel)
	ours, err := c.Compress(nil, []byte("abc"))
	require.NoError(t, err)
	require.NotEqual(t, "!abc", string(ours))
	_, err = c.Decompress(nil, []byte("!abc"), 10)
	require.ErrorIs(t, err, compression.ErrCorrupt, "a block that the plug-in refuses is nothing for the fallback")
	kill(t, c)
	require.Eventually(t, func() bool {
		out, err := c.Compress(nil, []byte("abc"))
		return err == nil && string(out) == "!abc"
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Stop(t.Context()))
}

func TestWrongCodec(t *testing.T) {
	t.Parallel()
	c := remote.NewCodec(record.Zstd, options("codec"), nil, nil)
	require.ErrorContains(t, c.Start(t.Context()), "it is the codec number 2: want 4, zstd")
	require.NoError(t, c.Stop(t.Context()))
}

// TestFactories makes each role's implementation from a configuration.
func TestFactories(t *testing.T) {
	t.Parallel()
	made := func(text string) config.Section {
		root, err := config.Parse("x.yaml", []byte("remote:\n"+text))
		require.NoError(t, err)
		sub, _ := root.Sub("remote")
		return sub
	}
	command := fmt.Sprintf("  command: %q\n", faulty)

	inProcess, err := plugin.NewRegistry("partitioner", plugin.NewFactory("last", "the last", func() struct{} { return struct{}{} },
		func(struct{}, partitioner.Settings) (partitioner.Partitioner, error) { return &last{}, nil }))
	require.NoError(t, err)
	p, err := remote.NewPartitionerFactory(inProcess).New(made(command+"  args: [negative]\n  on_failure: last\n  start_timeout: 20s\n"), partitioner.Settings{})
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	got, err := p.Partition(t.Context(), nil, batch(2))
	require.NoError(t, err)
	require.Equal(t, []int32{11, 11}, got)
	require.NoError(t, p.Stop(t.Context()))
	require.ErrorContains(t, remote.NewPartitionerFactory(inProcess).Check(made(command+"  on_failure: lst\n")), `x.yaml:3: remote.on_failure: want reject or one of last, not "lst"`)

	codecs, err := plugin.NewRegistry("compression", plugin.NewFactory("snappy", "copies", func() struct{} { return struct{}{} },
		func(struct{}, compression.Settings) (compression.Codec, error) { return &copying{}, nil }))
	require.NoError(t, err)
	c, err := remote.NewCompressionFactory(codecs).New(made(command+"  codec: snappy\n  on_failure: snappy\n"), compression.Settings{})
	require.NoError(t, err)
	require.Equal(t, record.Snappy, c.ID())
	require.ErrorContains(t, remote.NewCompressionFactory(codecs).Check(made(command+"  codec: gzip\n  on_failure: snappy\n")), "snappy can't read what gzip writes")
	require.ErrorContains(t, remote.NewCompressionFactory(codecs).Check(made(command)), "remote.codec: want gzip, snappy, lz4 or zstd")

	s, err := remote.NewOffsetsFactory().New(made(command), offsets.Settings{})
	require.NoError(t, err)
	require.Empty(t, s.Topic())
	require.ErrorContains(t, remote.NewOffsetsFactory().Check(made(command+"  on_failure: memory\n")), "unknown key")
}
