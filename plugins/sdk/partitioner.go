package sdk

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"google.golang.org/grpc"
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
	r := &pluginv1.ConfigureResponse{Keyed: p.Keyed(), PartitionStream: true}
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
	b, err := q.Batch()
	answer := &pluginv1.PartitionAnswer{Partitions: make([]int32, 0, len(q.GetKeys().GetSizes()))}
	if err := s.answer(ctx, b, err, answer); err != nil {
		return nil, err
	}
	return &pluginv1.PartitionResponse{Error: answer.Error, Partitions: answer.Partitions, Call: q.GetCall()}, nil
}

// PartitionStream implements the service Partitioner.
func (s *partitionerService) PartitionStream(stream grpc.BidiStreamingServer[pluginv1.PartitionRequest, pluginv1.PartitionResponse]) error {
	task, answer := &pluginv1.PartitionTask{}, &pluginv1.PartitionAnswer{}
	defer task.Free()
	for {
		if err := stream.RecvMsg(task); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		b, err := task.Batch()
		if err := s.answer(stream.Context(), b, err, answer); err != nil {
			return err
		}
		answer.Number = task.Number
		task.Free()
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
		if cap(answer.Partitions) > keptRecords {
			task, answer = &pluginv1.PartitionTask{}, &pluginv1.PartitionAnswer{}
		}
	}
}

// keptRecords is how many records a batch may have had whose memory is kept for the next one.
const keptRecords = 64 << 10

// answer asks the implementation. fault says that the batch makes no sense. The error is gRPC's own, for a call that has ended.
func (s *partitionerService) answer(ctx context.Context, b *partitioner.Batch, fault error, to *pluginv1.PartitionAnswer) error {
	to.Error, to.Partitions = nil, to.Partitions[:0]
	r := s.server.running.Load()
	if r == nil || r.partitioner == nil {
		to.Error = notConfigured()
		return nil
	}
	if fault == nil {
		var got []int32
		if got, fault = r.partitioner.Partition(ctx, to.Partitions, b); fault == nil {
			to.Partitions = got
			return nil
		}
	}
	to.Error = pluginv1.NewError(pluginv1.RolePartitioner, fault)
	return ended(ctx, fault)
}
