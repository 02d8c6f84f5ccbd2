package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// writeTimeout is how long an answer may take to leave.
const writeTimeout = 30 * time.Second

// call is one request under way.
type call struct {
	g        *Gateway
	op       *operation
	ctx      huma.Context
	r        *http.Request
	w        http.ResponseWriter
	registry huma.Registry
	schema   *huma.Schema // of the body

	media string // of the answer
	given string // of the body
	data  []byte // the body
}

// serve answers a request in one of some media types.
func (c *call) serve(offered []string) {
	c.media = negotiate(c.r.Header.Values("Accept"), offered)
	if c.media == "" {
		c.media = offered[0]
		c.fail(fail(http.StatusNotAcceptable, "HTTP 406 Not Acceptable: this operation answers in %s", strings.Join(offered, ", ")))
		return
	}
	if c.op.takes != nil {
		if err := c.receive(); err != nil {
			c.fail(err)
			return
		}
	}
	answer, err := c.op.handle(c)
	switch answer.(type) {
	case written:
		return
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.deadline()
	if c.op.answer == nil {
		c.w.WriteHeader(c.op.status)
		return
	}
	body, ok := answer.([]byte) // of a handler that encodes by itself
	if !ok {
		body = mustJSON(answer)
	}
	c.w.Header().Set("Content-Type", c.media)
	c.w.WriteHeader(c.op.status)
	_, _ = c.w.Write(body) // a client that is gone needs no answer
}

// fail answers with an error.
func (c *call) fail(err error) {
	answer := fromError(err)
	if c.op.version == 2 && answer.Code == codeNoTopicV3 && !errors.As(err, new(*Error)) {
		answer = noTopic()
	}
	if answer.status() >= 500 {
		c.g.log.Debug("a request failed", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
	}
	c.deadline()
	if status := answer.status(); status == http.StatusRequestTimeout || status == http.StatusRequestEntityTooLarge {
		c.w.Header().Set("Connection", "close") // the rest of the body isn't waited for
	}
	writeError(c.w, c.media, answer)
}

func (c *call) deadline() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// receive checks the body's type and reads it, unless the handler does so.
func (c *call) receive() error {
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fail(http.StatusUnsupportedMediaType, "HTTP 415 Unsupported Media Type: a body may not be encoded (Content-Encoding: %.40s)", encoding)
	}
	header := c.r.Header.Get("Content-Type")
	if header == "" && c.op.optional { // then there must be no body
		if err := c.readAll(); err != nil || len(c.data) == 0 {
			return err
		}
	}
	given, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	if err != nil || !slices.Contains(c.op.takes, given) || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fail(http.StatusUnsupportedMediaType, "HTTP 415 Unsupported Media Type: want Content-Type %s", strings.Join(c.op.takes, " or "))
	}
	c.given = given
	if c.op.unread {
		return nil
	}
	return c.readAll()
}

