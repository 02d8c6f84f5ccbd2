package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Field describes one option of a struct, for listings and references.
type Field struct {
	Name    string // the YAML key; keys of inner structs follow after a dot
	Type    string // text, bool, int, float, duration, size, list of …, map of …, section
	Default string // as it would stand in YAML; "" when there is none
	Doc     string // from the struct tag `doc:"…"`
}

// Fields lists the options of a struct, given with its default values, in the order of their declaration. The value of one with a
// `secret:"true"` tag isn't shown.
func Fields(defaults any) []Field {
	v := reflect.ValueOf(defaults)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.Zero(v.Type().Elem())
		} else {
			v = v.Elem()
		}
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	return appendFields(nil, "", v)
}

func appendFields(list []Field, prefix string, v reflect.Value) []Field {
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		if isPlainStruct(value.Type()) {
			list = appendFields(list, prefix+f.name+".", value)
			continue
		}
		text := format(value)
		if f.secret && !isEmpty(value) {
			text = Hidden
		}
		list = append(list, Field{Name: prefix + f.name, Type: typeName(value.Type()), Default: text, Doc: f.doc})
	}
	return list
}

// isEmpty reports whether a value tells nothing: an unset text, a list without elements.
func isEmpty(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

// Hidden stands for the value of an option that is a secret.
const Hidden = "[hidden]"

// field is an exported field that has a YAML name.
type field struct {
	name   string
	doc    string
	secret bool // a `secret:"true"` tag: its value is never shown
	index  int
}

// fieldsOf gives the fields that can be decoded: exported, with a `yaml` tag that isn't "-".
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		fields = append(fields, field{name: name, doc: f.Tag.Get("doc"), secret: f.Tag.Get("secret") == "true", index: i})
	}
	return fields
}

// isPlainStruct tells a struct with fields of its own from one that is written as a single value.
func isPlainStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != sectionType && !reflect.PointerTo(t).Implements(textType)
}

func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t == byteSizeType:
		return "size"
	case t == sectionType:
		return "section"
	case reflect.PointerTo(t).Implements(textType):
		return "text"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "map of " + typeName(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Float32, reflect.Float64:
		return "float"
	case reflect.Struct:
		return "section"
	default:
		return "int"
	}
}

// format writes a value as it would stand in YAML.
func format(v reflect.Value) string {
	if v.Type() == sectionType {
		return ""
	}
	if v.Type() == durationType {
		return v.Interface().(time.Duration).String()
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		text, err := m.MarshalText()
		if err != nil {
			return ""
		}
		return string(text)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return format(v.Elem())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = format(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		if v.Len() == 0 {
			return "{}"
		}
		return fmt.Sprint(v.Interface())
	default:
		return fmt.Sprint(v.Interface())
	}
}
