package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Setting is one property in a request that replaces all settings of a resource (AlterConfigs).
type Setting struct {
	Name  string
	Value *string // nil is a fault
}

// Op is what an incremental change does to a property; the numbers are those of IncrementalAlterConfigs (KIP-339).
type Op int8

// The operations.
const (
	Set      Op = 0
	Delete   Op = 1
	Append   Op = 2
	Subtract Op = 3
)

// Change is one incremental change of a property.
type Change struct {
	Name  string
	Op    Op
	Value *string // nil is a fault, but for Delete
}

// Target says whose broker properties a change is for.
type Target int8

// The targets of a change of broker properties.
const (
	ThisBroker Target = iota // the resource named by the broker's id
	AllBrokers               // the resource ""
)

// ChangeTopic gives the settings of a topic's own after they were all replaced, or joins what is wrong.
func (l Layers) ChangeTopic(settings []Setting) (Values, error) {
	values, err := replace(settings)
	if err != nil {
		return nil, err
	}
	return l.finishTopic(values)
}

// ChangeTopicIncrementally gives the settings of a topic's own after the changes, or joins what is wrong. current
// stays as it is.
func (l Layers) ChangeTopicIncrementally(current Values, changes []Change) (Values, error) {
	values, err := apply(current, changes, func(name string) (Definition, string, error) {
		d, ok := TopicDefinition(name)
		if !ok {
			_, err := canonicalTopic(name, "")
			return d, "", err
		}
		return d, l.topicDefault(d), nil
	})
	if err != nil {
		return nil, err
	}
	return l.finishTopic(values)
}

func (l Layers) finishTopic(values Values) (Values, error) {
	if err := l.CheckTopic(values); err != nil {
		return nil, err
	}
	for name, value := range values {
		values[name], _ = canonicalTopic(name, value)
	}
	return values, nil
}

// ChangeBroker gives the layers after the dynamic settings of the target were all replaced, or joins what is wrong.
// Names that nobody knows are kept, as in Kafka: a plug-in may be asking for them.
func (l Layers) ChangeBroker(target Target, settings []Setting) (Layers, error) {
	values, err := replace(settings)
	if err != nil {
		return Layers{}, err
	}
	return l.finishBroker(target, values)
}

// ChangeBrokerIncrementally gives the layers after changes to the dynamic settings of the target, or joins what is
// wrong.
func (l Layers) ChangeBrokerIncrementally(target Target, changes []Change) (Layers, error) {
	values, err := apply(l.dynamic(target), changes, func(name string) (Definition, string, error) {
		d, ok := BrokerDefinition(name)
		if !ok {
			return d, "", &Fault{Name: name, Kind: ErrNotList, Text: fmt.Sprintf("Unknown property %s has no list to change", name)}
		}
		return d, l.text(name), nil
	})
	if err != nil {
		return Layers{}, err
	}
	return l.finishBroker(target, values)
}

func (l Layers) dynamic(target Target) Values {
	if target == AllBrokers {
		return l.DynamicDefault
	}
	return l.Dynamic
}

