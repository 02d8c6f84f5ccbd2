package adminhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local are options for a test: any free port.
func local() Options {
	o := DefaultOptions()
	o.Listen = "127.0.0.1:0"
	return o
}

func start(t *testing.T, o Options, routes ...Route) *Server {
	t.Helper()
	s, err := New(o, slog.New(slog.DiscardHandler), routes...)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { assert.NoError(t, s.Stop(context.Background())) })
	return s
}

// answer is what came back.
type answer struct {
	status      int
	contentType string
	text        string
}

func ask(t *testing.T, s *Server, method, path, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(text)}
}

// echo answers with the request's body, or what is wrong with it.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		Fail(w, http.StatusRequestEntityTooLarge, "at most %d bytes", tooLarge.Limit)
		return
	}
	Write(w, http.StatusOK, string(body))
}

func TestServerAnswers(t *testing.T) {
	s := start(t, local(),
		Route{"GET", "/a", "one", http.HandlerFunc(echo)},
		Route{"POST", "/a", "another", http.HandlerFunc(echo)},
		Route{"GET", "/below/", "all below", http.HandlerFunc(echo)},
		Route{"GET", "/panics", "never well", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") })},
	)
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		answer                   string
	}{
		{name: "get", method: "GET", path: "/a", status: 200, answer: `""`},
		{name: "head", method: "HEAD", path: "/a", status: 200},
		{name: "post", method: "POST", path: "/a", body: "x", status: 200, answer: `"x"`},
		{name: "below", method: "GET", path: "/below/x/y", status: 200, answer: `""`},
		{name: "unknown path", method: "GET", path: "/b", status: 404, answer: "there is no /b here"},
		{name: "hostile path", method: "GET", path: "/%00%22%0a", status: 404, answer: `there is no /\u0000\"\n here`},
		{name: "unknown method", method: "DELETE", path: "/a", status: 405, answer: "/a takes GET, HEAD, POST, not DELETE"},
		{name: "method of the index", method: "POST", path: "/", status: 405, answer: "/ takes GET, HEAD, not POST"},
		{name: "body too large", method: "POST", path: "/a", body: strings.Repeat("x", maxBodyBytes+1), status: 413, answer: "at most 65536 bytes"},
		{name: "panic", method: "GET", path: "/panics", status: 500, answer: "the broker's log says why"},
		{name: "a page elsewhere", method: "POST", path: "/a", header: []string{"Origin", "http://example.com"}, status: 403, answer: "another origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, s, c.method, c.path, c.body, c.header...)
			assert.Equal(t, c.status, got.status)
			assert.Contains(t, got.text, c.answer)
			assert.Equal(t, "application/json", got.contentType)
			if c.status >= 400 {
				var e Error
				require.NoError(t, json.Unmarshal([]byte(got.text), &e))
				assert.Equal(t, c.status, e.Status)
			}
		})
	}
	got := ask(t, s, "GET", "/", "")
	assert.Equal(t, 200, got.status)
	assert.JSONEq(t, `[
		{"method": "GET", "path": "/a", "summary": "one"}, {"method": "POST", "path": "/a", "summary": "another"},
		{"method": "GET", "path": "/below/", "summary": "all below"}, {"method": "GET", "path": "/panics", "summary": "never well"}]`, got.text)
}

// TestHeadersAreBounded: what is too large isn't read, so that the answer may or may not arrive before the connection ends.
func TestHeadersAreBounded(t *testing.T) {
	s := start(t, local())
	conn, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Much: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	if err != nil {
		return
	}
	answer, err := io.ReadAll(conn)
	assert.NotContains(t, string(answer), "200 OK")
	if err == nil {
		assert.Contains(t, string(answer), "431")
	}
}

// TestConnectionsAreBounded: one more connection is closed, and there is room again when another ends.
func TestConnectionsAreBounded(t *testing.T) {
	o := local()
	o.MaxConnections = 2
	s := start(t, o)
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	served := func(conn net.Conn) bool {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	first, second := connect(), connect()
	require.True(t, served(first))
	require.True(t, served(second))
	assert.False(t, served(connect()))
	require.NoError(t, first.Close())
	assert.Eventually(t, func() bool { return served(connect()) }, time.Minute, 10*time.Millisecond)
}

// TestSlowClientsAreCutOff: who sends no request, or none that ends, doesn't keep a connection.
func TestSlowClientsAreCutOff(t *testing.T) {
	o := local()
	o.Timeout = time.Second
	s := start(t, o)
	for _, begin := range []string{"", "GET / HT", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx"} {
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, begin)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, conn)
		assert.NoError(t, err, "the connection ends")
	}
}

// TestStopCutsOff: a request that won't end doesn't keep the broker from stopping.
func TestStopCutsOff(t *testing.T) {
	entered := make(chan struct{})
	s, err := New(local(), slog.New(slog.DiscardHandler), Route{"GET", "/slow", "", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})})
	require.NoError(t, err)
	assert.NoError(t, s.Stop(t.Context()), "never started")
	assert.Nil(t, s.Addr())
	require.NoError(t, s.Start(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := http.Get("http://" + s.Addr().String() + "/slow")
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	assert.NoError(t, s.Stop(t.Context()))
	assert.NoError(t, s.Stop(t.Context()), "stopped already")
	<-done
}

func TestStartFailsWhereTheAddressIsTaken(t *testing.T) {
	first := start(t, local())
	o := local()
	o.Listen = first.Addr().String()
	s, err := New(o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	assert.ErrorContains(t, s.Start(t.Context()), "admin: listen tcp "+o.Listen)
	assert.NoError(t, s.Stop(t.Context()))
}

func TestRoutesThatCannotBe(t *testing.T) {
	h := http.HandlerFunc(echo)
	for _, routes := range [][]Route{
		{{"GET", "/a", "", h}, {"GET", "/a", "", h}},
		{{"GET", "/a", "", nil}},
		{{"GET", "a b{", "", h}},
		{{"GET", "/{x}/b", "", h}, {"GET", "/a/{y}", "", h}},
	} {
		_, err := New(local(), slog.New(slog.DiscardHandler), routes...)
		assert.ErrorContains(t, err, "admin: ")
	}
}

func TestOptions(t *testing.T) {
	assert.NoError(t, DefaultOptions().Validate())
	for _, listen := range []string{"127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "localhost:1", "[::ffff:127.0.0.1]:1"} {
		o := DefaultOptions()
		o.Listen = listen
		assert.NoError(t, o.Validate(), listen)
	}
	for _, listen := range []string{"0.0.0.0:1", ":1", "[::]:1", "10.0.0.1:1", "broker.example:1"} {
		o := DefaultOptions()
		o.Listen = listen
		assert.ErrorContains(t, o.Validate(), "remote: true", listen)
		o.Remote = true
		assert.NoError(t, o.Validate(), listen)
	}
	o := Options{Listen: "nowhere"}
	err := o.Validate()
	for _, want := range []string{"listen", "max_connections", "timeout"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = New(o, slog.New(slog.DiscardHandler))
	assert.Error(t, err)
}
