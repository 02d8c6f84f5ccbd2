package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func newConfigShow(a *app) *cobra.Command {
	var from source
	var out output
	var given bool
	var at remote
	broker := noBroker
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show each value that holds, and where it comes from",
		Long: `Reads a configuration as serve would and shows each value that holds, and where it comes from: default, FILE:LINE,
environment VARIABLE, or --set. Keys are written as --set takes them. Secrets are hidden, and so are options that only an
executable of your own understands. Properties that have no effect are shown where they are set, and said to have none.
Where a time may be given in several units, such as log.retention, the smallest unit that is set wins.

With --bootstrap-server it shows the properties that a running broker has, of Barnabas or Apache Kafka, and so also those that were
changed while it ran: "dynamic, this broker" or "dynamic, all brokers". The configuration then says where static values stand; where
the broker has another value than the configuration says, that is said, too.`,
		Example: `  barnabas config show -c barnabas.yaml
  barnabas config show -c barnabas.yaml --given
  barnabas config show --set storage=sendfile | grep storage
  barnabas config show -c barnabas.yaml --bootstrap-server 127.0.0.1:9092 --given
  barnabas config show -c barnabas.yaml --output json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if broker != noBroker && len(at.bootstrap) == 0 {
				return wrong(errBrokerAlone)
			}
			root, c, err := a.loadWithRoot(from)
			if err != nil {
				return err
			}
			a.warn(c)
			all := effective(root, c)
			if len(at.bootstrap) > 0 {
				if all, err = a.liveSettings(cmd, at, broker, c.broker.BrokerID, all); err != nil {
					return err
				}
			}
			if given {
				all = slices.DeleteFunc(all, func(s setting) bool { return s.From == originDefault })
			}
			return out.print(a, all, func() { a.printSettings(all) })
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file (default: $BARNABAS_CONFIG, ./barnabas.yaml, /etc/barnabas/barnabas.yaml)")
	cmd.Flags().BoolVar(&given, "given", false, "only what is set somewhere, no defaults")
	cmd.Flags().StringSliceVarP(&at.bootstrap, "bootstrap-server", "b", nil, "brokers to ask for what a running one has, HOST:PORT, comma separated")
	cmd.Flags().DurationVar(&at.timeout, "timeout", 10*time.Second, "how long to wait for the broker's answer")
	cmd.Flags().Int32Var(&broker, "broker", noBroker, "the broker to show (default: that of the configuration, or the only one)")
	from.flagSet(cmd)
	out.flags(cmd)
	return cmd
}

func (a *app) printSettings(all []setting) {
	t := newTable()
	t.SetOutputMirror(a.out)
	t.AppendHeader(table.Row{"key", "value", "from"})
	for _, s := range all {
		from := s.From
		if s.NoEffect {
			from += ", no effect"
		}
		t.AppendRow(table.Row{s.Key, orNone(s.Value), from})
	}
	t.Render()
}

// setting is one value that holds.
type setting struct {
	Key      string `json:"key"`       // dotted, as --set takes it
	Value    string `json:"value"`     // never a secret; "" for none
	From     string `json:"from"`      // what originOf says
	NoEffect bool   `json:"no_effect"` // it is set, and changes nothing
}

// originDefault is the origin of what nobody set.
const originDefault = "default"

// originOf says where the value of a section comes from. A section that isn't there has the default.
func originOf(s config.Section, there bool) string {
	switch {
	case !there, s.File() == originDefault:
		return originDefault
	case s.Line() > 0:
		return fmt.Sprintf("%s:%d", s.File(), s.Line())
	case s.File() == setOrigin:
		return setOrigin
	}
	return "environment " + s.File()
}

// effective lists all values of a composition with their origins in the root that it was composed of: the broker's properties by
// name, then role by role.
func effective(root config.Section, c *composition) []setting {
	l := settings{}
	broker, _ := root.Sub("broker")
	l.broker(broker, c.layers)
	role := func(key, name string, options []config.Field) {
		section, there := root.Sub(key)
		l.choice(key, section, there, name, options)
	}
	role("storage", c.storage.Name(), c.storage.Options())
	l.election(root, c)
	l.partitioners(root, c)
	l.codecs(root, c)
	role("offsets", c.offsets.Name(), c.offsets.Options())
	if c.gateway == nil {
		l.add(gatewayKey, "", originDefault)
	} else {
		l.options(gatewayKey, *c.gateway, c.gatewayMade.Effective(*c.gateway))
	}
	if c.admin == nil {
		l.add(adminKey, "", originDefault)
	} else {
		section, _ := root.Sub(adminKey)
		l.options(adminKey, section, config.Fields(*c.admin))
	}
	metrics, _ := root.Sub(metricsKey)
	l.options(metricsKey, metrics, config.Fields(c.metrics))
	section, _ := root.Sub(loggingKey)
	l.options(loggingKey, section, config.Fields(c.logging))
	return l
}

// settings collects values.
type settings []setting

func (l *settings) add(key, value, from string) {
	*l = append(*l, setting{Key: key, Value: value, From: from})
}

// broker lists Kafka's properties. Those without effect are listed where they are set.
func (l *settings) broker(section config.Section, layers kafka.Layers) {
	for _, e := range layers.DescribeBroker() {
		d, _ := kafka.BrokerDefinition(e.Name)
		sub, there := section.Sub(e.Name)
		if !there && e.Source == kafka.FromStatic { // node.id and broker.id are one, and set by either name
			sub, there = section.Sub(map[string]string{"node.id": "broker.id", "broker.id": "node.id"}[e.Name])
		}
		if d.NoEffect != "" && !there {
			continue
		}
		value := ""
		switch {
		case e.Value != nil:
			value = *e.Value
		case there:
			value = config.Hidden
		}
		l.property(e.Name, value, originOf(sub, there), d.NoEffect != "")
	}
	for _, name := range section.Keys() {
		if _, known := kafka.BrokerDefinition(name); !known { // of a single listener: maybe a secret
			sub, _ := section.Sub(name)
			l.property(name, config.Hidden, originOf(sub, true), true)
		}
	}
}

func (l *settings) property(name, value, from string, noEffect bool) {
	*l = append(*l, setting{Key: "broker." + name, Value: value, From: from, NoEffect: noEffect})
}

// choice lists the choice of an implementation by a section, and its options.
func (l *settings) choice(key string, section config.Section, there bool, name string, options []config.Field) {
	l.add(key, name, originOf(section, there))
	_, below, err := section.Choice()
	if err != nil {
		below = config.Section{} // nothing was chosen there
	}
	l.options(key+"."+name, below, options)
}

// options lists the options of a section. Of one that is for somebody else to read nobody knows what is a secret in it.
func (l *settings) options(key string, section config.Section, options []config.Field) {
	for _, o := range options {
		sub, there := section, true
		for part := range strings.SplitSeq(o.Name, ".") {
			if sub, there = sub.Sub(part); !there {
				break
			}
		}
		value := o.Default
		if o.Type == sectionType && there {
			value = config.Hidden
		}
		l.add(key+"."+o.Name, value, originOf(sub, there))
	}
}

// election lists the coordination, with its options where they stand.
func (l *settings) election(root config.Section, c *composition) {
	section, there := root.Sub("election")
	named, _ := root.Sub(electionsKey)
	below, elsewhere := named.Sub(c.election.Name())
	if !elsewhere {
		l.choice("election", section, there, c.election.Name(), c.election.Options())
		return
	}
	l.add("election", c.election.Name(), originOf(section, there))
	l.options(electionsKey+"."+c.election.Name(), below, c.election.Options())
}

// partitioners lists the first partitioner and those that the configuration gives names to.
func (l *settings) partitioners(root config.Section, c *composition) {
	section, there := root.Sub("partitioner")
	named, _ := root.Sub(partitionersKey)
	first := c.partitioners[0]
	if _, below := named.Sub(first.name); below {
		l.add("partitioner", first.name, originOf(section, there)) // its options stand there
	} else {
		l.choice("partitioner", section, there, first.name, first.Options())
	}
	for _, p := range c.partitioners {
		if sub, below := named.Sub(p.name); below {
			l.choice(partitionersKey+"."+p.name, sub, true, p.Choice.Name(), p.Options())
		}
	}
}

// codecs lists the codecs, one by one.
func (l *settings) codecs(root config.Section, c *composition) {
	section, there := root.Sub("compression")
	if len(c.compression) == 0 {
		l.add("compression", "", originOf(section, there))
	}
	elements, _ := section.List()
	for i, choice := range c.compression {
		var element config.Section
		if there {
			element = elements[i]
		}
		l.choice(fmt.Sprintf("compression[%d]", i), element, there, choice.Name(), choice.Options())
	}
}
