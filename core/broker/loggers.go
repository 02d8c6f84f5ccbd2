package broker

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/logging"
)

// The loggers of a broker beside root.
const (
	loggerConnections  = "connections"
	loggerController   = "controller"
	loggerGroups       = "groups"
	loggerLogs         = "logs"
	loggerPartitions   = "partitions"
	loggerPlugins      = "plugins"
	loggerReplication  = "replication"
	loggerRequests     = "requests"
	loggerTransactions = "transactions"
)

// Loggers lists the loggers that a broker has beside root: the names for [logging.NewLevels].
func Loggers() []string {
	return []string{loggerConnections, loggerController, loggerGroups, loggerLogs, loggerPartitions, loggerPlugins, loggerReplication,
		loggerRequests, loggerTransactions}
}

// logger is the logger of a room.
func (b *Broker) logger(name string) *slog.Logger {
	if b.o.LogLevels == nil {
		return b.log
	}
	return slog.New(b.o.LogLevels.Handler(name, b.o.Logger.Handler()))
}

// loggerLevel is a logger as the admin server shows it.
type loggerLevel struct {
	Logger string `json:"logger"`
	Level  string `json:"level"`
	Own    bool   `json:"own"` // not root's
}

// logRoutes are the routes that show and change levels. There are none where levels can't change.
func (b *Broker) logRoutes() []adminhttp.Route {
	levels := b.o.LogLevels
	if levels == nil {
		return nil
	}
	show := func(w http.ResponseWriter, _ *http.Request) {
		list := []loggerLevel{}
		for _, l := range levels.All() {
			list = append(list, loggerLevel{l.Logger, logging.Name(l.Level), l.Own})
		}
		adminhttp.Write(w, http.StatusOK, list)
	}
	// logger reads whose level is meant, and answers with what is wrong with it.
	logger := func(w http.ResponseWriter, r *http.Request) (string, bool) {
		name := r.URL.Query().Get("logger")
		if name == "" {
			name = logging.Root
		}
		if err := levels.Check(name); err != nil {
			adminhttp.Fail(w, http.StatusNotFound, "%s", err)
			return "", false
		}
		return name, true
	}
	return []adminhttp.Route{
		{Method: http.MethodGet, Path: "/loglevel", Summary: "the level of each logger", Handler: http.HandlerFunc(show)},
		{Method: http.MethodPut, Path: "/loglevel", Summary: "?logger=NAME, with a level as the body: changes it, until the broker stops; without a name all that have none of their own",
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name, ok := logger(w, r)
				if !ok {
					return
				}
				body, err := io.ReadAll(r.Body)
				if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
					adminhttp.Fail(w, http.StatusRequestEntityTooLarge, "a level is a word")
					return
				}
				level, err := logging.Parse(strings.TrimSpace(string(body)))
				if err != nil {
					adminhttp.Fail(w, http.StatusBadRequest, "%s", err)
					return
				}
				_ = levels.Set(name, level) // the name was checked
				b.log.Info("log level changed", "logger", name, "level", logging.Name(level))
				show(w, r)
			})},
		{Method: http.MethodDelete, Path: "/loglevel", Summary: "?logger=NAME: lets it have root's level again",
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name, ok := logger(w, r)
				if !ok {
					return
				}
				if err := levels.Reset(name); err != nil {
					adminhttp.Fail(w, http.StatusBadRequest, "%s", err)
					return
				}
				show(w, r)
			})},
	}
}
