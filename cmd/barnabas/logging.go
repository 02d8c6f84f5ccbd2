package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/logging"
)

// loggingKey is the key of the YAML file that says what is logged, and how.
const loggingKey = "logging"

// loggingSummary says what the section is, for the reference of keys.
const loggingSummary = "what the broker logs, to standard error. --log-level and --log-format go over it, and levels can be changed while the broker runs: by PUT /loglevel of the admin server, or by kafka-configs with the entity type broker-loggers"

// loggingOptions are the keys below `logging:`.
type loggingOptions struct {
	Level  string `yaml:"level" doc:"the least that is written: trace, debug, info, warn, error or fatal"`
	Format string `yaml:"format" doc:"text or json"`
}

func defaultLogging() loggingOptions { return loggingOptions{Level: "info", Format: "text"} }

// Validate finds values that make no sense.
func (o loggingOptions) Validate() error {
	var errs []error
	if _, err := logging.Parse(o.Level); err != nil {
		errs = append(errs, config.At("level", fmt.Errorf("want trace, debug, info, warn, error or fatal, not %q", o.Level)))
	}
	if o.Format != "text" && o.Format != "json" {
		errs = append(errs, config.At("format", fmt.Errorf("want text or json, not %q", o.Format)))
	}
	return errors.Join(errs...)
}

// chooseLogging reads the section.
func chooseLogging(root config.Section) (loggingOptions, error) {
	o := defaultLogging()
	section, ok := root.Sub(loggingKey)
	if !ok {
		return o, nil
	}
	return o, section.Decode(&o)
}

// logger makes the logger that everything in the process logs to, and the levels of the broker's loggers. The logger itself writes
// whatever it is given: the levels decide.
func (o loggingOptions) logger(w io.Writer) (*slog.Logger, *logging.Levels, error) {
	level, err := logging.Parse(o.Level)
	if err != nil {
		return nil, nil, err
	}
	options := &slog.HandlerOptions{Level: logging.LevelTrace}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if o.Format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(handler), logging.NewLevels(level, broker.Loggers()...), nil
}

// logOptions are the flags that go over the configuration.
type logOptions struct {
	format string
	level  string
}

func (o *logOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.format, "log-format", "", "how to log: text or json (default: what the configuration says, or text)")
	cmd.Flags().StringVar(&o.level, "log-level", "", "what to log: trace, debug, info, warn, error or fatal (default: what the configuration says, or info)")
}

// over gives a configuration with the flags over it.
func (o *logOptions) over(c loggingOptions) (loggingOptions, error) {
	if o.level != "" {
		c.Level = o.level
		if _, err := logging.Parse(o.level); err != nil {
			return c, wrong(fmt.Errorf("--log-level: want trace, debug, info, warn, error or fatal, not %q", o.level))
		}
	}
	if o.format != "" {
		c.Format = o.format
		if o.format != "text" && o.format != "json" {
			return c, wrong(fmt.Errorf("--log-format: want text or json, not %q", o.format))
		}
	}
	return c, nil
}
