package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// patience is how long an implementation may take to stop.
const patience = 5 * time.Second

// role is one thing that the plug-in can be.
type role struct {
	name  string // of the factory
	info  *pluginv1.Role
	fault error
	// check decodes options, make makes and starts the implementation, and says what the host is to know of it.
	check func(config.Section) error
	make  func(ctx context.Context, options config.Section, log *slog.Logger) (*running, *pluginv1.ConfigureResponse, error)
}

// running is the implementation in use: one of the last three is set.
type running struct {
	plugin.Component
	partitioner partitioner.Partitioner
	codec       compression.Codec
	store       offsets.Store
}

// server is the process: it answers the service Plugin, and holds what the services of the roles use.
type server struct {
	pluginv1.UnimplementedPluginServer

	roles   []role
	version string
	stderr  *os.File // which the host reads to its end
	log     *slog.Logger

	mu         sync.Mutex // held while configuring
	configured bool
	running    atomic.Pointer[running]
}

func newServer(stderr *os.File) *server { return &server{stderr: stderr, log: newLogger(stderr)} }

func (s *server) name() string { return s.roles[0].name }

// grpcServer makes the gRPC server, and ends it when standard input does: the host holds its other end for as long as it
// lives, however that ends.
func (s *server) grpcServer(options []grpc.ServerOption) *grpc.Server {
	made := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.ForceServerCodecV2(pluginv1.NewCodec()),
		grpc.InitialWindowSize(pluginv1.Window), grpc.InitialConnWindowSize(pluginv1.Window), grpc.ReadBufferSize(pluginv1.Buffer), grpc.WriteBufferSize(pluginv1.Buffer))...)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		made.Stop()
	}()
	return made
}

// stop stops the implementation, when there is one.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configured = true // and nothing is configured any more
	if r := s.running.Swap(nil); r != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Stop(ctx); err != nil {
			s.log.Error("stop", "error", err)
		}
	}
}

// Info implements the service Plugin.
func (s *server) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	info := &pluginv1.InfoResponse{Name: s.name(), Version: s.version}
	for _, r := range s.roles {
		info.Roles = append(info.Roles, r.info)
	}
	return info, nil
}

// Ping implements the service Plugin.
func (*server) Ping(context.Context, *pluginv1.PingRequest) (*pluginv1.PingResponse, error) {
	return &pluginv1.PingResponse{}, nil
}

// Configure implements the service Plugin.
func (s *server) Configure(ctx context.Context, q *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := func(code pluginv1.Code, err error) (*pluginv1.ConfigureResponse, error) {
		return &pluginv1.ConfigureResponse{Error: &pluginv1.Error{Code: code, Message: err.Error()}}, nil
	}
	if s.configured {
		return failed(pluginv1.Code_CODE_CLOSED, errors.New("configured already, or ending"))
	}
	for _, r := range s.roles {
		if r.info.GetRole() != q.GetRole() {
			continue
		}
		options, err := config.Parse("", q.GetOptionsYaml())
		if err == nil {
			err = r.check(options)
		}
		if err != nil {
			return failed(pluginv1.Code_CODE_OPTIONS, errors.New(faults(err)))
		}
		// go-plugin has put a pipe in its place, and what is still in there when the process ends is lost: a plug-in's last words.
		os.Stderr = s.stderr
		made, response, err := r.make(ctx, options, s.log)
		if err != nil {
			return failed(pluginv1.Code_CODE_OTHER, errors.New(faults(err)))
		}
		s.configured = true
		s.running.Store(made)
		return response, nil
	}
	return failed(pluginv1.Code_CODE_INVALID, fmt.Errorf("%s is no %s", s.name(), q.GetRole()))
}

// faults writes errors one per line, each with the path of the option in front: the host knows file and line.
func faults(err error) string {
	var all config.Errors
	if !errors.As(err, &all) {
		all = config.Errors{err}
	}
	lines := make([]string, len(all))
	for i, one := range all {
		var placed *config.Error
		if errors.As(one, &placed) {
			one = placed.Err
			if placed.Path != "" {
				one = fmt.Errorf("%s: %w", placed.Path, placed.Err)
			}
		}
		lines[i] = strings.ReplaceAll(one.Error(), "\n", " ")
	}
	return strings.Join(lines, "\n")
}

// start starts an implementation. What it holds is for the life of the process, so ctx bounds the start alone.
func start(ctx context.Context, c plugin.Component) error {
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// describe makes what a factory tells the host.
func describe[S, T any](name string, f plugin.Factory[S, T]) role {
	info := &pluginv1.Role{Role: name, Summary: f.Summary()}
	for _, o := range f.Options() {
		info.Options = append(info.Options, &pluginv1.Option{Name: o.Name, Type: o.Type, Default: o.Default, Doc: o.Doc})
	}
	_, fault := plugin.NewRegistry(name, f)
	return role{name: f.Name(), info: info, fault: fault, check: f.Check}
}

// services registers all services, whatever the plug-in can be: those that it can't answer that they aren't configured.
type services struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

var _ goplugin.GRPCPlugin = (*services)(nil)

// GRPCServer implements goplugin.GRPCPlugin.
func (s *services) GRPCServer(_ *goplugin.GRPCBroker, r *grpc.Server) error {
	pluginv1.RegisterPluginServer(r, s.server)
	pluginv1.RegisterPartitionerServer(r, &partitionerService{server: s.server})
	pluginv1.RegisterCompressionServer(r, &compressionService{server: s.server})
	pluginv1.RegisterOffsetsServer(r, &offsetsService{server: s.server})
	return nil
}

// GRPCClient implements goplugin.GRPCPlugin; this is no host.
func (*services) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("sdk: this is the plug-in's end")
}
