package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

func newConfigReference(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reference [WORD...]",
		Short: "Explain every key: type, default, meaning, and when it may change",
		Long: `Explains every key that a file or a topic can have, or those with one of the words in them: its type, its default, which
values are valid, whether it may change while brokers run, and what it means. Properties of Kafka that have no effect here are
explained as well, with the reason.`,
		Example: `  barnabas config reference
  barnabas config reference retention
  barnabas config reference storage.mmap election.zookeeper`,
		RunE: func(_ *cobra.Command, words []string) error {
			all := reference(a.parts)
			if len(words) == 0 {
				return printKeys(a.out, all)
			}
			var found []key
			for _, k := range all {
				for _, word := range words {
					if strings.Contains(k.name, word) {
						found = append(found, k)
						break
					}
				}
			}
			if len(found) == 0 {
				return wrong(noKey(words, all))
			}
			return printKeys(a.out, found)
		},
	}
}

func noKey(words []string, all []key) error {
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.name
	}
	text := "no key has in it " + strings.Join(words, " or ")
	for _, word := range words {
		near := config.Nearest(word, names)
		if near == "" {
			near = config.Nearest("broker."+word, names)
		}
		if near != "" {
			return fmt.Errorf("%s (did you mean %q?)", text, near)
		}
	}
	return fmt.Errorf("%s", text)
}

// key is what there is to know of one key.
type key struct {
	name     string // dotted, as --set takes it; of a topic's property, its name
	ofTopic  bool   // it is set for a topic, not in a file
	kind     string // its type, as Kafka calls it or as the plug-in declares it
	fallback string // what holds where nobody sets it, in words
	valid    string // which values are valid, "" for all of the type
	changes  string // when it may change
	doc      string
	noEffect string // why it has no effect, "" for a key that acts
}

// When a key may change.
const (
	atStart     = "with a restart of the broker"
	perBroker   = "while the broker runs, for one broker at a time"
	clusterWide = "while brokers run, for one or for all"
	perTopic    = "while brokers run"
)

// reference lists all keys: the broker's properties by name, those of topics, then role by role.
func reference(parts components) []key {
	var all []key
	changes := map[kafka.Mode]string{kafka.ReadOnly: atStart, kafka.PerBroker: perBroker, kafka.ClusterWide: clusterWide}
	for _, d := range kafka.BrokerDefinitions() {
		k := keyOf(d)
		k.name, k.changes = "broker."+d.Name, changes[d.Mode]
		all = append(all, k)
	}
	for _, d := range kafka.TopicDefinitions() {
		k := keyOf(d)
		k.ofTopic, k.changes = true, perTopic
		if d.Synonym != "" {
			k.fallback = fmt.Sprintf("what broker.%s comes to (%s)", d.Synonym, k.fallback)
		}
		all = append(all, k)
	}
	all = append(all, keysOf(parts.storage, "How segments of logs are written and read.")...)
	all = append(all, keysOf(parts.election, "Who coordinates: which broker is controller, who is alive, which topics there are.")...)
	all = append(all, keysOf(parts.partitioner, "Which partition a record goes to, where no client chose. It may also be a name from partitioners.")...)
	all = append(all, key{name: partitionersKey, kind: "map of names to partitioners", fallback: "none", changes: atStart,
		doc: "Partitioners under names of their own, for topics to declare: {NAME: {IMPLEMENTATION: {OPTION: VALUE}}}."})
	codecs := keysOf(parts.compression, "The codecs that batches may be compressed with.")
	codecs[0].kind, codecs[0].fallback = "list of names, each alone or with options", strings.Join(parts.inProcess.Names(), ", ")
	all = append(all, codecs...)
	all = append(all, keysOf(parts.offsets, "Where consumer groups keep their offsets.")...)
	return append(all, keysOfOne(gatewayKey, parts.gateway)...)
}

// keyOf tells what there is to know of a property of Kafka's.
func keyOf(d kafka.Definition) key {
	k := key{name: d.Name, kind: d.Type.String(), fallback: d.Default, doc: d.Doc, noEffect: d.NoEffect}
	if d.Null {
		k.fallback = ""
	}
	k.fallback = orNone(k.fallback)
	if d.Valid != nil {
		k.valid = d.Valid.String()
	}
	if d.Refused {
		k.noEffect += "; any other value than the default is refused"
	}
	return k
}

// keysOf lists a role, its implementations and their options.
func keysOf[S, T any](registry plugin.Registry[S, T], doc string) []key {
	names := registry.Names()
	role := registry.Role()
	all := []key{{name: role, kind: "a name, alone or with options", fallback: names[0], valid: strings.Join(names, ", "), changes: atStart, doc: doc}}
	for _, name := range names {
		if factory, err := registry.Get(name); err == nil { // the name came from the registry itself
			all = append(all, keysOfOne(role+"."+name, factory)...)
		}
	}
	return all
}

// keysOfOne lists an implementation and its options.
func keysOfOne[S, T any](name string, factory plugin.Factory[S, T]) []key {
	all := []key{{name: name, kind: "section", fallback: "the defaults below", changes: atStart, doc: factory.Summary()}}
	for _, o := range factory.Options() {
		all = append(all, key{name: name + "." + o.Name, kind: o.Type, fallback: orNone(o.Default), changes: atStart, doc: o.Doc})
	}
	if len(all) == 1 {
		all[0].fallback = "it has no options"
	}
	return all
}

// printKeys prints a few lines for each key.
func printKeys(w io.Writer, all []key) error {
	for i, k := range all {
		var b strings.Builder
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(k.name)
		if k.ofTopic {
			b.WriteString(" (of a topic)")
		}
		fmt.Fprintf(&b, "\n  %s\n  type: %s\n  default: %s\n", k.doc, k.kind, k.fallback)
		if k.valid != "" {
			fmt.Fprintf(&b, "  valid: %s\n", k.valid)
		}
		fmt.Fprintf(&b, "  changes: %s\n", k.changes)
		if k.noEffect != "" {
			fmt.Fprintf(&b, "  has no effect: %s\n", k.noEffect)
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}
