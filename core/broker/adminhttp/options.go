package adminhttp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Options are the keys below `admin:` in the YAML file.
type Options struct {
	Listen         string        `yaml:"listen" doc:"HOST:PORT to listen on"`
	Remote         bool          `yaml:"remote" doc:"allow a listen address that other machines reach; whoever reaches it sees all that is said there, so there has to be something in front that checks"`
	MaxConnections int           `yaml:"max_connections" doc:"most connections at a time; those beyond it are closed at once"`
	Timeout        time.Duration `yaml:"timeout" doc:"how long an answer may take, from the end of the request's header on; a connection on which nothing happens is closed after as long"`
}

// DefaultOptions are the options that an empty `admin:` section has.
func DefaultOptions() Options {
	return Options{Listen: "127.0.0.1:9644", MaxConnections: 64, Timeout: time.Minute}
}

// Validate finds values that make no sense, and an address that more than this machine reaches when that wasn't asked for.
func (o Options) Validate() error {
	var errs []error
	fault := func(key, format string, args ...any) {
		errs = append(errs, config.At(key, fmt.Errorf(format, args...)))
	}
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		fault("listen", "want HOST:PORT, not %q", o.Listen)
	case !o.Remote && !isLoopback(host):
		fault("listen", "other machines reach %q: set `remote: true` beside it if they are to, or listen on 127.0.0.1", o.Listen)
	}
	if o.MaxConnections < 1 || o.MaxConnections > 10_000 {
		fault("max_connections", "must be between 1 and 10000")
	}
	if o.Timeout < time.Second || o.Timeout > time.Hour {
		fault("timeout", "must be between 1s and 1h")
	}
	return errors.Join(errs...)
}

// isLoopback says whether only this machine reaches a host. Names other than localhost are not asked about: what they mean may
// change.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
