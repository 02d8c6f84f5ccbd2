package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
)

// operation is one row of the API: all that is said of it in /openapi.json, and what it does.
type operation struct {
	version      int // 2 or 3, of the API
	method, path string
	id, summary  string
	doc          string
	query        []*huma.Param

	takes    []string       // media types of the body; none without one
	body     any            // a value of the body's type
	bodies   map[string]any // the same, for media types of which it is another
	optional bool           // the body may be left out
	unread   bool           // handle reads the body itself
	// shown narrows the body's schema in the document to what handle takes: it refuses the rest with codes of its own.
	shown func(*huma.Schema)

	status int // of success
	answer any // a value of the answer's type; nil for an answer without content
	fails  []int
	// handle does it. What it returns is written, unless it is written, which says that handle did so itself.
	handle func(c *call) (any, error)
}

// written is what a handler returns that wrote the answer itself.
type written struct{}

// build makes the routes and the document.
func (g *Gateway) build() {
	router := chi.NewMux()
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	checked := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer) // as registry, but nothing in it is narrowed
	g.api = humachi.New(router, huma.Config{OpenAPI: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Barnabas HTTP gateway",
			Version:     "1",
			Description: "Confluent REST Proxy's API in front of a Barnabas broker: version 2, and of version 3 topics, records and consumer groups.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers:    []*huma.Server{{URL: "/"}},
		Components: &huma.Components{Schemas: registry},
	}})
	for _, list := range [][]operation{g.topicsV2(), g.produceV2(), g.consumersV2(), g.positionsV2(), g.topicsV3(), g.recordsV3(), g.groupsV3()} {
		for _, op := range list {
			g.register(registry, checked, op)
		}
	}
	document := mustJSON(g.api.OpenAPI())
	router.Get("/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
	router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, usual(r), fail(http.StatusNotFound, "HTTP 404 Not Found"))
	})
	router.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed(router, r.URL))
		writeError(w, usual(r), fail(http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed"))
	})
	g.handler = g.outermost(router)
}

// allowed lists the methods that a path has.
func allowed(router *chi.Mux, at *url.URL) string {
	var methods []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if router.Match(chi.NewRouteContext(), method, at.EscapedPath()) {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}

// usual is the media type of an answer to a request that no operation takes.
func usual(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, "/v3/") {
		return mediaJSON
	}
	return mediaV2
}

// outermost takes a slash from the end of the path, as REST Proxy does, and answers for a handler that panics.
func (g *Gateway) outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				g.log.Error("a request made the gateway panic", "method", r.Method, "path", r.URL.Path, "panic", p)
				writeError(w, usual(r), fail(http.StatusInternalServerError, "Internal Server Error"))
			}
		}()
		if len(r.URL.Path) > 1 && strings.HasSuffix(r.URL.Path, "/") && !strings.HasSuffix(r.URL.RawPath, "%2F") && !strings.HasSuffix(r.URL.RawPath, "%2f") {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
			r.URL.RawPath = strings.TrimSuffix(r.URL.RawPath, "/")
		}
		next.ServeHTTP(w, r)
	})
}

// register puts an operation into the router and the document, which shows schemas of registry. Bodies are held against those of
// checked.
func (g *Gateway) register(registry, checked huma.Registry, o operation) {
	op := &huma.Operation{
		OperationID: o.id,
		Method:      o.method,
		Path:        o.path,
		Summary:     o.summary,
		Description: o.doc,
		Tags:        []string{"v" + strconv.Itoa(o.version)},
		Responses:   map[string]*huma.Response{},
	}
	for _, match := range pathParams().FindAllStringSubmatch(o.path, -1) {
		schema := &huma.Schema{Type: huma.TypeString}
		if match[1] == "partition_id" {
			schema = &huma.Schema{Type: huma.TypeInteger, Minimum: new(float64)}
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: match[1], In: "path", Required: true, Schema: schema})
	}
	op.Parameters = append(op.Parameters, o.query...)
	var body *huma.Schema
	failures := append([]int{http.StatusNotAcceptable, http.StatusInternalServerError}, o.fails...)
	if o.takes != nil {
		if !o.optional {
			failures = append(failures, http.StatusBadRequest)
		}
		failures = append(failures, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
		body = checked.Schema(reflect.TypeOf(o.body), true, o.id+"Body")
		shown := registry.Schema(reflect.TypeOf(o.body), true, o.id+"Body")
		narrow(registry, shown, o.shown)
		op.RequestBody = &huma.RequestBody{Required: !o.optional, Content: contents(o.takes, shown)}
		for name, other := range o.bodies {
			op.RequestBody.Content[name].Schema = registry.Schema(reflect.TypeOf(other), true, o.id+"OtherBody")
		}
	}
	media := mediaOf(o.version)
	success := &huma.Response{Description: http.StatusText(o.status)}
	if o.answer != nil {
		success.Content = contents(media, registry.Schema(reflect.TypeOf(o.answer), true, o.id+"Answer"))
	}
	op.Responses[strconv.Itoa(o.status)] = success
	failure := registry.Schema(reflect.TypeFor[Error](), true, "Error")
	for _, status := range failures {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: contents(media, failure)}
	}
	g.api.OpenAPI().AddOperation(op)
	g.api.Adapter().Handle(op, func(ctx huma.Context) {
		r, w := humachi.Unwrap(ctx)
		c := &call{g: g, op: &o, ctx: ctx, r: r, w: w, registry: checked, schema: body}
		c.serve(media)
	})
}

func pathParams() *regexp.Regexp { return regexp.MustCompile(`\{(\w+)\}`) }

func contents(media []string, schema *huma.Schema) map[string]*huma.MediaType {
	m := map[string]*huma.MediaType{}
	for _, name := range media {
		m[name] = &huma.MediaType{Schema: schema}
	}
	return m
}

func mustJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only types of this package are encoded, and all of them can be
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func writeError(w http.ResponseWriter, media string, err *Error) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(err.status())
	_, _ = w.Write(mustJSON(err))
}
