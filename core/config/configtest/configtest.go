// Package configtest checks options structs in the tests of whoever declares one.
package configtest

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/barnabas-mq/barnabas/core/config"
)

// CheckStruct fails the test unless v, an options struct that holds its defaults, can be configured: every exported
// field has a `yaml` tag in snake_case that no sibling shares, and a `doc` tag; none is embedded; each is of a type
// that [config.Section.Decode] knows; and the defaults, written as YAML and decoded over a zero struct, come back
// unchanged and pass Validate.
func CheckStruct(t testing.TB, v any) {
	t.Helper()
	for _, fault := range Faults(v) {
		t.Errorf("%T: %s", v, fault)
	}
}

// Faults lists what CheckStruct would report.
func Faults(v any) []string {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return []string{"is not a struct"}
	}
	faults := declaration(value.Type(), "")
	if len(faults) > 0 {
		return faults
	}
	return roundTrip(value)
}

// declaration checks tags, names and types.
func declaration(t reflect.Type, prefix string) []string {
	var faults []string
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		at := prefix + f.Name
		switch {
		case f.Anonymous:
			faults = append(faults, at+": embedded structs hide where a key comes from")
			continue
		case !f.IsExported():
			continue
		case name == "":
			faults = append(faults, at+": has no yaml tag")
			continue
		case !snake.MatchString(name):
			faults = append(faults, fmt.Sprintf("%s: the yaml tag %q is not in snake_case", at, name))
		case seen[name]:
			faults = append(faults, fmt.Sprintf("%s: the yaml tag %q is used twice", at, name))
		}
		seen[name] = true
		if isStruct(f.Type) {
			faults = append(faults, declaration(f.Type, at+".")...)
		} else if f.Tag.Get("doc") == "" {
			faults = append(faults, at+": has no doc tag")
		}
		if !decodable(f.Type) {
			faults = append(faults, fmt.Sprintf("%s: a %s cannot be configured", at, f.Type))
		}
	}
	return faults
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[config.Section]() && !isText(t)
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func decodable(t reflect.Type) bool {
	if isText(t) {
		return t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
			reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return decodable(t.Elem())
	case reflect.Map:
		return t.Key().Kind() == reflect.String && decodable(t.Elem())
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer,
		reflect.Array, reflect.Uintptr:
		return false
	default:
		return true
	}
}

// roundTrip writes the defaults as YAML and reads them back.
func roundTrip(defaults reflect.Value) []string {
	node, err := encode(defaults)
	if err != nil {
		return []string{"defaults: " + err.Error()}
	}
	data, err := yaml.Marshal(node)
	if err != nil {
		return []string{"defaults: " + err.Error()}
	}
	section, err := config.Parse("defaults", data)
	if err != nil {
		return []string{"defaults: " + err.Error()}
	}
	again := reflect.New(defaults.Type())
	if err := section.Decode(again.Interface()); err != nil {
		return []string{"the defaults are refused: " + err.Error()}
	}
	second, err := encode(again.Elem())
	if err != nil {
		return []string{"defaults: " + err.Error()}
	}
	after, err := yaml.Marshal(second)
	if err != nil {
		return []string{"defaults: " + err.Error()}
	}
	if string(after) != string(data) {
		return []string{fmt.Sprintf("the defaults change on the way through YAML:\n%s\nbecomes\n%s", data, after)}
	}
	return nil
}

// encode writes a value as the YAML that decodes to it. Fields that are unset (nil) are left out.
func encode(v reflect.Value) (*yaml.Node, error) {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Interface().(time.Duration).String()}, nil
	}
	if isText(v.Type()) {
		addressable := reflect.New(v.Type())
		addressable.Elem().Set(v)
		text, err := addressable.Interface().(encoding.TextMarshaler).MarshalText()
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(text), Style: yaml.DoubleQuotedStyle}, err
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			element, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, element)
		}
		return list, nil
	default:
		node := new(yaml.Node)
		return node, node.Encode(v.Interface())
	}
}

func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		if !f.IsExported() || f.Type == reflect.TypeFor[config.Section]() {
			continue
		}
		if k := field.Kind(); (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map) && field.IsNil() {
			continue
		}
		value, err := encode(field)
		if err != nil {
			return nil, err
		}
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Tag.Get("yaml")}, value)
	}
	return mapping, nil
}
