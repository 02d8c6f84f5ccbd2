package sdk

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

func offsetsRole(f offsets.Factory) role {
	r := describe(pluginv1.RoleOffsets, f)
	r.make = func(ctx context.Context, options config.Section, log *slog.Logger) (*running, *pluginv1.ConfigureResponse, error) {
		s, err := f.New(options, offsets.Settings{Settings: plugin.Settings{Logger: log}})
		if err != nil {
			return nil, nil, err
		}
		if topic := s.Topic(); topic != "" {
			return nil, nil, fmt.Errorf("it wants the topic %s for its shards: a store in a process of its own has none", topic)
		}
		if err := start(ctx, s); err != nil {
			return nil, nil, err
		}
		return &running{Component: s, store: s}, &pluginv1.ConfigureResponse{}, nil
	}
	return r
}

type offsetsService struct {
	pluginv1.UnimplementedOffsetsServer
	server *server
}

// store is the running store, or nil.
func (s *offsetsService) store() offsets.Store {
	if r := s.server.running.Load(); r != nil {
		return r.store
	}
	return nil
}

// Prepare implements the service Offsets.
func (s *offsetsService) Prepare(ctx context.Context, _ *pluginv1.PrepareRequest) (*pluginv1.PrepareResponse, error) {
	store := s.store()
	if store == nil {
		return &pluginv1.PrepareResponse{Error: notConfigured()}, nil
	}
	return &pluginv1.PrepareResponse{Error: pluginv1.NewError(pluginv1.RoleOffsets, store.Prepare(ctx))}, nil
}

// What one message of a load holds at most, so that it stays far below what a host takes.
const eventsPerMessage, bytesPerMessage = 1000, 1 << 20

// Load implements the service Offsets.
func (s *offsetsService) Load(q *pluginv1.LoadRequest, stream grpc.ServerStreamingServer[pluginv1.LoadResponse]) error {
	store := s.store()
	if store == nil {
		return stream.Send(&pluginv1.LoadResponse{Error: notConfigured()})
	}
	next, size := &pluginv1.LoadResponse{}, 0
	err := store.Load(stream.Context(), q.GetShard(), q.GetEpoch(), func(e offsets.Event) error {
		event, err := pluginv1.NewEvent(e)
		if err != nil {
			return err
		}
		next.Events = append(next.Events, event)
		size += len(event.GetEntry().GetKey()) + len(event.GetEntry().GetValue())
		if len(next.Events) < eventsPerMessage && size < bytesPerMessage {
			return nil
		}
		full := next
		next, size = &pluginv1.LoadResponse{}, 0
		return stream.Send(full)
	})
	if err != nil {
		if gone := ended(stream.Context(), err); gone != nil {
			return gone
		}
		return stream.Send(&pluginv1.LoadResponse{Error: pluginv1.NewError(pluginv1.RoleOffsets, err)})
	}
	next.Done = true
	return stream.Send(next)
}

// Unload implements the service Offsets.
func (s *offsetsService) Unload(_ context.Context, q *pluginv1.UnloadRequest) (*pluginv1.UnloadResponse, error) {
	if store := s.store(); store != nil {
		store.Unload(q.GetShard(), q.GetEpoch())
	}
	return &pluginv1.UnloadResponse{}, nil
}

// Write implements the service Offsets.
func (s *offsetsService) Write(ctx context.Context, q *pluginv1.WriteRequest) (*pluginv1.WriteResponse, error) {
	store := s.store()
	if store == nil {
		return &pluginv1.WriteResponse{Error: notConfigured()}, nil
	}
	b, err := q.Batch()
	if err == nil {
		err = store.Write(ctx, q.GetShard(), q.GetEpoch(), b)
	}
	if err != nil {
		if gone := ended(ctx, err); gone != nil {
			return nil, gone
		}
	}
	return &pluginv1.WriteResponse{Error: pluginv1.NewError(pluginv1.RoleOffsets, err)}, nil
}
