package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

func newConfigReference(a *app) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "reference [WORD...]",
		Short: "Explain every key: type, default, meaning, and when it may change",
		Long: `Explains every key that a file or a topic can have, or those with one of the words in them: its type, its default, which
values are valid, whether it may change while brokers run, and what it means. Properties of Kafka that have no effect here are
explained as well, with the reason.`,
		Example: `  barnabas config reference
  barnabas config reference retention
  barnabas config reference storage.mmap election.zookeeper
  barnabas config reference --output yaml`,
		RunE: func(_ *cobra.Command, words []string) error {
			if err := out.check(); err != nil {
				return err
			}
			all := reference(a.parts)
			found := slices.DeleteFunc(slices.Clone(all), func(k key) bool {
				has := func(word string) bool { return strings.Contains(k.Name, word) }
				return len(words) > 0 && !slices.ContainsFunc(words, has)
			})
			if len(found) == 0 {
				return wrong(noKey(words, all))
			}
			return out.print(a, found, func() { a.printKeys(found) })
		},
	}
	out.flags(cmd)
	return cmd
}

func noKey(words []string, all []key) error {
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.Name
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
	return errors.New(text)
}

// key is what there is to know of one key.
type key struct {
	Name    string `json:"name"`  // dotted, as --set takes it; of a topic's property, its name
	Scope   scope  `json:"scope"` // where it is set
	Type    string `json:"type"`  // as Kafka calls it or as the plug-in declares it
	Default string `json:"default"`
	// DefaultFrom is the key whose value is a topic's default, and Default what that comes to where nobody sets it.
	DefaultFrom string  `json:"default_from,omitempty"`
	Valid       string  `json:"valid,omitempty"` // which values are valid, "" for all of the type
	Changes     changes `json:"changes"`         // when it may change
	Meaning     string  `json:"meaning"`
	NoEffect    string  `json:"no_effect,omitempty"` // why it has no effect, "" for a key that acts
}

// The types of keys that aren't options.
const (
	sectionType      = "section" // has others below it, and no value of its own
	choiceType       = "a name, alone or with options"
	codecsType       = "list of names, each alone or with options"
	partitionersType = "map of names to partitioners"
	electionsType    = "map of the implementations' names to their options"
)

// scope says where a key is set.
type scope string

const (
	inFile  scope = "file"
	ofTopic scope = "topic"
)

// changes says when a key may change.
type changes string

const (
	atStart     changes = "restart"
	perBroker   changes = "broker"
	clusterWide changes = "cluster"
	perTopic    changes = "topic"
)

// words says it for people.
func (c changes) words() string {
	return map[changes]string{
		atStart:     "with a restart of the broker",
		perBroker:   "while the broker runs, for one broker at a time",
		clusterWide: "while brokers run, for one or for all",
		perTopic:    "while brokers run",
	}[c]
}

