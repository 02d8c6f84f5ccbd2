package sdk

import (
	"context"
	"log/slog"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

func compressionRole(f compression.Factory) role {
	r := describe(pluginv1.RoleCompression, f)
	r.make = func(ctx context.Context, options config.Section, log *slog.Logger) (*running, *pluginv1.ConfigureResponse, error) {
		c, err := f.New(options, compression.Settings{Settings: plugin.Settings{Logger: log}})
		if err != nil {
			return nil, nil, err
		}
		if err := start(ctx, c); err != nil {
			return nil, nil, err
		}
		return &running{Component: c, codec: c}, &pluginv1.ConfigureResponse{CodecId: int32(c.ID()), Levels: levels(c)}, nil
	}
	return r
}

// Kafka's levels lie between these: zstd's lowest is the lowest of all.
const lowestLevel, highestLevel = -131072, 100

// levels lists the levels of a codec as ranges.
func levels(c compression.Codec) (ranges []*pluginv1.LevelRange) {
	l, ok := c.(compression.Leveled)
	if !ok {
		return nil
	}
	var open *pluginv1.LevelRange
	for level := int32(lowestLevel); level <= highestLevel; level++ {
		switch {
		case l.CheckLevel(int(level)) != nil:
			open = nil
		case open == nil:
			open = &pluginv1.LevelRange{Min: level, Max: level}
			ranges = append(ranges, open)
		default:
			open.Max = level
		}
	}
	return ranges
}

type compressionService struct {
	pluginv1.UnimplementedCompressionServer
	server *server
}

// Compress implements the service Compression.
func (s *compressionService) Compress(_ context.Context, q *pluginv1.CompressRequest) (*pluginv1.CompressResponse, error) {
	r := s.server.running.Load()
	if r == nil || r.codec == nil {
		return &pluginv1.CompressResponse{Error: notConfigured()}, nil
	}
	var data []byte
	var err error
	if leveled, ok := r.codec.(compression.Leveled); q.Level != nil && ok {
		data, err = leveled.CompressLevel(nil, q.GetData(), int(q.GetLevel()))
	} else if q.Level != nil {
		err = compression.ErrLevel
	} else {
		data, err = r.codec.Compress(nil, q.GetData())
	}
	if err != nil {
		return &pluginv1.CompressResponse{Error: pluginv1.NewError(pluginv1.RoleCompression, err)}, nil
	}
	return &pluginv1.CompressResponse{Data: data}, nil
}

// Decompress implements the service Compression.
func (s *compressionService) Decompress(_ context.Context, q *pluginv1.DecompressRequest) (*pluginv1.DecompressResponse, error) {
	r := s.server.running.Load()
	if r == nil || r.codec == nil {
		return &pluginv1.DecompressResponse{Error: notConfigured()}, nil
	}
	data, err := r.codec.Decompress(nil, q.GetData(), int(q.GetLimit()))
	if err != nil {
		return &pluginv1.DecompressResponse{Error: pluginv1.NewError(pluginv1.RoleCompression, err)}, nil
	}
	return &pluginv1.DecompressResponse{Data: data}, nil
}
