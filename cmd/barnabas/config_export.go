package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func newConfigExport(a *app) *cobra.Command {
	var from source
	var to string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Make a server.properties for Apache Kafka of a configuration",
		Long: `Reads a configuration as serve would and prints a server.properties with which Apache Kafka 3.9 acts as Barnabas would. What
became of each value that somebody set is reported on standard error: kept; changed, and why; added, where Kafka has another
default; or left out, because Kafka has nothing like it. "barnabas config import" makes the same configuration of it again, but
for what was left out.

The file holds the secrets of the configuration. Directories are made absolute.`,
		Example: `  barnabas config export -c barnabas.yaml
  barnabas config export -c barnabas.yaml --to /etc/kafka/server.properties`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			root, c, err := a.loadWithRoot(from)
			if err != nil {
				return err
			}
			e := export(root, c)
			text := string(kafka.FormatProperties(e.properties))
			if to == "" {
				_, err = io.WriteString(a.out, text)
			} else {
				err = writeNew(to, text)
			}
			if err != nil {
				return err
			}
			a.reportExport(e)
			return nil
		},
	}
	cmd.Flags().StringVarP(&from.file, "config", "c", "", "the YAML file (default: $BARNABAS_CONFIG, ./barnabas.yaml, /etc/barnabas/barnabas.yaml)")
	cmd.Flags().StringVar(&to, "to", "", "write the properties there, where nothing may be yet, instead of printing them")
	from.flagSet(cmd)
	return cmd
}

// fate is what becomes of a value in an export.
type fate string

const (
	kept    fate = "kept"
	changed fate = "changed"
	added   fate = "added"
	leftOut fate = "left out"
)

// exported is a key, what became of it, and why.
type exported struct {
	key    string
	became fate
	reason string
}

// exports is a server.properties, and how it came to be.
type exports struct {
	properties []kafka.Property
	report     []exported
	startable  bool // Kafka finds a coordination in it
}

func (e *exports) put(name, value, key string, became fate, reason string) {
	at := slices.IndexFunc(e.properties, func(p kafka.Property) bool { return p.Name == name })
	if at < 0 {
		e.properties = append(e.properties, kafka.Property{Name: name, Value: value})
	} else {
		e.properties[at].Value = value
	}
	e.report = append(e.report, exported{key, became, reason})
}

func (e *exports) leave(key, reason string) {
	e.report = append(e.report, exported{key, leftOut, reason})
}

// export makes a server.properties of a composition and the root that it was composed of.
func export(root config.Section, c *composition) exports {
	var e exports
	broker, _ := root.Sub("broker")
	e.broker(broker, c)
	for _, s := range effective(root, c) {
		role, _, _ := strings.Cut(s.Key, ".")
		role, _, _ = strings.Cut(role, "[")
		if s.From == originDefault || role == "broker" {
			continue
		}
		switch role {
		case "election", electionsKey:
			e.election(s, c.election.Name())
		case "offsets":
			if s.Key == role && s.Value == "topic" {
				e.report = append(e.report, exported{s.Key, kept, "Kafka always does so"})
			} else {
				e.leave(s.Key, "Kafka keeps offsets in its own topic, in its own way")
			}
		default:
			e.leave(s.Key, withoutCounterpart(role))
		}
	}
	e.startable = slices.ContainsFunc(e.properties, func(p kafka.Property) bool {
		return (p.Name == "zookeeper.connect" || p.Name == "process.roles") && p.Value != ""
	})
	return e
}

// withoutCounterpart says why a role's values don't come along.
func withoutCounterpart(role string) string {
	switch role {
	case "storage":
		return "Kafka has one way to read and write segments"
	case "partitioner", partitionersKey:
		return "Kafka leaves the choice of partitions to its clients"
	case "compression":
		return "Kafka always has all codecs, which topics and clients configure"
	case gatewayKey:
		return "Kafka has no HTTP"
	}
	return "Kafka has nothing like it"
}

// broker takes Kafka's own properties, and adds what Kafka has another default for.
func (e *exports) broker(section config.Section, c *composition) {
	dirs := strings.Join(absolute(c.broker.LogDirs), ",")
	for _, name := range section.Keys() {
		sub, _ := section.Sub(name)
		d, known := kafka.BrokerDefinition(name)
		value := c.layers.Static[name]
		switch {
		case !known: // of a single listener: its value is as it was written
			e.put(name, written(sub), sub.Path(), kept, "")
		case d.Internal && strings.HasSuffix(name, ".replication.throttled.rate"):
			e.leave(sub.Path(), "Kafka takes it only while it runs, from kafka-configs")
		case name == "log.dir" && c.layers.Static["log.dirs"] != "":
			e.leave(sub.Path(), "log.dirs is set")
		case (name == "log.dirs" || name == "log.dir") && value != dirs:
			e.put(name, dirs, sub.Path(), changed, "directories are absolute")
		default:
			e.put(name, value, sub.Path(), kept, "")
		}
	}
	const reason = "the default here, which isn't Kafka's"
	static := c.layers.Static
	if _, there := static["listeners"]; !there {
		listeners, _, _ := c.layers.Get("listeners")
		e.put("listeners", listeners, "broker.listeners", added, reason)
	}
	if static["log.dirs"] == "" && static["log.dir"] == "" {
		e.put("log.dir", dirs, "broker.log.dir", added, reason)
	}
}

// written gives a value, or a list of values, as text.
func written(s config.Section) string {
	if text, ok := s.Scalar(); ok {
		return text
	}
	elements, _ := s.List()
	texts := make([]string, len(elements))
	for i, element := range elements {
		texts[i], _ = element.Scalar()
	}
	return strings.Join(texts, ",")
}

// election takes what Kafka has properties for: those of a family that bears the coordination's name, such as zookeeper.connect.
func (e *exports) election(s setting, name string) {
	const reason = "Kafka coordinates through ZooKeeper, or through brokers in KRaft mode"
	option, ofOption := strings.CutPrefix(s.Key, "election."+name+".")
	if !ofOption {
		option, ofOption = strings.CutPrefix(s.Key, electionsKey+"."+name+".")
	}
	if _, family := kafka.BrokerDefinition(name + ".connect"); !family {
		e.leave(s.Key, reason)
		return
	}
	if !ofOption {
		e.report = append(e.report, exported{s.Key, kept, ""})
		return
	}
	property := map[string]string{"connect": ".connect", "session_timeout": ".session.timeout.ms", "connection_timeout": ".connection.timeout.ms", "set_acl": ".set.acl"}[option]
	if property == "" {
		e.leave(s.Key, "Kafka takes this from a JAAS file and from keystores: see its "+name+".ssl properties")
		return
	}
	value := s.Value
	if duration, err := time.ParseDuration(value); err == nil && strings.HasSuffix(property, ".ms") {
		if duration == 0 { // the property's own value holds
			return
		}
		value = strconv.FormatInt(duration.Milliseconds(), 10)
	}
	e.put(name+property, value, s.Key, changed, "it is "+name+property)
}

// reportExport tells what became of each value. Values aren't told: any may be a secret.
func (a *app) reportExport(e exports) {
	t := newTable()
	t.SetOutputMirror(a.err)
	t.AppendHeader(table.Row{"key", "became", "because"})
	for _, one := range e.report {
		t.AppendRow(table.Row{one.key, string(one.became), one.reason})
	}
	t.Render()
	if !e.startable {
		fmt.Fprintln(a.err, "note: Kafka doesn't start with it as it is: it needs zookeeper.connect, or process.roles and what else KRaft wants")
	}
}