// reference lists all keys: the broker's properties by name, those of topics, then role by role.
func reference(parts components) []key {
	var all []key
	modes := map[kafka.Mode]changes{kafka.ReadOnly: atStart, kafka.PerBroker: perBroker, kafka.ClusterWide: clusterWide}
	for _, d := range kafka.BrokerDefinitions() {
		k := keyOf(d)
		k.Name, k.Changes = "broker."+d.Name, modes[d.Mode]
		all = append(all, k)
	}
	for _, d := range kafka.TopicDefinitions() {
		k := keyOf(d)
		k.Scope, k.Changes = ofTopic, perTopic
		if d.Synonym != "" {
			k.DefaultFrom = "broker." + d.Synonym
		}
		all = append(all, k)
	}
	all = append(all, keysOf(parts.storage, "How segments of logs are written and read.")...)
	all = append(all, keysOf(parts.election, "Who coordinates: which broker is controller, who is alive, which topics there are.")...)
	all = append(all, key{Name: electionsKey, Scope: inFile, Type: electionsType, Changes: atStart, Valid: strings.Join(parts.election.Names(), ", "),
		Meaning: "The options of several coordinations, where election is a name alone and decides between them: {IMPLEMENTATION: {OPTION: VALUE}}."})
	all = append(all, keysOf(parts.partitioner, "Which partition a record goes to, where no client chose. It may also be a name from partitioners.")...)
	all = append(all, key{Name: partitionersKey, Scope: inFile, Type: partitionersType, Changes: atStart,
		Meaning: "Partitioners under names of their own, for topics to declare: {NAME: {IMPLEMENTATION: {OPTION: VALUE}}}."})
	codecs := keysOf(parts.compression, "The codecs that batches may be compressed with.")
	codecs[0].Type, codecs[0].Default = codecsType, strings.Join(parts.inProcess.Names(), ", ")
	all = append(all, codecs...)
	all = append(all, keysOf(parts.offsets, "Where consumer groups keep their offsets.")...)
	all = append(all, keysOfOne(gatewayKey, parts.gateway)...)
	all = append(all, keysOfSection(adminKey, adminSummary, config.Fields(adminhttp.DefaultOptions()))...)
	all = append(all, keysOfSection(metricsKey, metricsSummary, config.Fields(broker.MetricsOptions{}))...)
	return append(all, keysOfSection(loggingKey, loggingSummary, config.Fields(defaultLogging()))...)
}

// keyOf tells what there is to know of a property of Kafka's.
func keyOf(d kafka.Definition) key {
	k := key{Name: d.Name, Scope: inFile, Type: d.Type.String(), Meaning: d.Doc, NoEffect: d.NoEffect}
	if !d.Null {
		k.Default = d.Default
	}
	if d.Valid != nil {
		k.Valid = d.Valid.String()
	}
	if d.Refused {
		k.NoEffect += "; any other value than the default is refused"
	}
	return k
}

// keysOf lists a role, its implementations and their options.
func keysOf[S, T any](registry plugin.Registry[S, T], doc string) []key {
	names := registry.Names()
	role := registry.Role()
	all := []key{{
		Name: role, Scope: inFile, Type: choiceType, Default: names[0],
		Valid: strings.Join(names, ", "), Changes: atStart, Meaning: doc,
	}}
	for _, name := range names {
		if factory, err := registry.Get(name); err == nil { // the name came from the registry itself
			all = append(all, keysOfOne(role+"."+name, factory)...)
		}
	}
	return all
}

// keysOfOne lists an implementation and its options.
func keysOfOne[S, T any](name string, factory plugin.Factory[S, T]) []key {
	return keysOfSection(name, factory.Summary(), factory.Options())
}

// keysOfSection lists a section and the keys below it.
func keysOfSection(name, summary string, fields []config.Field) []key {
	all := []key{{Name: name, Scope: inFile, Type: sectionType, Changes: atStart, Meaning: summary}}
	for _, o := range fields {
		all = append(all, key{Name: name + "." + o.Name, Scope: inFile, Type: o.Type, Default: o.Default, Changes: atStart, Meaning: o.Doc})
	}
	return all
}

// printKeys prints a few lines for each key.
func (a *app) printKeys(all []key) {
	for i, k := range all {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		name, fallback := k.Name, orNone(k.Default)
		if k.Scope == ofTopic {
			name += " (of a topic)"
		}
		if k.DefaultFrom != "" {
			fallback = fmt.Sprintf("what %s comes to (%s)", k.DefaultFrom, fallback)
		}
		fmt.Fprintf(a.out, "%s\n  %s\n  type: %s\n", name, k.Meaning, k.Type)
		if k.Type != sectionType {
			fmt.Fprintf(a.out, "  default: %s\n", fallback)
		}
		if k.Valid != "" {
			fmt.Fprintf(a.out, "  valid: %s\n", k.Valid)
		}
		fmt.Fprintf(a.out, "  changes: %s\n", k.Changes.words())
		if k.NoEffect != "" {
			fmt.Fprintf(a.out, "  has no effect: %s\n", k.NoEffect)
		}
	}
}
