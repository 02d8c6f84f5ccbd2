package broker

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/broker/internal/explain"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/health"
	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// This file has what the admin server answers about health, and why things are as they are.

// watchRoutes are the routes of this file.
func (b *Broker) watchRoutes() []adminhttp.Route {
	get := func(path, summary string, f http.HandlerFunc) adminhttp.Route {
		return adminhttp.Route{Method: http.MethodGet, Path: path, Summary: summary, Handler: f}
	}
	return []adminhttp.Route{
		get("/livez", "whether this process is of use, whatever its cluster is like: 503 says restart it", func(w http.ResponseWriter, r *http.Request) {
			answerHealth(w, r, health.Live(b.facts(false)))
		}),
		get("/readyz", "whether the broker serves clients; ?verbose lists every check", func(w http.ResponseWriter, r *http.Request) {
			answerHealth(w, r, health.Ready(b.facts(false)))
		}),
		get("/healthz", "all that is worth a look, also what fails nothing; ?verbose lists every check", func(w http.ResponseWriter, r *http.Request) {
			answerHealth(w, r, health.All(b.facts(true)))
		}),
		get("/explain/group", "?name=GROUP: why a consumer group rebalances", func(w http.ResponseWriter, r *http.Request) {
			name := r.URL.Query().Get("name")
			if name == "" {
				adminhttp.Fail(w, http.StatusBadRequest, "want ?name=GROUP")
				return
			}
			answerWhy(w)(b.explainGroup(name))
		}),
		get("/explain/partition", "?name=TOPIC-PARTITION: why it is under-replicated, and why its leader is who it is", func(w http.ResponseWriter, r *http.Request) {
			topic, number, err := partitionName(r.URL.Query().Get("name"))
			if err != nil {
				adminhttp.Fail(w, http.StatusBadRequest, "%s", err)
				return
			}
			answerWhy(w)(b.explainPartition(topic, number))
		}),
		get("/explain/broker", "why this broker isn't ready, or what is worth a look though it is", func(w http.ResponseWriter, _ *http.Request) {
			adminhttp.Write(w, http.StatusOK, b.explainBroker())
		}),
		get("/journal", "?n=100: the latest events that this broker remembers", func(w http.ResponseWriter, r *http.Request) {
			n, err := latest(r.URL.Query().Get("n"))
			if err != nil {
				adminhttp.Fail(w, http.StatusBadRequest, "%s", err)
				return
			}
			entries := b.journal.Latest(n)
			if entries == nil {
				entries = []journal.Entry{}
			}
			adminhttp.Write(w, http.StatusOK, entries)
		}),
	}
}

// latest reads how many events are asked for.
func latest(text string) (int, error) {
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > journal.DefaultEvents {
		return 0, fmt.Errorf("n: want a number from 1 to %d, not %q", journal.DefaultEvents, text)
	}
	return n, nil
}

// partitionName takes a name apart as Kafka's folders and tools write it. A topic may have a '-' in its name, its number is behind the last one.
func partitionName(text string) (topic string, number int32, err error) {
	i := strings.LastIndexByte(text, '-')
	if i > 0 {
		n, err := strconv.ParseInt(text[i+1:], 10, 32)
		if err == nil && n >= 0 {
			return text[:i], int32(n), nil
		}
	}
	return "", 0, fmt.Errorf("want ?name=TOPIC-PARTITION, such as orders-0, not %q", text)
}

// answerWhy answers with an explanation, or why there is none.
func answerWhy(w http.ResponseWriter) func(explain.Explanation, error) {
	return func(e explain.Explanation, err error) {
		switch {
		case err == nil:
			adminhttp.Write(w, http.StatusOK, e)
		case errors.Is(err, group.ErrInvalidGroupID):
			adminhttp.Fail(w, http.StatusBadRequest, "%s", err)
		default:
			adminhttp.Fail(w, http.StatusServiceUnavailable, "%s", err)
		}
	}
}

// healthAnswer is the answer about health as JSON.
type healthAnswer struct {
	Status health.Status  `json:"status"`
	Checks []health.Check `json:"checks"`
}

// answerHealth answers with status 200, or 503 where a check failed. Kubernetes and people read text: "ok", or each check in a line,
// when one isn't well or ?verbose is given. Who accepts only JSON gets JSON.
func answerHealth(w http.ResponseWriter, r *http.Request, checks []health.Check) {
	worst, status := health.Worst(checks), http.StatusOK
	if worst == health.Fail {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		adminhttp.Write(w, status, healthAnswer{worst, checks})
		return
	}
	var text strings.Builder
	if r.URL.Query().Has("verbose") || worst != health.Pass {
		marks := map[health.Status]string{health.Pass: "+", health.Warn: "!", health.Fail: "-"}
		for _, c := range checks {
			fmt.Fprintf(&text, "[%s]%s %s\n", marks[c.Status], c.Name, cmp.Or(c.Reason, "ok"))
		}
	}
	switch worst {
	case health.Pass:
		text.WriteString("ok\n")
	case health.Warn:
		text.WriteString("ok, with warnings\n")
	default:
		text.WriteString("failed\n")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text.String()) // a client that is gone needs no answer
}
