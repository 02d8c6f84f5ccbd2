package kafka

import "sort"

// Entry is one property as DescribeConfigs shows it.
type Entry struct {
	Name      string
	Value     *string // nil when unset, or not to be shown
	Source    Source
	Type      Type // 0 for a broker property that nobody knows, which Kafka lets one set
	ReadOnly  bool
	Sensitive bool
	// Synonyms are all places that have a say in the value, the one that wins first. Where the property itself is set
	// nowhere and has no default there are none, even if a relative in another unit is set.
	Synonyms []Synonym
	Doc      string
}

// Synonym is one place at which an [Entry]'s value may come from.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// DescribeTopic lists all properties of a topic with the given settings of its own, by name, internal ones only where they are set. A caller that wants some
// properties picks them; unknown names simply aren't there.
func (l Layers) DescribeTopic(own Values) []Entry {
	all := definitions().topic
	entries := make([]Entry, 0, len(all))
	for _, d := range all {
		if _, set := own[d.Name]; d.Internal && !set {
			continue
		}
		value := l.topicValue(own, d)
		entry := Entry{Name: d.Name, Value: &value, Source: FromDefault, Type: d.Type, Sensitive: d.Sensitive(), Doc: d.Doc}
		if set, ok := own[d.Name]; ok {
			entry.Synonyms = append(entry.Synonyms, Synonym{Name: d.Name, Value: &set, Source: FromTopic})
		}
		if d.Synonym != "" {
			entry.Synonyms = append(entry.Synonyms, l.synonyms(d.Synonym, FromDynamicBroker, d.Sensitive())...)
		}
		if len(entry.Synonyms) > 0 {
			entry.Source = entry.Synonyms[0].Source
		}
		entries = append(entries, entry)
	}
	return entries
}

// DescribeBroker lists all properties of this broker by name: those of the table, but for internal ones that aren't
// set, and whatever else was set.
func (l Layers) DescribeBroker() []Entry {
	var entries []Entry
	for _, d := range definitions().broker {
		entry := l.describe(d, FromDynamicBroker)
		if _, source, ok := l.Get(d.Name); !d.Internal || ok && source != FromDefault {
			entries = append(entries, entry)
		}
	}
	return l.appendUnknown(entries, l.Static, l.DynamicDefault, l.Dynamic)
}

// DescribeDefault lists the properties that were changed for all brokers, by name.
func (l Layers) DescribeDefault() []Entry {
	var entries []Entry
	only := Layers{DynamicDefault: l.DynamicDefault}
	for _, d := range definitions().broker {
		if _, ok := l.DynamicDefault[d.Name]; !ok {
			continue
		}
		entry := only.describe(d, FromDynamicDefault)
		kept := entry.Synonyms[:0]
		for _, s := range entry.Synonyms {
			if s.Source == FromDynamicDefault {
				kept = append(kept, s)
			}
		}
		entry.Synonyms = kept
		entries = append(entries, entry)
	}
	return only.appendUnknown(entries, l.DynamicDefault)
}

// describe makes the entry of a broker property.
func (l Layers) describe(d Definition, from Source) Entry {
	entry := Entry{
		Name: d.Name, Source: FromDefault, Type: d.Type, ReadOnly: d.Mode == ReadOnly, Sensitive: d.Sensitive(), Doc: d.Doc,
		Synonyms: l.synonyms(d.Name, from, d.Sensitive()),
	}
	if value, _, ok := l.Get(d.Name); ok && !d.Sensitive() {
		entry.Value = &value
	}
	if len(entry.Synonyms) > 0 {
		entry.Source = entry.Synonyms[0].Source
	}
	return entry
}

// synonyms lists what the sources say about a broker property and its family, source by source, and leaves out what
// comes before the property's own first mention (so Kafka 3.9 does it, and clients compare).
func (l Layers) synonyms(name string, from Source, hide bool) []Synonym {
	var all []Synonym
	for source := from; source <= FromDefault; source++ {
		for _, relative := range chain(name) {
			value, ok := l.at(source, relative)
			if !ok || relative != name && len(all) == 0 {
				continue
			}
			synonym := Synonym{Name: relative, Value: &value, Source: source}
			if hide {
				synonym.Value = nil
			}
			all = append(all, synonym)
		}
	}
	return all
}

// appendUnknown adds what was set and isn't in the table. It may be anything, so its value is treated as a secret.
func (l Layers) appendUnknown(entries []Entry, from ...Values) []Entry {
	seen := map[string]bool{}
	var names []string
	for _, values := range from {
		for name := range values {
			if _, known := BrokerDefinition(name); !known && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	for _, name := range names {
		entry := Entry{Name: name, ReadOnly: true, Sensitive: true, Synonyms: l.synonyms(name, FromDynamicBroker, true)}
		entry.Source = entry.Synonyms[0].Source
		entries = append(entries, entry)
	}
	return entries
}
