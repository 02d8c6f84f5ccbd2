package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

const (
	// grace is how long a plug-in may take to end by itself.
	grace = 3 * time.Second
	// largestInfo bounds what a plug-in says of itself, in bytes.
	largestInfo = 1 << 20
)

// session is one life of the plug-in: a process that has shaken hands and taken its options.
type session struct {
	conn       *grpc.ClientConn
	process    *process
	client     *goplugin.Client
	info       *pluginv1.InfoResponse
	configured *pluginv1.ConfigureResponse
	streams    streams // when it takes them
	output     *output
	dir        string       // holds the socket
	missed     atomic.Int32 // deadlines missed in a row
	fault      chan error   // has room for one; a reason to end this life
}

// launcher is what starting a plug-in takes.
type launcher struct {
	role    string
	options Options
	log     *slog.Logger
}

// launch starts the plug-in, shakes hands and gives it its options. When it fails, or ctx ends, nothing is left of it.
func (l *launcher) launch(ctx context.Context) (*session, error) { return l.open(ctx, true) }

// open is launch; without configure it ends after the plug-in has said what it is.
func (l *launcher) open(ctx context.Context, configure bool) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.StartTimeout)
	defer cancel()
	path, err := l.find()
	if err != nil {
		return nil, err
	}
	// Named short: with the names that come below, the path of a socket may have 104 bytes on some systems.
	dir, err := os.MkdirTemp("", "bp-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for its socket: %w", err)
	}
	s := &session{output: &output{to: l.log}, dir: dir, fault: make(chan error, 1)}
	if err := l.connect(ctx, s, path); err != nil {
		return nil, s.fail(err)
	}
	err = l.ask(ctx, s)
	if err == nil && configure {
		err = l.configure(ctx, s)
	}
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it took no options within %s: %w", l.options.StartTimeout, err)
		}
		return nil, s.fail(err)
	}
	return s, nil
}

// find looks the executable up and checks it.
func (l *launcher) find() (string, error) {
	path, err := exec.LookPath(l.options.Command)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("command: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("command: %w", err)
	}
	if l.options.SHA256 == "" {
		return path, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("command: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("command: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, l.options.SHA256) {
		return "", fmt.Errorf("sha256: %s has the checksum %s, want %s: it isn't the executable that was meant, and wasn't started", path, got, l.options.SHA256)
	}
	return path, nil
}

// environment lists what the plug-in is given of ours.
func (l *launcher) environment() (env []string) {
	for _, v := range l.options.Env {
		if strings.Contains(v, "=") {
			env = append(env, v)
		} else if value, ok := os.LookupEnv(v); ok {
			env = append(env, v+"="+value)
		}
	}
	return env
}

// connect starts the process and shakes hands.
func (l *launcher) connect(ctx context.Context, s *session, path string) error {
	settings, certificate, err := mutualTLS(time.Now())
	if err != nil {
		return err
	}
	made := make(chan *process, 1)
	s.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: pluginv1.CookieKey, MagicCookieValue: pluginv1.CookieValue},
		VersionedPlugins: map[int]goplugin.PluginSet{pluginv1.ProtocolVersion: {pluginv1.SetName: connection{}}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		GRPCDialOptions:  dialOptions(),
		SkipHostEnv:      true,
		StartTimeout:     l.options.StartTimeout,
		TLSConfig:        settings,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: s.dir},
		Logger:           newQuiet(l.log),
		Stderr:           &lines{to: s.output},
		SyncStderr:       &lines{to: s.output}, // what came after go-plugin took the plug-in's standard error over
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			env := append(l.environment(), spec.Env...)
			p, err := newProcess(path, l.options.Args, append(env, "PLUGIN_CLIENT_CERT="+string(certificate)))
			if err == nil {
				made <- p
			}
			return p, err
		},
	})
	// go-plugin knows no context, and waits for some answers for ever; what ends its waiting is the process' end.
	shaken := make(chan error, 1)
	go func() {
		protocol, err := s.client.Client()
		if err == nil {
			var raw any
			if raw, err = protocol.Dispense(pluginv1.SetName); err == nil {
				s.conn = raw.(*grpc.ClientConn)
			}
		}
		shaken <- err
	}()
	select {
	case err = <-shaken:
	case <-ctx.Done():
		select {
		case p := <-made:
			made <- p
			_ = p.Kill(ctx)
		default:
		}
		l.log.Debug("the handshake came to nothing", "error", <-shaken)
		err = fmt.Errorf("it didn't shake hands within %s: %w", l.options.StartTimeout, ctx.Err())
	}
	select {
	case s.process = <-made:
	default: // it never came to that
	}
	if err != nil {
		return l.explain(err)
	}
	return nil
}

// dialOptions let a whole batch be on its way without waiting for the other side to ask for more.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithInitialWindowSize(pluginv1.Window), grpc.WithInitialConnWindowSize(pluginv1.Window),
		grpc.WithReadBufferSize(pluginv1.Buffer), grpc.WithWriteBufferSize(pluginv1.Buffer),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(pluginv1.NewCodec())),
	}
}