// readAll reads the body within the bounds of size and time.
func (c *call) readAll() error {
	limit := int64(c.g.options.MaxBody)
	if c.r.ContentLength > limit {
		return c.tooLarge()
	}
	stop := c.bounded()
	defer stop()
	var b bytes.Buffer
	if c.r.ContentLength > 0 {
		// What is promised is believed only so far: a lie must cost no memory.
		b.Grow(int(min(c.r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(c.r.Body, limit+1)); err != nil {
		return c.unread(err)
	}
	if int64(b.Len()) > limit {
		return c.tooLarge()
	}
	c.data = b.Bytes()
	if !utf8.Valid(c.data) {
		return fail(http.StatusBadRequest, "Malformed JSON: it is not UTF-8.")
	}
	return nil
}

// bounded gives the body a time by which it must have come, which the end of the gateway brings forward.
func (c *call) bounded() (stop func()) {
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(c.g.options.BodyTimeout))
	cancel := context.AfterFunc(c.g.closing, func() { _ = control.SetReadDeadline(time.Now()) })
	return func() {
		if cancel() {
			_ = control.SetReadDeadline(time.Time{})
		}
	}
}

func (c *call) tooLarge() error {
	return fail(http.StatusRequestEntityTooLarge, "HTTP 413 Request Entity Too Large: the limit is %s", c.g.options.MaxBody)
}

// unread says why a body couldn't be read.
func (c *call) unread(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fail(http.StatusRequestTimeout, "HTTP 408 Request Timeout: the body took longer than %s", c.g.options.BodyTimeout)
	}
	return fail(http.StatusBadRequest, "The body could not be read: %v", err)
}

// decode reads the body into v, after checking it against the schema that the document shows. It reports false for an empty body that may be left out.
func (c *call) decode(v any) (bool, error) {
	if len(bytes.TrimSpace(c.data)) == 0 {
		if c.op.optional {
			return false, nil
		}
		return false, fail(http.StatusBadRequest, "The body is empty.")
	}
	l := lexer{b: c.data}
	if _, err := l.raw(); err != nil {
		return false, err
	}
	if err := l.end(); err != nil {
		return false, err
	}
	var loose any
	if err := json.Unmarshal(c.data, &loose); err != nil {
		return false, fail(http.StatusBadRequest, "Malformed JSON: %v.", err)
	}
	result := &huma.ValidateResult{}
	huma.Validate(c.registry, c.schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, loose, result)
	if key := misspelt(c.registry, c.schema, loose); key != "" {
		return false, fail(http.StatusUnprocessableEntity, "Unrecognized field: %.100s", key)
	}
	if len(result.Errors) > 0 {
		return false, fail(http.StatusUnprocessableEntity, "%s", faults(result.Errors))
	}
	if err := unmarshal(c.data, v); err != nil {
		return false, err
	}
	return true, nil
}

// unmarshal reads JSON that a schema allows. To it 5.0 and 5e0 are whole numbers, too; not so to encoding/json.
func unmarshal(data []byte, v any) error {
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(data, v)
	if errors.As(err, &wrong) {
		var loose any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&loose); err != nil {
			return fail(http.StatusBadRequest, "Malformed JSON: %v.", err)
		}
		err = json.Unmarshal(mustJSON(plainNumbers(loose)), v)
	}
	if errors.As(err, &wrong) {
		return fail(http.StatusUnprocessableEntity, "%s: want what fits, not the %.60s", wrong.Field, wrong.Value)
	}
	return err
}

// plainNumbers writes whole numbers as digits alone.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = plainNumbers(value)
		}
	case []any:
		for i, value := range v {
			v[i] = plainNumbers(value)
		}
	case json.Number:
		if n, ok := whole(string(v)); ok {
			return json.Number(strconv.FormatInt(n, 10))
		}
	}
	return v
}

// whole gives the value of a whole number, which may be written with a fraction or an exponent while a float64 holds it exactly.
func whole(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	const exact = 1 << 53
	f, err := strconv.ParseFloat(text, 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) <= exact
}

// misspelt finds a key that a schema doesn't have in just this spelling: neither the check nor the decoder cares for case.
func misspelt(registry huma.Registry, schema *huma.Schema, v any) string {
	if schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			property := schema.Properties[key]
			if property == nil {
				if schema.Type == huma.TypeObject {
					return key
				}
				continue
			}
			if key := misspelt(registry, property, value); key != "" {
				return key
			}
		}
	case []any:
		for _, value := range v {
			if schema.Items == nil {
				break
			}
			if key := misspelt(registry, schema.Items, value); key != "" {
				return key
			}
		}
	}
	return ""
}

// faults joins what the check found, without repeating the input, which may be large.
func faults(errs []error) string {
	const most = 5
	var texts []string
	for _, err := range errs[:min(most, len(errs))] {
		text := err.Error()
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			text = detail.Message
			if detail.Location != "" {
				text = detail.Location + ": " + text
			}
		}
		texts = append(texts, text)
	}
	if more := len(errs) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// param gives a part of the path.
func (c *call) param(name string) string { return c.ctx.Param(name) }

// partition gives the part of the path that is a partition.
func (c *call) partition() (int32, error) {
	n, err := strconv.ParseInt(c.param("partition_id"), 10, 32)
	if err != nil || n < 0 {
		return 0, noPartition()
	}
	return int32(n), nil
}

// number gives a query parameter that is a whole number and not negative; -1 when it is absent or -1.
func (c *call) number(name string) (int64, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 {
		return 0, fail(http.StatusBadRequest, "%s: want a whole number, not %.40q", name, text)
	}
	return n, nil
}

// base is the address under which the client reached the gateway.
func (c *call) base() string { return "http://" + c.r.Host }

// link joins escaped parts to an address.
func link(base string, parts ...string) string {
	var b strings.Builder
	b.WriteString(base)
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// bound gives the context for what the broker is asked: it ends with the request, and when the broker takes too long.
func (c *call) bound() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.g.options.RequestTimeout)
}
