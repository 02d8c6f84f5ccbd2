package gateway

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the keys below `gateway:` in the YAML file.
type Options struct {
	Listen           string          `yaml:"listen" doc:"HOST:PORT to listen on; whoever reaches it may do everything, so keep it on the loopback address or behind a proxy that checks"`
	MaxBody          config.ByteSize `yaml:"max_body" doc:"largest body of a request, and largest record of a stream; beyond it the answer is 413"`
	MaxRecords       int             `yaml:"max_records" doc:"most records in one produce request that isn't a stream; beyond it the answer is 413"`
	MaxBuffered      config.ByteSize `yaml:"max_buffered" doc:"most bytes of records that wait for the broker's acknowledgement; producers wait beyond it"`
	BodyTimeout      time.Duration   `yaml:"body_timeout" doc:"how long the body of a request may take, and a stream may pause; then the answer is 408"`
	DeliveryTimeout  time.Duration   `yaml:"delivery_timeout" doc:"how long a record may wait for its acknowledgement"`
	RequestTimeout   time.Duration   `yaml:"request_timeout" doc:"how long the broker may take for anything else"`
	MaxConsumers     int             `yaml:"max_consumers" doc:"most consumer instances at a time; beyond it the answer is 429"`
	ConsumerTimeout  time.Duration   `yaml:"consumer_timeout" doc:"how long a consumer instance lives without a request"`
	MaxConsumerBytes config.ByteSize `yaml:"max_consumer_bytes" doc:"most bytes of keys and values in one answer with records"`
}

// DefaultOptions are the options that an empty `gateway:` section has.
func DefaultOptions() Options {
	return Options{
		Listen:           "127.0.0.1:8082",
		MaxBody:          16 << 20,
		MaxRecords:       100_000,
		MaxBuffered:      64 << 20,
		BodyTimeout:      30 * time.Second,
		DeliveryTimeout:  30 * time.Second,
		RequestTimeout:   30 * time.Second,
		MaxConsumers:     1000,
		ConsumerTimeout:  5 * time.Minute,
		MaxConsumerBytes: 16 << 20,
	}
}

// Validate finds values that make no sense.
func (o Options) Validate() error {
	var errs []error
	fault := func(key, format string, args ...any) {
		errs = append(errs, config.At(key, fmt.Errorf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		fault("listen", "want HOST:PORT, not %q", o.Listen)
	}
	for _, size := range []struct {
		key   string
		value config.ByteSize
	}{{"max_body", o.MaxBody}, {"max_buffered", o.MaxBuffered}, {"max_consumer_bytes", o.MaxConsumerBytes}} {
		if size.value < 1<<10 || size.value > 1<<30 {
			fault(size.key, "must be between 1KiB and 1GiB")
		}
	}
	for _, count := range []struct {
		key   string
		value int
	}{{"max_records", o.MaxRecords}, {"max_consumers", o.MaxConsumers}} {
		if count.value < 1 || count.value > 1_000_000 {
			fault(count.key, "must be between 1 and 1000000")
		}
	}
	for _, wait := range []struct {
		key   string
		value time.Duration
	}{{"body_timeout", o.BodyTimeout}, {"delivery_timeout", o.DeliveryTimeout}, {"request_timeout", o.RequestTimeout}, {"consumer_timeout", o.ConsumerTimeout}} {
		if wait.value < 10*time.Millisecond || wait.value > 24*time.Hour {
			fault(wait.key, "must be between 10ms and 24h")
		}
	}
	// A record delivery below this isn't taken by the client's library.
	if o.DeliveryTimeout < time.Second {
		fault("delivery_timeout", "must be at least 1s")
	}
	return errors.Join(errs...)
}

// Settings is what the program gives a gateway beside its options.
type Settings struct {
	plugin.Settings
	// Brokers are the brokers to ask first, HOST:PORT.
	Brokers []string
	// Partitioner chooses the partitions of records that don't name one. It is started before the gateway and stopped
	// after it, by whoever made it.
	Partitioner partitioner.Partitioner
}

// Factory makes a gateway from its part of the YAML file.
type Factory = plugin.Factory[Settings, *Gateway]

// NewFactory gives the factory of gateways.
func NewFactory() Factory {
	return plugin.NewFactory("gateway", "the HTTP front door: Confluent REST Proxy's v2 API and parts of v3", DefaultOptions,
		func(o Options, s Settings) (*Gateway, error) { return New(o, s) })
}
