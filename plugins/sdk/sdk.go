// Package sdk turns an implementation of one of Barnabas' contracts into a plug-in that runs as a process of its own:
//
//	func main() {
//		sdk.Serve(sdk.Partitioner(geo.NewFactory()))
//	}
//
// The implementation and its factory are exactly what they would be inside of the broker: see package core/partitioner,
// core/compression or core/offsets for the contract, and core/plugin for factories and options. The broker starts the
// executable when its configuration names it, gives it its options, and ends it.
//
// plugins/sdk/plugincheck tests such an executable; plugins/sdk/kgopartitioner lets franz-go programs use partitioners.
// The protocol, for plug-ins in other languages, is described in plugins/remote/proto/v1.
package sdk

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// Option is a part of a plug-in: what it implements, or something about it.
type Option func(*server)

// Partitioner makes the plug-in a partitioner.
func Partitioner(f partitioner.Factory) Option {
	return func(s *server) { s.roles = append(s.roles, partitionerRole(f)) }
}

// Compression makes the plug-in a codec.
func Compression(f compression.Factory) Option {
	return func(s *server) { s.roles = append(s.roles, compressionRole(f)) }
}

// Offsets makes the plug-in an offsets store. It keeps its data by itself: Log and Codecs of its settings are nil, Topic must
// be "", and all groups are in shard 0.
func Offsets(f offsets.Factory) Option {
	return func(s *server) { s.roles = append(s.roles, offsetsRole(f)) }
}

// Version sets the version that the plug-in tells. Without it, it is that of the main module, as Go built it.
func Version(v string) Option {
	return func(s *server) { s.version = v }
}

// Serve is what main calls. It returns when the host has gone or has told the plug-in to end, after the implementation was
// stopped; then main returns too. Started by anything but a host, it says what the executable is for and exits with 1.
//
// A plug-in may have several roles; the host chooses one of them for each process. Standard output belongs to the protocol:
// what the plug-in prints there is lost. It logs to the logger of its settings, which ends up in the broker's log.
func Serve(options ...Option) {
	s := newServer(os.Stderr)
	for _, o := range options {
		o(s)
	}
	if err := s.check(); err != nil {
		fmt.Fprintln(os.Stderr, "plug-in:", err)
		return
	}
	if os.Getenv(pluginv1.CookieKey) != pluginv1.CookieValue {
		fmt.Fprintf(os.Stderr, "%s %s is a plug-in for the message broker Barnabas. Name it in the broker's configuration:\n\n", s.name(), s.version)
		fmt.Fprintf(os.Stderr, "  %s: {remote: {command: %s}}\n\nor see what it is worth: barnabas plugin check %s\n\n", s.roles[0].info.GetRole(), os.Args[0], os.Args[0])
	}
	defer s.stop()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: pluginv1.CookieKey, MagicCookieValue: pluginv1.CookieValue},
		VersionedPlugins: map[int]goplugin.PluginSet{pluginv1.ProtocolVersion: {pluginv1.SetName: &services{server: s}}},
		GRPCServer:       s.grpcServer,
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
	})
}

// check says what makes the plug-in unfit.
func (s *server) check() error {
	if len(s.roles) == 0 {
		return errors.New("it has no role: give Serve a Partitioner, a Compression or an Offsets")
	}
	seen := map[string]bool{}
	for _, r := range s.roles {
		if r.fault != nil {
			return r.fault
		}
		if seen[r.info.GetRole()] {
			return fmt.Errorf("it has the role %s twice", r.info.GetRole())
		}
		seen[r.info.GetRole()] = true
	}
	if s.version == "" {
		s.version = "unknown"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			s.version = info.Main.Version
		}
	}
	return nil
}
