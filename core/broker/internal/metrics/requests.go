package metrics

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
)

// requestFamilies are about what comes in over connections.
type requestFamilies struct {
	took, total, in, out, errors, refused, broken family
}

func newRequestFamilies() requestFamilies {
	return requestFamilies{
		took: family{desc: gauge("barnabas_request_duration_seconds",
			"Time from the end of a request to the end of its response, waiting for data or replicas included. FetchFollower are fetches of brokers, Fetch those of consumers.", "api").desc},
		total:   counter("barnabas_requests_total", "Requests that were answered, by version.", "api", "version"),
		in:      counter("barnabas_request_bytes_total", "Bytes of requests.", "api"),
		out:     counter("barnabas_response_bytes_total", "Bytes of responses.", "api"),
		errors:  counter("barnabas_request_errors_total", "Error codes in responses. A response may have several.", "api", "error"),
		refused: counter("barnabas_refused_requests_total", "Requests in a version that isn't served (reason too_old or too_new), or of a kind that isn't (unknown).", "api", "reason"),
		broken:  counter("barnabas_broken_connections_total", "Connections that were closed because of a request that made no sense, or couldn't be answered."),
	}
}

func (f *requestFamilies) show(o out, v *view) {
	for i := range v.answered {
		a := &v.answered[i]
		api := a.Kind.String()
		o.spread(f.took, &a.Took, api)
		o.put(f.in, float64(a.In), api)
		o.put(f.out, float64(a.Out), api)
		for version, n := range a.ByVersion {
			if n > 0 {
				o.put(f.total, float64(n), api, strconv.Itoa(version))
			}
		}
	}
	for _, e := range v.failed {
		o.put(f.errors, float64(e.Count), e.Kind.String(), errorName(e.Code))
	}
	refused, unknown, broken := v.Requests.ReadRefused()
	for _, r := range refused {
		o.put(f.refused, float64(r.TooOld), r.Kind.String(), "too_old")
		o.put(f.refused, float64(r.TooNew), r.Kind.String(), "too_new")
	}
	o.put(f.refused, float64(unknown), "unknown", "unknown")
	o.put(f.broken, float64(broken))
}

// errorName is Kafka's name of an error code.
func errorName(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return "NONE"
}
