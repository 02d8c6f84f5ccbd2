package brokertest

import (
	"log/slog"
	"strings"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Option says something about a broker before it starts.
type Option func(*setup)

// setup is what the options come to.
type setup struct {
	options    broker.Options
	properties [][2]string // in the order in which they were set
	dir        string
	log        bool
	errs       []error
}

// defaults are the properties that make sense for a test: any free port, and nobody waits longer than needed.
func defaults() setup {
	return setup{properties: [][2]string{
		{"broker.id", "1"},
		{"listeners", "PLAINTEXT://127.0.0.1:0"},
		{"group.initial.rebalance.delay.ms", "0"},
		{"offsets.topic.num.partitions", "1"},
	}}
}

// Property sets one of the broker's properties, under Kafka's name. One that Kafka doesn't have ends the test; one without
// effect is told in the test's log.
func Property(name, value string) Option {
	return func(s *setup) { s.properties = append(s.properties, [2]string{name, value}) }
}

// Dir is the log directory, in place of one that ends with the test.
func Dir(path string) Option { return func(s *setup) { s.dir = path } }

// Log shows what the broker logs in the test's log.
func Log() Option { return func(s *setup) { s.log = true } }

// Logger gets what the broker logs; without it, and without Log, nobody does.
func Logger(l *slog.Logger) Option { return func(s *setup) { s.options.Logger = l } }

// LogLevels are the levels of the broker's loggers, which may be changed while it runs. The level of its Logger doesn't count then.
func LogLevels(l *logging.Levels) Option { return func(s *setup) { s.options.LogLevels = l } }

// Admin turns on the admin server, on any free port; see [Broker.Admin].
func Admin() Option {
	return func(s *setup) {
		o := adminhttp.DefaultOptions()
		o.Listen = "127.0.0.1:0"
		s.options.Admin = &o
	}
}

// Metrics says what the admin server shows on /metrics; see [Admin].
func Metrics(o broker.MetricsOptions) Option {
	return func(s *setup) { s.options.Metrics = o }
}

// Storage says what keeps the segments. Options are YAML, as below the plug-in's name in a configuration: "max_growth: 1MiB".
func Storage(f storage.Factory, options ...string) Option {
	return func(s *setup) { s.options.Storage = maker(s, f, options) }
}

// Election says what the broker coordinates itself through, with options as for Storage.
func Election(f election.Factory, options ...string) Option {
	return func(s *setup) { s.options.Election = maker(s, f, options) }
}

// Offsets says what keeps the offsets of consumer groups, with options as for Storage.
func Offsets(f offsets.Factory, options ...string) Option {
	return func(s *setup) { s.options.Offsets = maker(s, f, options) }
}

// Compression adds a codec, with options as for Storage. One of the same name as before takes its place.
func Compression(f compression.Factory, options ...string) Option {
	return func(s *setup) {
		s.options.Compression = put(s.options.Compression, maker(s, f, options))
	}
}

// Partitioner adds a partitioner that topics may declare (barnabas.partitioner), with options as for Storage. One of the same
// name as before takes its place.
func Partitioner(f partitioner.Factory, options ...string) Option {
	return func(s *setup) {
		s.options.Partitioners = put(s.options.Partitioners, maker(s, f, options))
	}
}

// put adds a maker, in place of one of the same name.
func put[S, T any](makers []broker.Maker[S, T], m broker.Maker[S, T]) []broker.Maker[S, T] {
	for i := range makers {
		if makers[i].Name() == m.Name() {
			makers[i] = m
			return makers
		}
	}
	return append(makers, m)
}

// configured is a factory with its options.
type configured[S, T any] struct {
	plugin.Factory[S, T]
	section config.Section
}

func (c configured[S, T]) New(settings S) (T, error) { return c.Factory.New(c.section, settings) }

// maker makes one maker, and notes what is wrong with the options.
func maker[S, T any](s *setup, f plugin.Factory[S, T], options []string) broker.Maker[S, T] {
	section := config.Empty(f.Name())
	if len(options) > 0 {
		var err error
		if section, err = config.Parse(f.Name(), []byte(strings.Join(options, "\n"))); err != nil {
			s.errs = append(s.errs, err)
			return configured[S, T]{f, config.Empty(f.Name())}
		}
	}
	if err := f.Check(section); err != nil {
		s.errs = append(s.errs, err)
	}
	return configured[S, T]{f, section}
}
