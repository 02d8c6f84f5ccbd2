package acceptance

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Media types of the HTTP gateway.
const (
	mediaBinary = "application/vnd.kafka.binary.v2+json"
	mediaJSON   = "application/vnd.kafka.json.v2+json"
)

// front is the HTTP gateway of a broker.
type front struct {
	t    *testing.T
	base string
}

// frontAt waits for the gateway at an address: it is the last that a broker starts.
func frontAt(t *testing.T, addr string) front {
	t.Helper()
	f := front{t, "http://" + addr}
	eventually(t, func() bool {
		resp, err := http.Get(f.base + "/topics")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, "no gateway at %s", addr)
	return f
}

// post sends a body and gives the answer's status and body.
func (f front) post(path, media, body string) (status int, answer string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.base+path, strings.NewReader(body))
	require.NoError(f.t, err)
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	client := &http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	require.NoError(f.t, err)
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	return resp.StatusCode, string(got)
}
