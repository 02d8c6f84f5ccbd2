package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Verdict says what becomes of a property that was written for Kafka.
type Verdict int8

// The verdicts.
const (
	Mapped  Verdict = iota // it acts, under the same name
	Ignored                // it is known, and would have no effect
	Unknown                // neither Kafka nor Barnabas knows it
	Added                  // nobody wrote it: it is Kafka's default, where Barnabas has another
)

// String gives the verdict as reports show it.
func (v Verdict) String() string { return [...]string{"mapped", "ignored", "unknown", "added"}[v] }

// Imported is a property with its verdict.
type Imported struct {
	Property // of what is mapped and added the value is in canonical form
	Verdict  Verdict
	Reason   string // for people; "" where there is nothing to say
}

// Place says where the property stands, for errors about it: its line of the file, or its variable.
func (p Property) Place(file string, err error) *config.Error {
	if p.Variable != "" {
		return &config.Error{File: p.Variable, Path: p.Name, Err: err}
	}
	return &config.Error{File: file, Line: p.Line, Path: p.Name, Err: err}
}

// Import says what becomes of each property of a server.properties of Apache Kafka 3.9, or of its container's environment
// ([ParseEnvironment]), so that those that are mapped or added make a broker that acts as Kafka would. Of properties with the same name
// the last counts. The verdicts come in the order of the properties, and then what is added.
//
// What can't be kept is an error, with file and line: a value that isn't valid, a promise that Barnabas refuses to make, a value that a
// config provider is to supply, and the properties of a process that is only a controller. Whether the properties fit together is
// [Layers.BrokerConfig]'s to say. file is used in messages only. No text holds a sensitive value.
func Import(file string, properties []Property) ([]Imported, error) {
	verdicts, last, err := judge(file, properties)
	return append(verdicts, addDefaults(last)...), err
}

// ImportOver is Import for properties that are laid over a configuration which exists already, so that no defaults are added.
func ImportOver(properties []Property) ([]Imported, error) {
	verdicts, _, err := judge("", properties)
	return verdicts, err
}

// judge gives each property its verdict. last holds those that count, by name.
func judge(file string, properties []Property) (verdicts []Imported, last map[string]Property, err error) {
	last = map[string]Property{}
	for _, p := range properties {
		last[p.Name] = p
	}
	var errs []error
	for _, p := range properties {
		one := Imported{Property: p}
		var err error
		if final := last[p.Name]; final != p {
			one.Verdict, one.Reason = Ignored, "given again "+final.where()+", which counts"
		} else {
			one, err = importOne(p, last)
		}
		if err != nil {
			errs = append(errs, p.Place(file, err))
			continue
		}
		verdicts = append(verdicts, one)
	}
	return verdicts, last, config.Join(errs...)
}

func (p Property) where() string {
	if p.Variable != "" {
		return "in " + p.Variable
	}
	return fmt.Sprintf("on line %d", p.Line)
}

// providers names the config providers that values may refer to (KIP-297). Kafka reads it before its table.
const providers = "config.providers"

// importOne judges a property by the table. all holds the others, by name.
func importOne(p Property, all map[string]Property) (Imported, error) {
	one := Imported{Property: p}
	d, known := BrokerDefinition(p.Name)
	_, forListener := overridden(p.Name)
	switch {
	case !known && forListener:
		one.Verdict, one.Reason = Ignored, becauseListener
		return one, nil
	case p.Name == providers || strings.HasPrefix(p.Name, providers+"."):
		one.Verdict, one.Reason = Ignored, becauseProviders
		return one, nil
	case !known:
		one.Verdict, one.Reason = Unknown, "not a property of Apache Kafka 3.9"
		if near := nearest(p.Name, definitions().broker); near != "" {
			one.Reason += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return one, nil
	case p.Name == "process.roles" && strings.TrimSpace(p.Value) == "controller":
		return one, errors.New("a process that is only a controller has no counterpart here")
	case d.NoEffect != "" && !d.Refused:
		one.Verdict, one.Reason = Ignored, d.NoEffect
		return one, nil
	case strings.HasPrefix(p.Name, "zookeeper.") && strings.TrimSpace(all["zookeeper.connect"].Value) == "":
		one.Verdict, one.Reason = Ignored, "there is no zookeeper.connect"
		return one, nil
	case d.NoEffect == "" && all[providers].Value != "" && provided(p.Value):
		return one, errors.New("its value comes from a config provider: write the value itself")
	}
	value, err := d.Canonical(p.Value)
	switch {
	case err != nil:
		return one, err
	case d.Refused && value != d.Default:
		return one, fmt.Errorf("cannot be kept: %s", d.NoEffect)
	case d.Refused:
		one.Verdict, one.Reason = Ignored, d.NoEffect
		return one, nil
	}
	one.Value = value
	if p.Name == "listeners" || p.Name == "advertised.listeners" {
		if one.Value = withoutControllers(value, all["controller.listener.names"].Value); one.Value != value {
			one.Reason = "without the listeners of the KRaft controller"
		}
	}
	return one, nil
}

// provided reports whether Kafka asks a config provider for a part of a value: ${PROVIDER:PATH:KEY}.
func provided(value string) bool {
	_, after, opened := strings.Cut(value, "${")
	reference, _, closed := strings.Cut(after, "}")
	return opened && closed && strings.Contains(reference, ":")
}

// withoutControllers takes from a list of listeners those that are the controller's alone.
func withoutControllers(listeners, controllers string) string {
	names := splitList(strings.ToUpper(controllers))
	kept := slices.DeleteFunc(splitList(listeners), func(one string) bool {
		name, _, _ := strings.Cut(one, "://")
		return slices.Contains(names, strings.ToUpper(name))
	})
	return strings.Join(kept, ",")
}

// addDefaults gives Kafka's defaults where Barnabas has others and the file says nothing.
func addDefaults(all map[string]Property) (added []Imported) {
	const reason = "Kafka's default, which isn't the default here"
	if _, ok := all["listeners"]; !ok {
		added = append(added, Imported{Property{Name: "listeners", Value: "PLAINTEXT://:9092"}, Added, reason})
	}
	_, dir := all["log.dir"]
	if _, dirs := all["log.dirs"]; !dir && !dirs {
		added = append(added, Imported{Property{Name: "log.dir", Value: "/tmp/kafka-logs"}, Added, reason})
	}
	return added
}
