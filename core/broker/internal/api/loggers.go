package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/logging"
)

// This file has the loggers of a broker as a resource with settings, BROKER_LOGGER (KIP-412).

// describeLoggers lists the loggers with their levels.
func (h *handlers) describeLoggers() (entries []kafka.Entry) {
	if h.LogLevels == nil {
		return nil
	}
	for _, l := range h.LogLevels.All() {
		level := logging.Name(l.Level)
		entries = append(entries, kafka.Entry{Name: l.Logger, Value: &level, Source: kafka.FromLogger})
	}
	return entries
}

// alterLoggers changes levels: all that a request asks for, or, when anything is wrong with it, none.
func (h *handlers) alterLoggers(broker string, changes []kafka.Change, validateOnly bool) error {
	if err := h.checkBrokerName(broker); err != nil {
		return err
	}
	var apply []func() error
	seen := map[string]bool{}
	for _, c := range changes {
		switch {
		case seen[c.Name]:
			return refuse(kerr.InvalidRequest, "The logger "+c.Name+" is there twice.")
		case c.Op == kafka.Append || c.Op == kafka.Subtract:
			return refuse(kerr.InvalidRequest, "APPEND and SUBTRACT are not allowed for loggers.")
		case h.LogLevels == nil || h.LogLevels.Check(c.Name) != nil:
			return refuse(kerr.InvalidConfig, "Logger "+c.Name+" does not exist.")
		case c.Op == kafka.Delete && c.Name == logging.Root:
			return refuse(kerr.InvalidRequest, "Removing the log level of the root logger is not allowed.")
		case c.Op == kafka.Delete:
			apply = append(apply, func() error { return h.LogLevels.Reset(c.Name) })
		case c.Value == nil:
			return refuse(kerr.InvalidConfig, "Cannot set the log level of "+c.Name+" to nothing.")
		default:
			level, err := logging.Parse(*c.Value)
			if err != nil {
				return refuse(kerr.InvalidConfig, "Cannot set the log level of "+c.Name+": "+err.Error())
			}
			apply = append(apply, func() error { return h.LogLevels.Set(c.Name, level) })
		}
		seen[c.Name] = true
	}
	if validateOnly {
		return nil
	}
	for _, change := range apply {
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}
