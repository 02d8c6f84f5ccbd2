package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Validator is implemented by a struct that checks what its field types can't. Validate is called after decoding,
// on the defaults too; it may return several faults through [errors.Join] and name the field of each with [At].
type Validator interface {
	Validate() error
}

// Decode fills into, a non-nil pointer to a struct that holds the defaults, with what the section says, and then
// calls Validate on it and on every struct inside. What the section doesn't mention keeps its default.
//
// It is strict: each key must be the `yaml` tag of a field, in exact case; a value must be of the field's type, so a
// number doesn't pass for text nor "true" in quotes for a boolean; a key without a value is an error, for it would
// leave in doubt whether the default is meant. A mapping without a value is as good as an empty one.
//
// Fields may be of these types: bool, string, integers and floats, [time.Duration] ("6s", or 0), [ByteSize] ("64MiB"
// or a number of bytes), anything with UnmarshalText, structs, slices, maps with string keys, pointers to these (nil
// stands for unset), and [Section] for a subtree that somebody else decodes. Decoded slices and maps replace their
// defaults as a whole.
//
// All faults come together, as [Errors]; into is then only partly filled and of no use.
func (s Section) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return Join(fmt.Errorf("decode %s: want a pointer to a struct, not %T", s.path, into))
	}
	d := decoder{}
	d.structure(s, v.Elem())
	if len(d.errs) > 0 {
		return d.errs
	}
	return Join(validate(s, v.Elem()))
}

// decoder collects the faults of one Decode.
type decoder struct{ errs Errors }

func (d *decoder) fail(s Section, format string, args ...any) {
	d.errs = append(d.errs, s.at(s.line, fmt.Errorf(format, args...)))
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	byteSizeType = reflect.TypeFor[ByteSize]()
	sectionType  = reflect.TypeFor[Section]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// structure decodes a mapping into the fields of v, or leaves v alone when there is no value.
func (d *decoder) structure(s Section, v reflect.Value) {
	if s.IsZero() {
		return
	}
	if !s.IsMapping() {
		d.fail(s, "want a mapping of keys to values, not %s", kindOf(s.node))
		return
	}
	fields := fieldsOf(v.Type())
	names := make([]string, len(fields))
	byName := make(map[string]int, len(fields))
	for i, f := range fields {
		names[i], byName[f.name] = f.name, f.index
	}
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		key := s.node.Content[i]
		index, ok := byName[key.Value]
		if !ok {
			child := s.child(key.Value, key, s.node.Content[i+1])
			d.errs = append(d.errs, &Error{File: child.file, Line: child.line, Path: s.path, Err: unknownKey(key.Value, names)})
			continue
		}
		d.value(s.child(key.Value, key, s.node.Content[i+1]), v.Field(index))
	}
}

// value decodes any section into any supported value.
func (d *decoder) value(s Section, v reflect.Value) {
	t := v.Type()
	switch {
	case t == sectionType:
		v.Set(reflect.ValueOf(s))
		return
	case t == durationType:
		d.duration(s, v)
		return
	case reflect.PointerTo(t).Implements(textType):
		d.text(s, v)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		d.structure(s, v)
	case reflect.Pointer:
		fresh := reflect.New(t.Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		d.value(s, fresh.Elem())
		v.Set(fresh)
	case reflect.Slice:
		d.slice(s, v)
	case reflect.Map:
		d.mapping(s, v)
	default:
		d.scalar(s, v)
	}
}

func (d *decoder) slice(s Section, v reflect.Value) {
	elements, ok := s.List()
	if !ok {
		d.fail(s, "want a list, not %s", kindOf(s.node))
		return
	}
	fresh := reflect.MakeSlice(v.Type(), len(elements), len(elements))
	for i, element := range elements {
		d.value(element, fresh.Index(i))
	}
	v.Set(fresh)
}

func (d *decoder) mapping(s Section, v reflect.Value) {
	if v.Type().Key().Kind() != reflect.String {
		d.fail(s, "cannot decode into %s: its keys are no strings", v.Type())
		return
	}
	if !s.IsMapping() {
		if !s.IsZero() {
			d.fail(s, "want a mapping of keys to values, not %s", kindOf(s.node))
		}
		return
	}
	fresh := reflect.MakeMapWithSize(v.Type(), len(s.node.Content)/2)
	for _, key := range s.Keys() {
		sub, _ := s.Sub(key)
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(sub, element)
		fresh.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), element)
	}
	v.Set(fresh)
}

