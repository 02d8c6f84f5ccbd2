package kafka

import (
	"sort"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Type is the type of a property's value; the numbers are those of DescribeConfigs.
type Type int8

// The types of Kafka's ConfigDef.
const (
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

// String gives Kafka's name of the type.
func (t Type) String() string {
	names := [...]string{"", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}
	if t < 1 || int(t) >= len(names) {
		return "UNKNOWN"
	}
	return names[t]
}

// Mode says whether a broker property may be changed while the broker runs (KIP-226).
type Mode int8

// The modes of a broker property.
const (
	ReadOnly    Mode = iota // only in the file, before the start
	PerBroker               // for one broker at a time
	ClusterWide             // for one broker or for all
)

// Definition describes one property. Definitions are immutable.
type Definition struct {
	Name     string
	Type     Type
	Default  string // in canonical form; meaningless when Null
	Null     bool   // there is no default
	Valid    Rule   // nil when every value of the type is valid
	Mode     Mode   // of broker properties
	Internal bool   // listed by DescribeConfigs only when it is set, such as what Kafka doesn't have
	Synonym  string // of topic properties: the broker property that holds the default, if any
	// NoEffect is the reason for which the property, though understood, changes nothing; "" for one that is acted on.
	NoEffect string
	// Refused marks a property whose promise must not be broken in silence: setting it to anything but the default is
	// an error instead of a warning.
	Refused bool
	Doc     string // one sentence
}

// Sensitive reports whether values must never be shown.
func (d Definition) Sensitive() bool { return d.Type == Password }

// Rule is a condition on the values of a property.
type Rule interface {
	// Check gets a value in canonical form and says in a few words what is wrong with it, or "".
	Check(value string) string
	// String describes the valid values.
	String() string
}

// table is both sets of definitions, sorted by name and indexed.
type table struct {
	broker, topic   []Definition
	byName, byTopic map[string]int
	synonyms        map[string]string // broker property -> topic property
}

// definitions builds the table on first use; nothing ever changes it.
var definitions = sync.OnceValue(func() *table {
	var broker []Definition
	for _, group := range [][]Definition{
		propertiesLog(), propertiesNetwork(), propertiesGroups(), propertiesGeneral(), propertiesSecurity(), propertiesForeign(),
	} {
		broker = append(broker, group...)
	}
	t := &table{synonyms: map[string]string{}}
	t.broker, t.byName = index(broker)
	t.topic, t.byTopic = index(propertiesTopic())
	for _, d := range t.topic {
		if d.Synonym == "" {
			continue
		}
		for _, name := range chain(d.Synonym) {
			t.synonyms[name] = d.Name
		}
	}
	return t
})

func index(list []Definition) ([]Definition, map[string]int) {
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	byName := make(map[string]int, len(list))
	for i, d := range list {
		byName[d.Name] = i
	}
	return list, byName
}

// BrokerDefinitions lists all broker properties by name.
func BrokerDefinitions() []Definition { return append([]Definition(nil), definitions().broker...) }

// TopicDefinitions lists all topic properties by name.
func TopicDefinitions() []Definition { return append([]Definition(nil), definitions().topic...) }

// BrokerDefinition finds a broker property by its exact name.
func BrokerDefinition(name string) (Definition, bool) {
	t := definitions()
	i, ok := t.byName[name]
	if !ok {
		return Definition{}, false
	}
	return t.broker[i], true
}

// TopicDefinition finds a topic property by its exact name.
func TopicDefinition(name string) (Definition, bool) {
	t := definitions()
	i, ok := t.byTopic[name]
	if !ok {
		return Definition{}, false
	}
	return t.topic[i], true
}

// chain lists the broker properties that stand for one setting, the one that wins first: the time of retention may be
// given in milliseconds, minutes or hours. A property that belongs to no such family is its own chain.
func chain(name string) []string {
	switch name {
	case "log.retention.ms", "log.retention.minutes", "log.retention.hours":
		return []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"}
	case "log.roll.ms", "log.roll.hours":
		return []string{"log.roll.ms", "log.roll.hours"}
	case "log.roll.jitter.ms", "log.roll.jitter.hours":
		return []string{"log.roll.jitter.ms", "log.roll.jitter.hours"}
	case "log.flush.interval.ms":
		return []string{"log.flush.interval.ms", "log.flush.scheduler.interval.ms"}
	}
	return []string{name}
}

// nearest gives the property name that was probably meant: of the same kind, or, for a topic property among the
// broker's, the broker's name of the same setting.
func nearest(name string, list []Definition) string {
	if d, ok := TopicDefinition(name); ok && d.Synonym != "" {
		return d.Synonym
	}
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	return config.Nearest(name, names)
}

// overridden gives the property of which name is the setting for one listener: "listener.name.internal.ssl.key" is
// "ssl.key" for the listener INTERNAL. SASL settings may carry a mechanism in between.
func overridden(name string) (Definition, bool) {
	rest, ok := strings.CutPrefix(name, "listener.name.")
	if !ok {
		return Definition{}, false
	}
	for range 2 {
		_, after, found := strings.Cut(rest, ".")
		if !found {
			break
		}
		if d, ok := BrokerDefinition(after); ok {
			return d, true
		}
		rest = after
	}
	return Definition{}, false
}
