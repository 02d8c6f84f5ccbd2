package examples

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/plugins/remote"
	"github.com/barnabas-mq/barnabas/plugins/sdk/kgopartitioner"
	"github.com/barnabas-mq/barnabas/plugins/sdk/scaffold"
)

// newPlugin writes the repository of a plug-in.
func newPlugin(t *testing.T, role, name string) (dir string) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	parent := t.TempDir()
	command(t, parent, program(), "plugin", "new", "--role", role, name, "--replace", root)
	// The checksums are known here, so nothing is asked of the network.
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	dir = filepath.Join(parent, name)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	return dir
}

// TestNewPlugin has what is written for each role built and tested, which holds the executable against the contract, and its
// configuration read.
func TestNewPlugin(t *testing.T) {
	for _, role := range scaffold.Roles() {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			dir := newPlugin(t, role, "mine")
			require.Empty(t, command(t, dir, "gofmt", "-l", "."))
			command(t, dir, "go", "test", "-mod=mod", ".")
			command(t, dir, program(), "config", "check", "barnabas.yaml")
		})
	}
}

// TestSamePlaces has one partitioner, in a process of its own, place the same keys for who produces over HTTP, with
// `barnabas produce` and with franz-go.
func TestSamePlaces(t *testing.T) {
	t.Parallel()
	dir := newPlugin(t, "partitioner", "geo")
	command(t, dir, "go", "build", "-mod=mod", "-o", "geo", ".")
	require.Regexp(t, `geo \S+, partitioner: grade [AB], 0 of \d+ checks failed`, command(t, dir, program(), "plugin", "check", "./geo"))
	addr, front := address(t), address(t)
	own := "{header: region, regions: {eu: 5, us: 1}}"
	conf := fmt.Sprintf("broker: {listeners: 'PLAINTEXT://%s', log.dirs: data}\npartitioner: {remote: {command: ./geo, config: %s}}\ngateway: {listen: '%s'}\n", addr, own, front)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "barnabas.yaml"), []byte(conf), 0o644))
	serve := exec.Command(program(), "serve", "-c", "barnabas.yaml")
	serve.Dir = dir
	broker, err := peers.Start(t.Context(), serve, addr, filepath.Join(dir, "data"))
	require.NoError(t, err)
	defer func() { require.NoError(t, broker.Stop()) }()
	require.Regexp(t, `partitioner remote +geo \S+, process [1-9]\d*`, command(t, dir, program(), "plugins", "-c", "barnabas.yaml"))
	command(t, dir, program(), "topic", "create", "t", "-b", addr, "--partitions", "8")

	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprint("customer-", i))
	}
	p := remote.NewPartitioner(options(t, filepath.Join(dir, "geo"), own), quiet, nil)
	require.NoError(t, p.Start(t.Context()))
	defer func() { require.NoError(t, p.Stop(context.WithoutCancel(t.Context()))) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgopartitioner.New(p)))
	require.NoError(t, err)
	defer client.Close()
	for _, region := range []string{"", "eu"} {
		post(t, "http://"+front, keys, region)
		lines, flags := strings.Join(keys, "=produce"+region+"\n")+"=produce"+region+"\n", []string(nil)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lines"), []byte(lines), 0o644))
		var records []*kgo.Record
		for _, key := range keys {
			records = append(records, &kgo.Record{Key: []byte(key), Value: []byte("franz-go" + region)})
		}
		if region != "" {
			flags = []string{"-H", "region=" + region}
			for _, r := range records {
				r.Headers = []kgo.RecordHeader{{Key: "region", Value: []byte(region)}}
			}
		}
		command(t, dir, program(), append([]string{"produce", "-t", "t", "-b", addr, "-c", "barnabas.yaml", "-K", "=", "-f", "lines"}, flags...)...)
		require.NoError(t, client.ProduceSync(t.Context(), records...).FirstErr())
	}

	at := map[string]map[string]string{} // by way, then by key
	for line := range strings.Lines(command(t, dir, program(), "consume", "-t", "t", "-b", addr, "--template", "{{.Partition}} {{.Key}} {{.Value}}")) {
		f := strings.Fields(line)
		if at[f[2]] == nil {
			at[f[2]] = map[string]string{}
		}
		at[f[2]][f[1]] = f[0]
	}
	require.Len(t, at, 6)
	used := map[string]bool{}
	for _, key := range keys {
		used[at["http"][key]] = true
		require.Equal(t, at["http"][key], at["produce"][key], key)
		require.Equal(t, at["http"][key], at["franz-go"][key], key)
		for _, way := range []string{"httpeu", "produceeu", "franz-goeu"} {
			require.Equal(t, "5", at[way][key], "%s %s", way, key)
		}
	}
	require.Greater(t, len(used), 4, "keys are spread")
}

// address is one that nobody listens at.
func address(t *testing.T) string {
	t.Helper()
	port, err := peers.FreePort()
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// post produces keys with the value "http" and their region over HTTP: in the gateway's version 2, or, as that has no headers, in
// version 3 when there is a region.
func post(t *testing.T, base string, keys []string, region string) {
	t.Helper()
	text := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	if region == "" {
		var records []string
		for _, key := range keys {
			records = append(records, fmt.Sprintf(`{"key":%q,"value":%q}`, text(key), text("http")))
		}
		answer(t, "POST", base+"/topics/t", "application/vnd.kafka.binary.v2+json", `{"records":[`+strings.Join(records, ",")+`]}`)
		return
	}
	var clusters struct {
		Data []struct {
			ID string `json:"cluster_id"`
		}
	}
	require.NoError(t, json.Unmarshal(answer(t, "GET", base+"/v3/clusters", "", ""), &clusters))
	var stream strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&stream, `{"headers":[{"name":"region","value":%q}],"key":{"type":"BINARY","data":%q},"value":{"type":"STRING","data":"http%s"}}`+"\n", text(region), text(key), region)
	}
	reports := answer(t, "POST", base+"/v3/clusters/"+clusters.Data[0].ID+"/topics/t/records", "application/json", stream.String())
	require.Equal(t, len(keys), bytes.Count(reports, []byte(`"error_code":200`)), "%s", reports)
}

// answer makes a request, which must succeed, and gives the body of the answer.
func answer(t *testing.T, method, url, media, body string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	resp, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", got)
	return got
}