// plain gives a section's scalar, or says what stands there instead.
func (d *decoder) plain(s Section, want string) (node *yaml.Node, ok bool) {
	switch {
	case isNull(s.node):
		d.fail(s, "no value given: want %s (remove the key to keep the default)", want)
	case s.node.Kind != yaml.ScalarNode:
		d.fail(s, "want %s, not %s", want, kindOf(s.node))
	default:
		return s.node, true
	}
	return nil, false
}

func (d *decoder) duration(s Section, v reflect.Value) {
	const want = `a duration such as "250ms", "6s" or "1h30m"`
	node, ok := d.plain(s, want)
	if !ok {
		return
	}
	duration, err := time.ParseDuration(node.Value)
	if err != nil {
		d.fail(s, "want %s, not %s", want, kindOf(node))
		return
	}
	v.SetInt(int64(duration))
}

func (d *decoder) text(s Section, v reflect.Value) {
	want := "a value"
	if v.Type() == byteSizeType {
		want = `a size such as "64MiB" or a number of bytes`
	}
	node, ok := d.plain(s, want)
	if !ok {
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(node.Value)); err != nil {
		d.fail(s, "%w", err)
	}
}

func (d *decoder) scalar(s Section, v reflect.Value) {
	kind := v.Kind()
	switch {
	case kind == reflect.String:
		if node, ok := d.plain(s, "a text"); ok {
			if node.ShortTag() != "!!str" {
				d.fail(s, "want a text, not %s (put it in quotes)", kindOf(node))
				return
			}
			v.SetString(node.Value)
		}
	case kind == reflect.Bool:
		if node, ok := d.plain(s, "true or false"); ok {
			if node.ShortTag() != "!!bool" {
				d.fail(s, "want true or false, not %s", kindOf(node))
				return
			}
			v.SetBool(strings.EqualFold(node.Value, "true"))
		}
	case v.CanInt(), v.CanUint():
		d.integer(s, v)
	case v.CanFloat():
		if node, ok := d.plain(s, "a number"); ok {
			f, err := strconv.ParseFloat(node.Value, v.Type().Bits())
			if tag := node.ShortTag(); err != nil || math.IsNaN(f) || math.IsInf(f, 0) || tag != "!!int" && tag != "!!float" {
				d.fail(s, "want a number, not %s", kindOf(node))
				return
			}
			v.SetFloat(f)
		}
	default:
		d.fail(s, "cannot decode into a %s", v.Type())
	}
}

func (d *decoder) integer(s Section, v reflect.Value) {
	const want = "a whole number"
	node, ok := d.plain(s, want)
	if !ok {
		return
	}
	if node.ShortTag() != "!!int" {
		d.fail(s, "want %s, not %s", want, kindOf(node))
		return
	}
	bits := v.Type().Bits()
	var err error
	if v.CanInt() {
		var n int64
		if n, err = strconv.ParseInt(node.Value, 0, bits); err == nil {
			v.SetInt(n)
		}
	} else {
		var n uint64
		if n, err = strconv.ParseUint(node.Value, 0, bits); err == nil {
			v.SetUint(n)
		}
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.fail(s, "%s is out of range for a %d-bit number", node.Value, bits)
	case err != nil:
		d.fail(s, "want %s, not %s", want, kindOf(node))
	}
}

// validate calls Validate on every struct below v, the innermost first, and gives each fault the place of its struct.
func validate(s Section, v reflect.Value) error {
	var errs Errors
	for _, f := range fieldsOf(v.Type()) {
		field := v.Field(f.index)
		sub, _ := s.Sub(f.name)
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		switch {
		case !field.IsValid() || field.Type() == sectionType:
		case field.Kind() == reflect.Struct && !reflect.PointerTo(field.Type()).Implements(textType):
			errs = append(errs, flatten(validate(sub, field))...)
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			elements, _ := sub.List()
			for i := range field.Len() {
				element := Section{file: sub.file, path: fmt.Sprintf("%s[%d]", sub.path, i), line: sub.line, origins: sub.origins}
				if i < len(elements) {
					element = elements[i]
				}
				errs = append(errs, flatten(validate(element, field.Index(i)))...)
			}
		}
	}
	if validator, ok := v.Addr().Interface().(Validator); ok && v.Type() != sectionType {
		errs = append(errs, flatten(s.Wrap(validator.Validate()))...)
	}
	return Join(errs)
}
