package remote

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Reject is the value of on_failure that names no implementation.
const Reject = "reject"

// Options are the options of a partitioner in a process of its own, and what the other roles have of them.
type Options struct {
	Command      string         `yaml:"command" doc:"the executable: a path, or a name to look for in PATH"`
	Args         []string       `yaml:"args" doc:"arguments for it"`
	Config       config.Section `yaml:"config" doc:"the plug-in's own options"`
	Env          []string       `yaml:"env" secret:"true" doc:"all that it gets of the environment: NAME to pass a variable on, NAME=VALUE to set one"`
	SHA256       string         `yaml:"sha256" doc:"checksum that the executable must have, in hex"`
	StartTimeout time.Duration  `yaml:"start_timeout" doc:"how long it may take to start and accept its options"`
	CallTimeout  time.Duration  `yaml:"call_timeout" doc:"how long it may take to answer"`
	PingInterval time.Duration  `yaml:"ping_interval" doc:"how often it is asked whether it works"`
	MaxBackoff   time.Duration  `yaml:"max_backoff" doc:"longest pause before it is started again, after it failed"`
	OnFailure    string         `yaml:"on_failure" doc:"what answers when it can't: reject (an error), or the name of an implementation in the broker"`

	// fallbacks are the names that OnFailure may be, beside Reject.
	fallbacks []string
}

// CodecOptions are the options of a codec in a process of its own: as Options, and which codec it is.
type CodecOptions struct {
	Codec        string         `yaml:"codec" doc:"the codec that it is: gzip, snappy, lz4 or zstd (required)"`
	Command      string         `yaml:"command" doc:"the executable: a path, or a name to look for in PATH"`
	Args         []string       `yaml:"args" doc:"arguments for it"`
	Config       config.Section `yaml:"config" doc:"the plug-in's own options"`
	Env          []string       `yaml:"env" secret:"true" doc:"all that it gets of the environment: NAME to pass a variable on, NAME=VALUE to set one"`
	SHA256       string         `yaml:"sha256" doc:"checksum that the executable must have, in hex"`
	StartTimeout time.Duration  `yaml:"start_timeout" doc:"how long it may take to start and accept its options"`
	CallTimeout  time.Duration  `yaml:"call_timeout" doc:"how long it may take for one block"`
	PingInterval time.Duration  `yaml:"ping_interval" doc:"how often it is asked whether it works"`
	MaxBackoff   time.Duration  `yaml:"max_backoff" doc:"longest pause before it is started again, after it failed"`
	OnFailure    string         `yaml:"on_failure" doc:"what answers when it can't: reject (an error), or the codec's name for the implementation in the broker"`

	fallbacks []string
}

// StoreOptions are the options of an offsets store in a process of its own. Nothing can take its place: it alone has the data.
type StoreOptions struct {
	Command      string         `yaml:"command" doc:"the executable: a path, or a name to look for in PATH"`
	Args         []string       `yaml:"args" doc:"arguments for it"`
	Config       config.Section `yaml:"config" doc:"the plug-in's own options"`
	Env          []string       `yaml:"env" secret:"true" doc:"all that it gets of the environment: NAME to pass a variable on, NAME=VALUE to set one"`
	SHA256       string         `yaml:"sha256" doc:"checksum that the executable must have, in hex"`
	StartTimeout time.Duration  `yaml:"start_timeout" doc:"how long it may take to start and accept its options, and between two messages of a load"`
	CallTimeout  time.Duration  `yaml:"call_timeout" doc:"how long it may take to answer"`
	PingInterval time.Duration  `yaml:"ping_interval" doc:"how often it is asked whether it works"`
	MaxBackoff   time.Duration  `yaml:"max_backoff" doc:"longest pause before it is started again, after it failed"`
}

// Defaults gives the options that hold where nothing is said.
func Defaults() Options {
	return Options{
		StartTimeout: 10 * time.Second, CallTimeout: 2 * time.Second, PingInterval: 5 * time.Second, MaxBackoff: 30 * time.Second, OnFailure: Reject,
	}
}

func codecDefaults() CodecOptions {
	d := Defaults()
	return CodecOptions{StartTimeout: d.StartTimeout, CallTimeout: 10 * time.Second, PingInterval: d.PingInterval, MaxBackoff: d.MaxBackoff, OnFailure: Reject}
}

func storeDefaults() StoreOptions {
	d := Defaults()
	return StoreOptions{StartTimeout: d.StartTimeout, CallTimeout: 10 * time.Second, PingInterval: d.PingInterval, MaxBackoff: d.MaxBackoff}
}

// common gives what all roles have.
func (o CodecOptions) common() Options {
	return Options{Command: o.Command, Args: o.Args, Config: o.Config, Env: o.Env, SHA256: o.SHA256, StartTimeout: o.StartTimeout,
		CallTimeout: o.CallTimeout, PingInterval: o.PingInterval, MaxBackoff: o.MaxBackoff, OnFailure: o.OnFailure, fallbacks: o.fallbacks}
}

func (o StoreOptions) common() Options {
	return Options{Command: o.Command, Args: o.Args, Config: o.Config, Env: o.Env, SHA256: o.SHA256, StartTimeout: o.StartTimeout,
		CallTimeout: o.CallTimeout, PingInterval: o.PingInterval, MaxBackoff: o.MaxBackoff, OnFailure: Reject}
}

// Validate implements config.Validator.
func (o Options) Validate() error {
	var errs []error
	at := func(key, format string, args ...any) {
		errs = append(errs, config.At(key, fmt.Errorf(format, args...)))
	}
	if o.Command == "" {
		at("command", "name the executable")
	}
	if o.SHA256 != "" {
		if sum, err := hex.DecodeString(o.SHA256); err != nil || len(sum) != 32 {
			at("sha256", "want 64 hexadecimal digits")
		}
	}
	for _, v := range o.Env {
		if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsRune(v, 0) {
			at("env", "want NAME or NAME=VALUE, not %q", v)
		} else if strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "BARNABAS_PLUGIN") {
			at("env", "%s belongs to the protocol", name)
		}
	}
	for key, d := range map[string]time.Duration{
		"start_timeout": o.StartTimeout, "call_timeout": o.CallTimeout, "ping_interval": o.PingInterval, "max_backoff": o.MaxBackoff,
	} {
		if d <= 0 {
			at(key, "must be more than 0")
		}
	}
	if !o.Config.IsZero() && !o.Config.IsMapping() {
		at("config", "want a mapping of keys to values")
	}
	if o.OnFailure != Reject && !slices.Contains(o.fallbacks, o.OnFailure) {
		at("on_failure", "want %s or one of %s, not %q", Reject, strings.Join(o.fallbacks, ", "), o.OnFailure)
	}
	return errors.Join(errs...)
}

// Validate implements config.Validator.
func (o CodecOptions) Validate() error {
	errs := []error{o.common().Validate()}
	if id, err := record.ParseCodec(o.Codec); err != nil || id == record.None {
		errs = append(errs, config.At("codec", errors.New("want gzip, snappy, lz4 or zstd: what the plug-in is")))
	}
	if o.OnFailure != Reject && o.OnFailure != o.Codec {
		errs = append(errs, config.At("on_failure", fmt.Errorf("%s can't read what %s writes: want %s or %s", o.OnFailure, o.Codec, Reject, o.Codec)))
	}
	return errors.Join(errs...)
}

// Validate implements config.Validator.
func (o StoreOptions) Validate() error { return o.common().Validate() }
