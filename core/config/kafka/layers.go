package kafka

import "strconv"

// Values are properties that are set at one place, by name, in canonical form. A nil map is empty. Functions of this
// package never change a map they are given.
type Values map[string]string

// Source says where a value comes from; the numbers are those of DescribeConfigs.
type Source int8

// The sources, by precedence: the first that has a value wins.
const (
	FromTopic          Source = 1 // the topic's own properties
	FromDynamicBroker  Source = 2 // changed for this broker while it ran
	FromDynamicDefault Source = 3 // changed for all brokers while they ran
	FromStatic         Source = 4 // the file, the command line or the environment
	FromDefault        Source = 5 // the table
	FromLogger         Source = 6 // the level of a logger, which has no layers
)

// Layers are the places at which a broker's properties are set, above their defaults. Layers are values: whoever
// changes one makes new Layers.
type Layers struct {
	Static         Values // from [ReadStatic]
	DynamicDefault Values // of the resource "" (all brokers), as kept by the broker
	Dynamic        Values // of this broker, as kept by the broker

	// Codecs are the names of the codecs that this broker has, for compression.type may ask for no other; nil has all.
	Codecs []string
	// Partitioners are those that this broker has, for topics may declare no other; nil has all.
	Partitioners []Partitioner
}

// Partitioner is a partitioner that topics may declare.
type Partitioner struct {
	Name  string
	Keyed bool // it places records by their keys, so that it can be checked where they are
}

// at gives what one source says about a broker property by its exact name.
func (l Layers) at(source Source, name string) (value string, ok bool) {
	switch source {
	case FromDynamicBroker:
		value, ok = l.Dynamic[name]
	case FromDynamicDefault:
		value, ok = l.DynamicDefault[name]
	case FromStatic:
		value, ok = l.Static[name]
	case FromDefault:
		d, known := BrokerDefinition(name)
		return d.Default, known && !d.Null
	}
	return value, ok
}

// Get gives the value of a broker property by its exact name: not of its family, so "log.retention.ms" is unset when
// only hours are given. ok is false when it is unset and has no default, or isn't known.
func (l Layers) Get(name string) (value string, source Source, ok bool) {
	for source = FromDynamicBroker; source <= FromDefault; source++ {
		if value, ok = l.at(source, name); ok {
			return value, source, true
		}
	}
	return "", FromDefault, false
}

// text is Get without the source, "" for what is unset.
func (l Layers) text(name string) string {
	value, _, _ := l.Get(name)
	return value
}

// integer is Get for numbers; ok is false for what is unset.
func (l Layers) integer(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(l.text(name), 10, 64)
	return n, err == nil
}

// topicDefault gives the value that topics have for a property of theirs unless they set it: the broker's, converted
// to the topic's unit where the broker's was given in a larger one.
func (l Layers) topicDefault(d Definition) string {
	const minute, hour = 60_000, 3_600_000
	either := func(ms string, larger string, factor int64) (int64, bool) {
		if n, ok := l.integer(ms); ok {
			return n, true
		}
		n, ok := l.integer(larger)
		if ok && n > 0 {
			n *= factor // an int32 times an hour is far below the limit
		}
		return n, ok
	}
	var n int64
	var ok bool
	switch d.Name {
	case "segment.ms":
		n, ok = either("log.roll.ms", "log.roll.hours", hour)
	case "segment.jitter.ms":
		n, ok = either("log.roll.jitter.ms", "log.roll.jitter.hours", hour)
	case "retention.ms":
		if n, ok = either("log.retention.ms", "log.retention.minutes", minute); !ok {
			n, ok = either("log.retention.ms", "log.retention.hours", hour)
		}
		if n < 0 {
			n = -1
		}
	case "flush.ms":
		n, ok = either("log.flush.interval.ms", "log.flush.scheduler.interval.ms", 1)
	default:
		if d.Synonym == "" {
			return d.Default
		}
		return l.text(d.Synonym)
	}
	if !ok {
		return d.Default
	}
	return strconv.FormatInt(n, 10)
}

// topicValue gives a topic property's value under the topic's own settings.
func (l Layers) topicValue(own Values, d Definition) string {
	if value, ok := own[d.Name]; ok {
		return value
	}
	return l.topicDefault(d)
}
