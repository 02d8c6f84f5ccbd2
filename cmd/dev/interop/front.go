package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// The HTTP gateway, checked with what others wrote for such an API.
const (
	restName = "rest-client" // a client of REST Proxy's version 2
)

// frontPython installs the Python packages for the gateway's checks and gives the interpreter.
func (r Runner) frontPython(ctx context.Context) (string, error) {
	requirements, err := os.ReadFile(installer{env: r.Env}.dir("python", "http-requirements.txt"))
	if err != nil {
		return "", err
	}
	return r.Tools.Python(ctx, "interop-http", requirements)
}

// startFront starts a broker with the gateway, and gives the gateway's URL.
func (r Runner) startFront(ctx context.Context) (broker *peers.Peer, url string, stop func(), err error) {
	port, err := peers.FreePort()
	if err != nil {
		return nil, "", nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	broker, stop, err = r.startOwn(ctx, target.Options{Sections: fmt.Sprintf("gateway: {listen: %q}\n", addr)})
	return broker, "http://" + addr, stop, err
}

// restClient makes the checks of python/rest_client.py.
func (r Runner) restClient(ctx context.Context) ([]probe.Result, error) {
	python, err := r.frontPython(ctx)
	if err != nil {
		return nil, err
	}
	broker, url, stop, err := r.startFront(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	program := installed{Client: Client{Name: restName}, command: command{args: []string{python, "-B", "-u", installer{env: r.Env}.dir("python", "rest_client.py")}}}
	results := program.play(ctx, r.Env, probe.Args{Role: probe.RoleChecks, Bootstrap: url}, []string{"produce", "read", "resume", "files", "refused"})
	return results, broker.Stop()
}
