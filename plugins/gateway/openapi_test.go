package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/plugins/gateway"
)

// checker holds every exchange of the tests against the document: the operation, its status, the media type, and the bodies
// against their schemas.
type checker struct {
	doc   *huma.OpenAPI
	paths map[*regexp.Regexp]*huma.PathItem
	seen  map[string]bool // operation ids
}

func newChecker(t testing.TB, g *gateway.Gateway) *checker {
	t.Helper()
	c := &checker{doc: g.OpenAPI(), paths: map[*regexp.Regexp]*huma.PathItem{}, seen: map[string]bool{}}
	for path, item := range c.doc.Paths {
		pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		c.paths[regexp.MustCompile("^"+pattern+"/?$")] = item
	}
	return c
}

func (c *checker) operation(method string, at *url.URL) *huma.Operation {
	for pattern, item := range c.paths {
		if pattern.MatchString(at.EscapedPath()) {
			return map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "DELETE": item.Delete, "PUT": item.Put, "PATCH": item.Patch}[method]
		}
	}
	return nil
}

// exchange checks one request and its answer.
func (c *checker) exchange(t testing.TB, req *http.Request, sent []byte, resp *http.Response, got []byte) {
	t.Helper()
	for _, fault := range c.faults(req, sent, resp, got) {
		t.Errorf("%s %s, answered by %d, is not as the document says: %s", req.Method, req.URL, resp.StatusCode, fault)
	}
}

func (c *checker) faults(req *http.Request, sent []byte, resp *http.Response, got []byte) []string {
	op := c.operation(req.Method, req.URL)
	if op == nil {
		if resp.StatusCode != 404 && resp.StatusCode != 405 && req.URL.Path != "/openapi.json" {
			return []string{"there is no such operation"}
		}
		return nil
	}
	c.seen[op.OperationID] = true
	answer := op.Responses[strconv.Itoa(resp.StatusCode)]
	if answer == nil {
		return []string{"no such status"}
	}
	if resp.StatusCode < 300 && len(bytes.TrimSpace(sent)) > 0 {
		media, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
		content := op.RequestBody.Content[media]
		if content == nil {
			return []string{"the request's Content-Type was taken and isn't there"}
		}
		if faults := c.body(content.Schema, sent, huma.ModeWriteToServer); op.OperationID != "produceV3" && len(faults) > 0 {
			return append([]string{"the request was taken"}, faults...)
		}
	}
	if len(answer.Content) == 0 {
		if len(got) > 0 {
			return []string{"no body is said to come"}
		}
		return nil
	}
	content := answer.Content[resp.Header.Get("Content-Type")]
	if content == nil {
		return []string{"no such Content-Type: " + resp.Header.Get("Content-Type")}
	}
	return c.body(content.Schema, got, huma.ModeReadFromServer)
}

// body checks one JSON value, or several one after another.
func (c *checker) body(schema *huma.Schema, data []byte, mode huma.ValidateMode) (faults []string) {
	for decoder := json.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		if err := decoder.Decode(&v); err == io.EOF {
			return faults
		} else if err != nil {
			return append(faults, err.Error())
		}
		result := &huma.ValidateResult{}
		huma.Validate(c.doc.Components.Schemas, schema, huma.NewPathBuffer(nil, 0), mode, v, result)
		for _, err := range result.Errors {
			faults = append(faults, err.Error())
		}
	}
}

// TestCheckerFindsFaults shows that the check can fail.
func TestCheckerFindsFaults(t *testing.T) {
	b := start(t, &byKey{})
	get := func(path string) *http.Request {
		req, err := http.NewRequest("GET", b.base+path, nil)
		require.NoError(t, err)
		return req
	}
	faults := func(req *http.Request, status int, media, body string) string {
		text := "HTTP/1.1 " + strconv.Itoa(status) + " X\r\nContent-Type: " + media + "\r\n\r\n"
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		return strings.Join(b.check.faults(req, nil, resp, []byte(body)), "; ")
	}
	assert.Empty(t, faults(get("/topics"), 200, v2, `["a"]`))
	assert.Contains(t, faults(get("/topics"), 200, v2, `["a",1]`), "expected string")
	assert.Contains(t, faults(get("/topics"), 200, v2, `["a"`), "EOF")
	assert.Contains(t, faults(get("/topics"), 200, "text/plain", `["a"]`), "Content-Type")
	assert.Contains(t, faults(get("/topics"), 418, v2, `[]`), "status")
	assert.Contains(t, faults(get("/topicz"), 200, v2, `[]`), "no such operation")
	assert.Contains(t, faults(get("/topics/a"), 200, v2, `{"name":"a","configs":{},"partitions":[],"more":1}`), "unexpected property")
	assert.Contains(t, faults(get("/topics/a"), 404, v2, `{"message":"a"}`), "error_code")
}

// TestDocument reads the document as clients do, and holds it against the operations.
func TestDocument(t *testing.T) {
	b := start(t, &byKey{})
	got := b.get("/openapi.json")
	assert.Equal(t, 200, got.status)
	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
	var doc struct {
		OpenAPI string                            `json:"openapi"`
		Paths   map[string]map[string]interface{} `json:"paths"`
	}
	got.into(t, &doc)
	assert.Equal(t, "3.1.0", doc.OpenAPI)
	assert.Len(t, doc.Paths, len(b.gateway.OpenAPI().Paths))
	for _, path := range []string{
		"/topics", "/topics/{topic_name}", "/topics/{topic_name}/partitions/{partition_id}/offsets",
		"/consumers/{group_name}/instances/{instance}/records", "/v3/clusters/{cluster_id}/topics/{topic_name}/records",
		"/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/lag-summary",
	} {
		assert.Contains(t, doc.Paths, path)
	}
	// Every reference leads somewhere.
	for _, match := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(got.body, -1) {
		assert.Contains(t, b.gateway.OpenAPI().Components.Schemas.Map(), match[1])
	}
	// Every operation without a body answers a stranger's first guess as the document says.
	for path, item := range b.gateway.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "DELETE": item.Delete} {
			if op == nil {
				continue
			}
			for _, guess := range []string{"x", "0", "-1", "%00", "%2F", "..%2f..", strings.Repeat("a", 300), "%F0%9F%A6%86"} {
				at := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, guess)
				if got := b.send(method, at, nil, nil); strings.Contains(path, "{") && got.status != 200 {
					assert.True(t, slices.Contains([]int{400, 404, 415}, got.status), "%s %s: %d %s", method, at, got.status, got.body)
				}
			}
		}
	}
}
