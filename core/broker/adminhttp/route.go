package adminhttp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Route is one thing that can be asked for.
type Route struct {
	// Method is the HTTP method, in capitals; a GET route answers HEAD as well. Routes of one path differ in it.
	Method string
	// Path is the exact path (/metrics), or, when it ends in a slash, all that begins with it. It may have wildcards as those of
	// http.ServeMux ({name}).
	Path string
	// Summary is one line for whoever asks what there is.
	Summary string
	// Handler is called from many goroutines at once, and may be from the moment the server starts, before the broker serves, until
	// it has stopped. The request's body is bounded, and its context ends when the client goes or the server stops.
	Handler http.Handler
}

// Error is the answer to a request that failed.
type Error struct {
	Status  int    `json:"status"` // as in the status line
	Message string `json:"error"`  // what is wrong, for people
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, status int, format string, args ...any) {
	Write(w, status, Error{Status: status, Message: fmt.Sprintf(format, args...)})
}

// Write answers with a value as JSON. A value that can't be one is a fault in the program, and answered with status 500.
func Write(w http.ResponseWriter, status int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"status": 500, "error": "the answer can't be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}

// router finds the handler of a request. It is immutable.
type router struct {
	mux    *http.ServeMux
	routes []Route
}

// newRouter makes a router. Routes that can't be told apart are a fault in the program, and returned as an error.
func newRouter(routes []Route) (r *router, err error) {
	r = &router{mux: http.NewServeMux(), routes: slices.Clone(routes)}
	slices.SortStableFunc(r.routes, func(a, b Route) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	defer func() { // ServeMux panics at patterns that make no sense or contradict one another
		if fault := recover(); fault != nil {
			err = fmt.Errorf("admin: %v", fault)
		}
	}()
	for i := 0; i < len(r.routes); {
		path, methods := r.routes[i].Path, map[string]http.Handler{}
		for ; i < len(r.routes) && r.routes[i].Path == path; i++ {
			route := r.routes[i]
			if methods[route.Method] != nil || route.Handler == nil {
				return nil, fmt.Errorf("admin: %s %s is there twice, or has no handler", route.Method, path)
			}
			methods[route.Method] = route.Handler
		}
		r.mux.Handle(path, byMethod(methods))
	}
	r.mux.HandleFunc("/{$}", r.index)
	r.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		Fail(w, http.StatusNotFound, "there is no %s here: / lists what there is", req.URL.Path)
	})
	return r, nil
}

// byMethod chooses among the handlers of one path.
func byMethod(methods map[string]http.Handler) http.Handler {
	allowed := make([]string, 0, len(methods)+1)
	for method := range methods {
		allowed = append(allowed, method)
	}
	if methods[http.MethodGet] != nil && methods[http.MethodHead] == nil {
		methods[http.MethodHead] = methods[http.MethodGet]
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := methods[r.Method]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", list)
		Fail(w, http.StatusMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, list, r.Method)
	})
}

// index lists the routes.
func (r *router) index(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		Fail(w, http.StatusMethodNotAllowed, "/ takes GET, HEAD, not %s", req.Method)
		return
	}
	type entry struct {
		Method  string `json:"method"`
		Path    string `json:"path"`
		Summary string `json:"summary"`
	}
	list := make([]entry, len(r.routes))
	for i, route := range r.routes {
		list[i] = entry{route.Method, route.Path, route.Summary}
	}
	Write(w, http.StatusOK, list)
}
