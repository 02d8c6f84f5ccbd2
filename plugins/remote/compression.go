package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// NewCompressionFactory makes the factory of codecs in processes of their own. Those of inProcess may take over.
func NewCompressionFactory(inProcess plugin.Registry[compression.Settings, compression.Codec]) compression.Factory {
	return plugin.NewFactory("remote", "an executable that is a codec, in a process of its own",
		func() CodecOptions {
			o := codecDefaults()
			o.fallbacks = inProcess.Names()
			return o
		},
		func(o CodecOptions, s compression.Settings) (compression.Codec, error) {
			id, err := record.ParseCodec(o.Codec)
			if err != nil {
				return nil, err
			}
			if o.OnFailure == Reject {
				return NewCodec(id, o.common(), s.Logger, nil), nil
			}
			choice, err := inProcess.Default(o.OnFailure)
			if err != nil {
				return nil, err
			}
			fallback, err := choice.New(s)
			if err != nil {
				return nil, err
			}
			return NewCodec(id, o.common(), s.Logger, fallback), nil
		})
}

// NewCodec makes a codec of an executable. fallback, which may be nil, works when the plug-in doesn't; it is started and
// stopped with the codec.
func NewCodec(id record.Codec, o Options, log *slog.Logger, fallback compression.Codec) *Codec {
	c := &Codec{host: newHost(pluginv1.RoleCompression, o, log), id: id, fallback: fallback}
	c.lenient = fallback != nil
	c.verify = func(a *pluginv1.ConfigureResponse) error {
		if got := record.Codec(a.GetCodecId()); int32(got) != a.GetCodecId() || got != id {
			return fmt.Errorf("it is the codec number %d: want %d, %s", a.GetCodecId(), id, id)
		}
		return nil
	}
	return c
}

// Codec is a [compression.Leveled]. Contrary to clause 2 of the contract it does call outside of the process.
type Codec struct {
	*host
	id       record.Codec
	fallback compression.Codec // or nil
}

var _ compression.Leveled = (*Codec)(nil)

// ID implements the contract.
func (c *Codec) ID() record.Codec { return c.id }

// Start implements the contract.
func (c *Codec) Start(ctx context.Context) error {
	if c.fallback != nil {
		if err := c.fallback.Start(ctx); err != nil {
			return err
		}
	}
	err := c.host.Start(ctx)
	if err != nil && c.fallback != nil {
		err = errors.Join(err, c.fallback.Stop(context.WithoutCancel(ctx)))
	}
	return err
}

// Stop implements the contract.
func (c *Codec) Stop(ctx context.Context) error {
	err := c.host.Stop(ctx)
	if c.fallback != nil {
		err = errors.Join(err, c.fallback.Stop(ctx))
	}
	return err
}

// Compress implements the contract.
func (c *Codec) Compress(dst, src []byte) ([]byte, error) {
	return c.compress(dst, src, nil, func() ([]byte, error) { return c.fallback.Compress(dst, src) })
}

// CompressLevel implements the contract.
func (c *Codec) CompressLevel(dst, src []byte, level int) ([]byte, error) {
	if err := c.CheckLevel(level); err != nil {
		return dst, err
	}
	l := int32(level)
	return c.compress(dst, src, &l, func() ([]byte, error) {
		leveled, ok := c.fallback.(compression.Leveled)
		if !ok {
			return c.fallback.Compress(dst, src)
		}
		return leveled.CompressLevel(dst, src, level)
	})
}

// CheckLevel implements the contract: the levels are those of the plug-in, and none before it ran for the first time.
func (c *Codec) CheckLevel(level int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.first.GetLevels(), func(r *pluginv1.LevelRange) bool { return level >= int(r.GetMin()) && level <= int(r.GetMax()) }) {
		return nil
	}
	return c.wrap(fmt.Errorf("%w: %d", compression.ErrLevel, level))
}

// largest bounds what may come out of a call, given how many bytes may be in the answer.
func largest(n int) int {
	const overhead = 64 << 10
	return min(n, math.MaxInt32-overhead) + overhead
}

func (c *Codec) compress(dst, src []byte, level *int32, fallback func() ([]byte, error)) ([]byte, error) {
	s, err := c.running()
	if err != nil {
		return c.fall(dst, err, fallback)
	}
	// No codec makes a block half as large again as what it was given.
	client := pluginv1.NewCompressionClient(s.conn)
	answer, err := call(context.Background(), c.host, s, largest(len(src)+len(src)/2), client.Compress, &pluginv1.CompressRequest{Data: src, Level: level})
	if err == nil {
		err = answer.GetError().For(pluginv1.RoleCompression)
	}
	if err != nil {
		return c.fall(dst, c.wrap(err), fallback)
	}
	return append(dst, answer.GetData()...), nil
}

// Decompress implements the contract.
func (c *Codec) Decompress(dst, src []byte, limit int) ([]byte, error) {
	fallback := func() ([]byte, error) { return c.fallback.Decompress(dst, src, limit) }
	s, err := c.running()
	if err != nil {
		return c.fall(dst, err, fallback)
	}
	client := pluginv1.NewCompressionClient(s.conn)
	answer, err := call(context.Background(), c.host, s, largest(limit), client.Decompress, &pluginv1.DecompressRequest{Data: src, Limit: int64(limit)})
	switch {
	case err != nil:
		return c.fall(dst, c.wrap(err), fallback)
	case answer.GetError() != nil:
		return dst, c.wrap(answer.GetError().For(pluginv1.RoleCompression))
	case len(answer.GetData()) > limit:
		return c.fall(dst, c.wrap(fmt.Errorf("%w: %w: %d bytes, %d allowed", compression.ErrTooLarge, errAnswer, len(answer.GetData()), limit)), fallback)
	}
	return append(dst, answer.GetData()...), nil
}

// running gives the life of the plug-in that a call goes to.
func (c *Codec) running() (*session, error) {
	if c.stoppedNow() {
		return nil, c.wrap(compression.ErrNotRunning)
	}
	s, err := c.use()
	return s, c.wrap(err)
}

// fall lets the fallback work, when there is one and the plug-in had no answer, or none that can be used.
func (c *Codec) fall(dst []byte, why error, fallback func() ([]byte, error)) ([]byte, error) {
	if c.fallback == nil || !errors.Is(why, errDown) && !errors.Is(why, errAnswer) {
		return dst, why
	}
	return fallback()
}
