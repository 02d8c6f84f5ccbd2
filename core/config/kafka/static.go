package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
)

// ReadStatic reads the properties of a `broker` section: Kafka's names as keys, single values or lists behind them.
// Keys are taken literally, dots and all.
//
// An unknown name, a value that isn't valid and a setting that would promise what Barnabas can't keep are errors, all
// reported together with their places; what is known but has no effect gives a warning that says why. Checks of
// several properties together are [Layers.BrokerConfig]'s.
func ReadStatic(section config.Section) (values Values, warnings []string, err error) {
	if err := section.Only(section.Keys()...); err != nil { // it isn't a mapping
		return nil, nil, err
	}
	values = Values{}
	var errs []error
	for _, name := range section.Keys() {
		sub, _ := section.Sub(name)
		d, known := BrokerDefinition(name)
		listener, forListener := overridden(name)
		switch {
		case !known && !forListener:
			errs = append(errs, sub.Wrap(unknownProperty(name, sub)))
			continue
		case !known:
			if _, err := readProperty(sub, listener); err != nil {
				errs = append(errs, err)
			}
			warnings = append(warnings, warning(sub, becauseListener))
			continue
		}
		value, err := readProperty(sub, d)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		values[name] = value
		if d.NoEffect != "" {
			warnings = append(warnings, warning(sub, d.NoEffect))
		}
	}
	if err := joinIDs(values); err != nil {
		errs = append(errs, section.Wrap(err))
	}
	if err := config.Join(errs...); err != nil {
		return nil, warnings, err
	}
	return values, warnings, nil
}

// readProperty gives the canonical value that a section holds for a property.
func readProperty(sub config.Section, d Definition) (string, error) {
	text, ok := sub.Scalar()
	if !ok {
		elements, isList := sub.List()
		switch {
		case sub.IsZero():
			return "", sub.Wrap(errors.New("no value given (remove the key to keep the default)"))
		case !isList:
			return "", sub.Wrap(errors.New("want a single value; names of properties are written in full, dots and all"))
		}
		texts := make([]string, len(elements))
		for i, element := range elements {
			if texts[i], ok = element.Scalar(); !ok || strings.Contains(texts[i], ",") {
				return "", element.Wrap(errors.New("want a single value without commas"))
			}
		}
		text = strings.Join(texts, ",")
	}
	value, err := d.Canonical(text)
	if err != nil {
		if n := inUnitOf(d, text); n != "" {
			err = fmt.Errorf("%w (%s is %s here)", err, strings.TrimSpace(text), n)
		}
	}
	if err == nil && d.Refused && value != d.Default {
		err = fmt.Errorf("cannot be set: %s", d.NoEffect)
	}
	return value, sub.Wrap(err)
}

func warning(sub config.Section, why string) string {
	place := (&config.Error{File: sub.File(), Line: sub.Line(), Path: sub.Path(), Err: errors.New("has no effect: " + why)})
	return place.Error()
}

// inUnitOf gives what somebody meant who wrote a number with a unit, such as 7d or 64MiB, in the unit that a property's name ends with;
// "" when that is no whole number, or nothing of the kind.
func inUnitOf(d Definition, text string) string {
	if d.Type != Int && d.Type != Long {
		return ""
	}
	text = strings.TrimSpace(text)
	if strings.HasSuffix(d.Name, ".bytes") {
		var size config.ByteSize
		if size.UnmarshalText([]byte(text)) != nil {
			return ""
		}
		return strconv.FormatInt(int64(size), 10)
	}
	unit, timed := time.Duration(0), false
	for suffix, of := range map[string]time.Duration{".ms": time.Millisecond, ".seconds": time.Second, ".minutes": time.Minute, ".hours": time.Hour} {
		if strings.HasSuffix(d.Name, suffix) {
			unit, timed = of, true
		}
	}
	duration, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); err != nil && isDays {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			duration = time.Duration(n) * 24 * time.Hour
		}
	}
	if !timed || err != nil || duration%unit != 0 {
		return ""
	}
	return strconv.FormatInt(int64(duration/unit), 10)
}

func unknownProperty(name string, sub config.Section) error {
	text := "unknown property"
	if sub.IsMapping() {
		return errors.New(text + ": names are written in full, dots and all, such as log.dirs")
	}
	if near := nearest(name, definitions().broker); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return errors.New(text)
}

// joinIDs makes broker.id and node.id say the same, as Kafka does.
func joinIDs(values Values) error {
	id, hasID := values["broker.id"]
	node, hasNode := values["node.id"]
	switch {
	case hasID && hasNode && id != node:
		return config.At("node.id", fmt.Errorf("is another name of broker.id and must be the same: %s, not %s", id, node))
	case hasID:
		values["node.id"] = id
	case hasNode:
		values["broker.id"] = node
	}
	return nil
}

// Place gives the faults in err the places of their properties in a `broker` section, or of the section itself for
// what it doesn't mention. A nil err stays nil.
func Place(section config.Section, err error) error {
	var placed []error
	var walk func(err error)
	walk = func(err error) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range many.Unwrap() {
				walk(one)
			}
			return
		}
		if fault := new(Fault); errors.As(err, &fault) {
			err = config.At(fault.Name, errors.New(strings.TrimPrefix(fault.Text, fault.Name+": ")))
		}
		placed = append(placed, section.Wrap(err))
	}
	if err != nil {
		walk(err)
	}
	return config.Join(placed...)
}
