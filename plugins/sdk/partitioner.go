package sdk

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/status"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

func partitionerRole(f partitioner.Factory) role {
	r := describe(pluginv1.RolePartitioner, f)
	r.make = func(ctx context.Context, options config.Section, log *slog.Logger) (*running, *pluginv1.ConfigureResponse, error) {
		p, err := f.New(options, partitioner.Settings{Settings: plugin.Settings{Logger: log}})
		if err != nil {
			return nil, nil, err
		}
		if err := start(ctx, p); err != nil {
			return nil, nil, err
		}
		return &running{Component: p, partitioner: p}, traits(p), nil
	}
	return r
}

// traits is what the host is to know of a partitioner before it asks for partitions.
func traits(p partitioner.Partitioner) *pluginv1.ConfigureResponse {
	r := &pluginv1.ConfigureResponse{Keyed: p.Keyed()}
	if e, ok := p.(partitioner.EmptyKeys); ok {
		r.EmptyIsNoKey = !e.EmptyIsKey()
	}
	if b, ok := p.(partitioner.Bound); ok {
		r.Bound = b.Bound()
	}
	return r
}

// notConfigured is the answer of a service that has no implementation behind it.
func notConfigured() *pluginv1.Error {
	return &pluginv1.Error{Code: pluginv1.Code_CODE_CLOSED, Message: "the plug-in isn't configured for this role, or is ending"}
}

// ended gives gRPC's own error when a call failed because its context ended, else nil.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

type partitionerService struct {
	pluginv1.UnimplementedPartitionerServer
	server *server
}

// Partition implements the service Partitioner.
func (s *partitionerService) Partition(ctx context.Context, q *pluginv1.PartitionRequest) (*pluginv1.PartitionResponse, error) {
	r := s.server.running.Load()
	if r == nil || r.partitioner == nil {
		return &pluginv1.PartitionResponse{Error: notConfigured()}, nil
	}
	b, err := q.Batch()
	if err != nil {
		return &pluginv1.PartitionResponse{Error: pluginv1.NewError(pluginv1.RolePartitioner, err)}, nil
	}
	answers, err := r.partitioner.Partition(ctx, make([]int32, 0, len(b.Records)), b)
	if err != nil {
		if gone := ended(ctx, err); gone != nil {
			return nil, gone
		}
		return &pluginv1.PartitionResponse{Error: pluginv1.NewError(pluginv1.RolePartitioner, err)}, nil
	}
	return &pluginv1.PartitionResponse{Partitions: answers}, nil
}
