package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/logging"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// composition is what a configuration comes to: checked properties and one chosen implementation for each role. It
// holds nothing open; whatever is made from it belongs to whoever makes it.
type composition struct {
	file     string // "" when there is none
	layers   kafka.Layers
	broker   kafka.BrokerConfig
	warnings []string

	storage     plugin.Choice[storage.Settings, storage.Storage]
	election    plugin.Choice[election.Settings, election.Coordination]
	compression []plugin.Choice[compression.Settings, compression.Codec]
	offsets     plugin.Choice[offsets.Settings, offsets.Store]
	// partitioners are all that topics may declare. The first is the one for topics that declare none.
	partitioners []namedPartitioner

	alone       bool            // the coordination never has another member
	gateway     *config.Section // nil without one
	gatewayMade gatewayFactory

	admin   *adminhttp.Options // nil without an admin server
	metrics broker.MetricsOptions

	logging loggingOptions
	levels  *logging.Levels // of the broker's loggers, made by whoever runs it; nil: they stay as the logger has them
}

// compose checks a configuration, from the root of its file on, and makes nothing yet. All faults come together.
func compose(root config.Section, parts components) (*composition, error) {
	c := &composition{file: root.File()}
	var errs []error
	collect := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	collect(root.Only("broker", "storage", "election", electionsKey, "partitioner", "partitioners", "compression", "offsets", gatewayKey, adminKey, metricsKey, loggingKey))
	var err error
	c.storage, err = choose(root, parts.storage)
	collect(err)
	c.election, err = chooseElection(root, parts.election)
	collect(err)
	c.partitioners, err = choosePartitioners(root, parts.partitioner)
	collect(err)
	c.compression, err = chooseCodecs(root, parts)
	collect(err)
	c.layers.Codecs = []string{}
	for _, choice := range c.compression {
		c.layers.Codecs = append(c.layers.Codecs, codecOf(choice))
	}
	if err != nil {
		c.layers.Codecs = nil // said already, and more than which are there isn't known
	}
	c.offsets, err = choose(root, parts.offsets)
	collect(err)
	c.gatewayMade = parts.gateway
	c.gateway, err = chooseGateway(root, parts.gateway)
	collect(err)
	c.admin, err = chooseAdmin(root)
	collect(err)
	var idle string
	c.metrics, idle, err = chooseMetrics(root)
	collect(err)
	c.logging, err = chooseLogging(root)
	collect(err)
	broker, _ := root.Sub("broker")
	if c.layers.Static, c.warnings, err = kafka.ReadStatic(broker); err == nil {
		c.broker, err = c.layers.BrokerConfig()
		err = kafka.Place(broker, err)
	}
	collect(err)
	if idle != "" {
		c.warnings = append(c.warnings, idle)
	}
	c.warnings = append(c.warnings, foreignProperties(broker, parts.election.Names(), c.election.Name())...)
	if len(errs) == 0 { // what is put together of sound parts
		collect(c.tryElection())
		collect(c.clashes(root))
	}
	if len(errs) > 0 {
		return nil, inOrder(config.Join(errs...))
	}
	c.warnings = append(c.warnings, combinations(root, c)...)
	return c, nil
}

// optionOf gives the value of an option by its name, "" when there is none.
func optionOf(options []config.Field, name string) string {
	for _, o := range options {
		if o.Name == name {
			return o.Default
		}
	}
	return ""
}

// foreignProperties warns of properties that are for another coordination than the chosen one: a family of Kafka's properties, such
// as zookeeper.connect, bears the name of the coordination that reads it.
func foreignProperties(broker config.Section, names []string, chosen string) (warnings []string) {
	for _, key := range broker.Keys() {
		family, _, _ := strings.Cut(key, ".")
		if d, ok := kafka.BrokerDefinition(key); !ok || d.NoEffect != "" || family == chosen || !slices.Contains(names, family) {
			continue
		}
		sub, _ := broker.Sub(key)
		place := &config.Error{File: sub.File(), Line: sub.Line(), Path: sub.Path(), Err: fmt.Errorf("has no effect: `election` is %s, not %s", chosen, family)}
		warnings = append(warnings, place.Error())
	}
	return warnings
}

