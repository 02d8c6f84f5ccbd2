package target

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// configuration is the name of a broker's configuration in its folder.
const configuration = "barnabas.yaml"

// Options are what differs between brokers that StartBarnabas starts.
type Options struct {
	Dir        string            // a folder, made when missing; the configuration goes into it, and the data into Dir/data
	Addr       string            // host:port of the listener; "" is a free port of 127.0.0.1
	Storage    string            // "" is the broker's default
	Properties map[string]string // over those that every broker is started with; listeners and log.dirs too
	Sections   string            // further lines of the configuration, beside broker and storage
}

// StartBarnabas runs the binary's serve command and returns once the broker answers. It may be called again with the same
// options, and Addr set, after that broker has ended.
func StartBarnabas(ctx context.Context, bin string, o Options) (*peers.Peer, error) {
	if o.Addr == "" {
		port, err := peers.FreePort()
		if err != nil {
			return nil, err
		}
		o.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	cmd, err := BarnabasCommand(bin, o)
	if err != nil {
		return nil, err
	}
	return peers.Start(ctx, cmd, o.Addr, o.data())
}

// BarnabasCommand is the command that StartBarnabas runs, with its configuration written, for those who want to see it fail.
func BarnabasCommand(bin string, o Options) (*exec.Cmd, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	conf := filepath.Join(o.Dir, configuration)
	if err := os.WriteFile(conf, []byte(o.yaml()), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "serve", "-c", conf)
	cmd.Dir = o.Dir
	return cmd, nil
}

func (o Options) data() string {
	if dirs, ok := o.Properties["log.dirs"]; ok {
		return dirs
	}
	return filepath.Join(o.Dir, "data")
}

// yaml is the configuration of a broker on one machine.
func (o Options) yaml() string {
	p := properties()
	maps.Copy(p, map[string]string{"broker.id": "1", "listeners": "PLAINTEXT://" + o.Addr, "log.dirs": o.data()})
	maps.Copy(p, o.Properties)
	var y strings.Builder
	y.WriteString("broker:\n")
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&y, "  %s: %s\n", k, p[k])
	}
	if o.Storage != "" {
		fmt.Fprintf(&y, "storage: %s\n", o.Storage)
	}
	y.WriteString(o.Sections)
	return y.String()
}