// explain says in our terms what go-plugin says of a failed handshake.
func (l *launcher) explain(err error) error {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "timeout while waiting"):
		return fmt.Errorf("it printed no handshake line within %s", l.options.StartTimeout)
	case strings.HasPrefix(text, "Unrecognized remote plugin message:"):
		line, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, "Unrecognized remote plugin message:")), "\n")
		if line == "" || strings.HasPrefix(line, "Failed to read any lines") {
			return errors.New("it ended its output without a handshake line")
		}
		return fmt.Errorf("the first line that it printed is no handshake: %.200q", line)
	case strings.HasPrefix(text, "incompatible API version"):
		return fmt.Errorf("it speaks another version of the protocol than %d: %w", pluginv1.ProtocolVersion, err)
	}
	return fmt.Errorf("handshake: %w", err)
}

// partition is the way to ask a partitioner: a stream, when it takes streams, else call by call.
func (s *session) partition() func(context.Context, *exchange, ...grpc.CallOption) (struct{}, error) {
	if s.configured.GetPartitionStream() {
		return s.streams.partition
	}
	return func(ctx context.Context, e *exchange, options ...grpc.CallOption) (struct{}, error) {
		return struct{}{}, s.conn.Invoke(ctx, pluginv1.Partitioner_Partition_FullMethodName, &e.call, &e.answer, options...)
	}
}

// ask asks the plug-in what it is.
func (l *launcher) ask(ctx context.Context, s *session) error {
	info, err := pluginv1.NewPluginClient(s.conn).Info(ctx, &pluginv1.InfoRequest{}, grpc.MaxCallRecvMsgSize(largestInfo))
	if err != nil {
		return fmt.Errorf("info: %w", transport(err))
	}
	s.info = info
	s.streams.client = pluginv1.NewPartitionerClient(s.conn)
	return nil
}

// configure checks the options against what the plug-in says that it takes, and hands them over.
func (l *launcher) configure(ctx context.Context, s *session) error {
	i := slices.IndexFunc(s.info.GetRoles(), func(r *pluginv1.Role) bool { return r.GetRole() == l.role })
	if i < 0 {
		var roles []string
		for _, r := range s.info.GetRoles() {
			roles = append(roles, r.GetRole())
		}
		return fmt.Errorf("it is no %s: its roles are [%s]", l.role, strings.Join(roles, ", "))
	}
	if err := checkKeys(l.options.Config, s.info.GetRoles()[i].GetOptions()); err != nil {
		return err
	}
	yaml, err := l.options.Config.YAML()
	if err != nil {
		return err
	}
	json, err := l.options.Config.JSON()
	if err != nil {
		return err
	}
	request := &pluginv1.ConfigureRequest{Role: l.role, OptionsYaml: yaml, OptionsJson: json}
	s.configured, err = pluginv1.NewPluginClient(s.conn).Configure(ctx, request, grpc.MaxCallRecvMsgSize(largestInfo))
	if err != nil {
		return fmt.Errorf("configure: %w", transport(err))
	}
	if e := s.configured.GetError(); e.GetCode() == pluginv1.Code_CODE_OPTIONS {
		return optionFaults(l.options.Config, e.GetMessage())
	} else if e != nil {
		return fmt.Errorf("configure: %w", e.For(l.role))
	}
	return nil
}

// checkKeys refuses top keys that the plug-in doesn't have.
func checkKeys(section config.Section, options []*pluginv1.Option) error {
	valid := make([]string, len(options))
	for i, o := range options {
		valid[i], _, _ = strings.Cut(o.GetName(), ".")
	}
	return section.Only(valid...)
}

// optionFaults puts file and line to the faults that a plug-in found in its options.
func optionFaults(section config.Section, text string) error {
	var errs config.Errors
	for line := range strings.SplitSeq(text, "\n") {
		at, rest := section, line
		if path, message, ok := strings.Cut(line, ": "); ok {
			inner, found := section, true
			for part := range strings.SplitSeq(path, ".") {
				if inner, found = inner.Sub(part); !found {
					break
				}
			}
			if found {
				at, rest = inner, message
			}
		}
		errs = append(errs, at.Wrap(errors.New(rest)))
	}
	return config.Join(errs)
}

// close ends this life: the process is told to end, and killed when it doesn't.
func (s *session) close(grace time.Duration) {
	if s.process != nil && s.process.started {
		s.process.end(grace)
	}
	if s.client != nil {
		s.client.Kill() // the process has gone: this waits for go-plugin's goroutines
	}
	_ = os.RemoveAll(s.dir)
}

// fail ends a life that didn't begin and adds to err how the process ended.
func (s *session) fail(err error) error {
	how := ""
	if s.process != nil && s.process.started {
		// Whoever ended by itself has said so by now, or will in a moment.
		timer := time.NewTimer(lingering)
		select {
		case <-s.process.exited:
			how = s.process.ending()
		case <-timer.C:
		}
		timer.Stop()
	}
	s.close(0)
	var placed *config.Error
	if errors.As(err, &placed) || how == "" {
		return err
	}
	err = fmt.Errorf("%w (%s", err, how)
	if last := s.output.lastWords(); last != "" {
		err = fmt.Errorf("%w, and its last words were %q", err, last)
	}
	return fmt.Errorf("%w)", err)
}

// demand asks for the end of this life.
func (s *session) demand(why error) {
	select {
	case s.fault <- why:
	default: // somebody has
	}
}

// connection is go-plugin's idea of a plug-in: it gives the bare connection.
type connection struct {
	goplugin.NetRPCUnsupportedPlugin
}

var _ goplugin.GRPCPlugin = connection{}

// GRPCServer implements goplugin.GRPCPlugin.
func (connection) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("remote: this is the host's end")
}

// GRPCClient implements goplugin.GRPCPlugin.
func (connection) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