// finishBroker checks new dynamic settings and puts them into the layers. What was there before and stays the same is
// not held against the change.
func (l Layers) finishBroker(target Target, values Values) (Layers, error) {
	before := l.dynamic(target)
	var faults []error
	for _, name := range sortedNames(values) {
		d, known := BrokerDefinition(name)
		old, had := before[name]
		if !known || had && old == values[name] {
			continue
		}
		canonical, err := d.Canonical(values[name])
		if err == nil {
			err = l.changeable(d, canonical, target)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		values[name] = canonical
	}
	after := l
	if target == AllBrokers {
		after.DynamicDefault = values
	} else {
		after.Dynamic = values
	}
	if len(faults) == 0 {
		if _, err := after.BrokerConfig(); err != nil {
			faults = append(faults, err)
		}
	}
	return after, errors.Join(faults...)
}

// changeable says why a valid new value can't be taken while the broker runs, or nil.
func (l Layers) changeable(d Definition, value string, target Target) error {
	switch {
	case d.Mode == ReadOnly:
		return &Fault{Name: d.Name, Kind: ErrReadOnly, Text: "Cannot update these configs dynamically: " + d.Name}
	case target == AllBrokers && d.Mode == PerBroker:
		return &Fault{Name: d.Name, Kind: ErrPerBroker, Text: "Cannot update these configs at default cluster level, broker configs must be updated per broker: " + d.Name}
	case d.Refused && value != d.Default:
		return invalid(d, value, d.NoEffect)
	}
	switch d.Name {
	case "listeners", "advertised.listeners", "listener.security.protocol.map":
		// Kafka rebinds; here connections of a listener live as long as the broker.
		if value != l.text(d.Name) {
			return &Fault{Name: d.Name, Kind: ErrReadOnly, Text: d.Name + " can only be changed by a restart"}
		}
	case "background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
		"num.replica.fetchers", "log.cleaner.threads":
		return l.gradual(d, value)
	}
	return nil
}

// gradual lets a number of threads at most double or halve at a time, as Kafka does.
func (l Layers) gradual(d Definition, value string) error {
	now, _ := l.integer(d.Name)
	next, _ := strconv.ParseInt(value, 10, 64)
	switch {
	case next == now:
		return nil
	case next <= 0:
		return invalid(d, value, "must be at least 1")
	case next < now/2:
		return invalid(d, value, fmt.Sprintf("must be at least half of the current value %d", now))
	case next > now*2:
		return invalid(d, value, fmt.Sprintf("must not be greater than double the current value %d", now))
	}
	return nil
}

// replace turns the settings of AlterConfigs into values.
func replace(settings []Setting) (Values, error) {
	values := make(Values, len(settings))
	var faults []error
	for _, s := range settings {
		switch _, double := values[s.Name]; {
		case double:
			faults = append(faults, duplicate(s.Name))
		case s.Value == nil:
			faults = append(faults, noValue(s.Name))
		default:
			values[s.Name] = *s.Value
		}
	}
	return values, errors.Join(faults...)
}

func duplicate(name string) error {
	return &Fault{Name: name, Kind: ErrDuplicateKey, Text: fmt.Sprintf("Property %s is given more than once", name)}
}

func noValue(name string) error {
	return &Fault{Name: name, Kind: ErrNoValue, Text: "Null value not supported for : " + name}
}

// apply makes the incremental changes on a copy of the current values. lookup gives a property's definition and the
// value it has where it isn't set here; it is asked for list operations only, so unknown names can be deleted.
func apply(current Values, changes []Change, lookup func(name string) (Definition, string, error)) (Values, error) {
	values := make(Values, len(current)+len(changes))
	for name, value := range current {
		values[name] = value
	}
	seen := map[string]bool{}
	var faults []error
	for _, change := range changes {
		var err error
		switch {
		case seen[change.Name]:
			err = duplicate(change.Name)
		case change.Op < Set || change.Op > Subtract:
			err = &Fault{Name: change.Name, Kind: ErrUnknownOp, Text: fmt.Sprintf("Unknown operation %d for %s", change.Op, change.Name)}
		case change.Op == Delete:
			delete(values, change.Name)
		case change.Value == nil:
			err = noValue(change.Name)
		case change.Op == Set:
			values[change.Name] = *change.Value
		default:
			err = changeList(values, change, lookup)
		}
		seen[change.Name] = true
		if err != nil {
			faults = append(faults, err)
		}
	}
	return values, errors.Join(faults...)
}

// changeList appends to or subtracts from a list, beginning with the value in force where none is set here.
func changeList(values Values, change Change, lookup func(name string) (Definition, string, error)) error {
	d, inForce, err := lookup(change.Name)
	if err != nil {
		return err
	}
	if d.Type != List {
		return &Fault{Name: change.Name, Kind: ErrNotList, Text: "Config value append is not allowed for config key: " + change.Name}
	}
	if own, ok := values[change.Name]; ok {
		inForce = own
	}
	list := splitList(inForce)
	operands := splitList(*change.Value)
	if change.Op == Append {
		for _, word := range operands {
			if !slices.Contains(list, word) {
				list = append(list, word)
			}
		}
	} else {
		kept := list[:0]
		for _, word := range list {
			if !slices.Contains(operands, word) {
				kept = append(kept, word)
			}
		}
		list = kept
	}
	values[change.Name] = strings.Join(list, ",")
	return nil
}
