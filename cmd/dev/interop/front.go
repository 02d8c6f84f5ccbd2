package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// The HTTP gateway, checked with what others wrote for such an API.
const (
	restName         = "rest-client"  // a client of REST Proxy's version 2
	schemathesisName = "schemathesis" // holds an API against its OpenAPI document
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
	if err != nil {
		return nil, "", nil, err
	}
	url = "http://" + addr
	// The gateway is the last to start.
	patience, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if _, err = exchange(patience, http.MethodGet, url+"/topics", "", ""); err == nil {
			return broker, url, stop, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-patience.Done():
			stop()
			return nil, "", nil, err
		}
	}
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

// schemathesis has Schemathesis make requests, good ones and bad ones, out of the gateway's OpenAPI document, and hold the answers
// against it. What it makes up is the same each time.
func (r Runner) schemathesis(ctx context.Context) ([]probe.Result, error) {
	python, err := r.frontPython(ctx)
	if err != nil {
		return nil, err
	}
	broker, url, stop, err := r.startFront(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	cluster, err := furnish(ctx, url)
	if err != nil {
		return nil, err
	}
	dir, cleanup, err := r.Env.TempDir("schemathesis-") // it leaves a folder of what it found where it is started
	if err != nil {
		return nil, err
	}
	defer cleanup()
	const examples = "10"
	own := installer{env: r.Env}.dir("python")
	config := filepath.Join(own, "schemathesis.toml")
	env := []string{"CLUSTER=" + cluster, "PYTHONPATH=" + own, "PYTHONDONTWRITEBYTECODE=1", "SCHEMATHESIS_HOOKS=schemathesis_hooks"}
	err = r.Env.Run(ctx, task.Command{Dir: dir, Env: env, Args: []string{
		filepath.Join(filepath.Dir(python), "schemathesis"), "--config-file", config, "run", url + "/openapi.json", "--max-examples", examples, "--no-color", "--warnings", "off",
	}})
	result := probe.Result{Client: schemathesisName, Check: "every operation answers as the document says", OK: err == nil}
	if err != nil {
		result.Detail = fmt.Sprintf("%v\n%s", err, strings.TrimSpace(broker.Output()))
	}
	return []probe.Result{result}, broker.Stop()
}

// furnish makes what schemathesis.toml speaks of, and gives the cluster's id.
func furnish(ctx context.Context, url string) (cluster string, err error) {
	for _, request := range []struct{ path, media, body string }{
		{"/topics/t", "application/vnd.kafka.json.v2+json", `{"records":[{"value":1}]}`},
		{"/consumers/g", "application/vnd.kafka.v2+json", `{"name":"i","auto.offset.reset":"earliest","consumer.request.timeout.ms":20}`},
		{"/consumers/g/instances/i/subscription", "application/vnd.kafka.v2+json", `{"topics":["t"]}`},
	} {
		if _, err := exchange(ctx, http.MethodPost, url+request.path, request.media, request.body); err != nil {
			return "", err
		}
	}
	body, err := exchange(ctx, http.MethodGet, url+"/v3/clusters", "", "")
	if err != nil {
		return "", err
	}
	var clusters struct {
		Data []struct {
			ID string `json:"cluster_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &clusters); err != nil {
		return "", err
	}
	if len(clusters.Data) != 1 {
		return "", fmt.Errorf("the gateway tells of %d clusters", len(clusters.Data))
	}
	return clusters.Data[0].ID, nil
}

// exchange makes one HTTP request, which must succeed.
func exchange(ctx context.Context, method, url, media, body string) (got []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if got, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, got)
	}
	return got, err
}