// inOrder sorts faults by their lines, as whoever mends a file wants them. Those of the command line and the
// environment, which have no line, come first.
func inOrder(err error) error {
	var faults config.Errors
	if !errors.As(err, &faults) {
		return err
	}
	line := func(err error) int {
		var placed *config.Error
		if errors.As(err, &placed) {
			return placed.Line
		}
		return 0
	}
	slices.SortStableFunc(faults, func(a, b error) int { return cmp.Compare(line(a), line(b)) })
	return faults
}

// choose reads the choice of a role, which is the registry's first when the configuration makes none.
func choose[S, T any](root config.Section, registry plugin.Registry[S, T]) (plugin.Choice[S, T], error) {
	section, ok := root.Sub(registry.Role())
	if !ok {
		return registry.Default(registry.Names()[0])
	}
	return registry.Choose(section)
}

// chooseCodecs reads a list of choices, each codec once; without a list it is every codec that runs in this process.
func chooseCodecs(root config.Section, parts components) ([]codecChoice, error) {
	var choices []codecChoice
	var errs []error
	section, ok := root.Sub(parts.compression.Role())
	if !ok {
		for _, name := range parts.inProcess.Names() {
			choice, err := parts.inProcess.Default(name)
			errs = append(errs, err)
			choices = append(choices, choice)
		}
		return choices, config.Join(errs...)
	}
	elements, isList := section.List()
	if !isList {
		return nil, section.Wrap(errors.New("want a list of names, each alone or with its options below it: [NAME, {NAME: {…}}]"))
	}
	seen := map[string]bool{}
	for _, element := range elements {
		choice, err := parts.compression.Choose(element)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if codec := codecOf(choice); seen[codec] {
			errs = append(errs, element.Wrap(fmt.Errorf("%s is named twice", codec)))
		} else {
			seen[codec] = true
		}
		choices = append(choices, choice)
	}
	return choices, config.Join(errs...)
}

// codecChoice is the choice of one codec.
type codecChoice = plugin.Choice[compression.Settings, compression.Codec]

// codecOf names the codec that a choice comes to: that is the implementation's name, unless an option tells which codec it is.
func codecOf(choice codecChoice) string {
	return cmp.Or(optionOf(choice.Options(), "codec"), choice.Name())
}

// rows describes the composition for people: pairs of a role and what serves it.
func (c *composition) rows() [][2]string {
	codecs := make([]string, len(c.compression))
	for i, choice := range c.compression {
		codecs[i] = describe(choice)
	}
	if len(codecs) == 0 {
		codecs = []string{"none"}
	}
	others := make([]string, len(c.partitioners))
	for i, p := range c.partitioners {
		others[i] = p.describe()
	}
	listeners := make([]string, len(c.broker.Listeners))
	for i, l := range c.broker.Listeners {
		listeners[i] = l.String()
	}
	file := c.file
	if file == "" {
		file = "none: defaults"
	}
	rows := [][2]string{
		{"configuration", file},
		{"storage", describe(c.storage)},
		{"election", describe(c.election)},
		{"partitioner", c.partitioners[0].describe()},
		{"partitioners", strings.Join(others, ", ")},
		{"compression", strings.Join(codecs, ", ")},
		{"offsets", describe(c.offsets)},
		{"listeners", strings.Join(listeners, ", ")},
		{"data", strings.Join(absolute(c.broker.LogDirs), ", ")},
	}
	if c.gateway != nil {
		rows = append(rows, [2]string{gatewayKey, options(c.gatewayMade.Effective(*c.gateway))})
	}
	if c.admin != nil {
		rows = append(rows, [2]string{adminKey, options(config.Fields(*c.admin))}, [2]string{metricsKey, options(config.Fields(c.metrics))})
	}
	return rows
}

// absolute says where directories really are, as far as that can be found out.
func absolute(dirs []string) []string {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i] = dir
		if path, err := filepath.Abs(dir); err == nil {
			paths[i] = path
		}
	}
	return paths
}

// describe gives the name of a choice and, in parentheses, its options.
func describe[S, T any](choice plugin.Choice[S, T]) string {
	if set := options(choice.Options()); set != "" {
		return choice.Name() + " (" + set + ")"
	}
	return choice.Name()
}

// options writes options with their values, those that have one.
func options(fields []config.Field) string {
	var pairs []string
	for _, o := range fields {
		if o.Default != "" {
			pairs = append(pairs, o.Name+": "+o.Default)
		}
	}
	return strings.Join(pairs, ", ")
}
