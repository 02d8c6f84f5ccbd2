package plugin

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Factory makes the implementations of one kind: S is the settings that the role hands in, T what comes out. Only
// [NewFactory] makes one, so that things can be added here without breaking a plug-in. It is immutable and safe for
// use from any goroutine.
type Factory[S, T any] struct {
	name    string
	summary string
	fields  func() []config.Field
	// effective lists the options with the values that a section gives them.
	effective func(config.Section) []config.Field
	check     func(config.Section) error
	build     func(config.Section, S) (T, error)
}

// NewFactory makes the factory of one implementation.
//
// name is what a configuration calls it: lower-case letters, digits, '-' and '_', beginning with a letter. summary is
// one line for listings. defaults gives a fresh options struct that holds the defaults; O's fields carry `yaml` and
// `doc` tags, and O may have a Validate method (see [config.Section.Decode]). build makes the implementation from
// checked options; it does nothing that is felt outside (see [Component], 1).
//
// A fault in these arguments shows when the factory is put into a [Registry].
func NewFactory[O, S, T any](name, summary string, defaults func() O, build func(options O, settings S) (T, error)) Factory[S, T] {
	if defaults == nil || build == nil {
		return Factory[S, T]{name: name, summary: summary}
	}
	decode := func(section config.Section) (O, error) {
		options := defaults()
		err := section.Decode(&options)
		return options, err
	}
	return Factory[S, T]{
		name:    name,
		summary: summary,
		fields:  func() []config.Field { return config.Fields(defaults()) },
		effective: func(section config.Section) []config.Field {
			options, _ := decode(section)
			return config.Fields(options)
		},
		check: func(section config.Section) error {
			_, err := decode(section)
			return err
		},
		build: func(section config.Section, settings S) (T, error) {
			options, err := decode(section)
			if err != nil {
				var none T
				return none, err
			}
			made, err := build(options, settings)
			return made, section.Wrap(err)
		},
	}
}

// Name is what a configuration calls the implementation.
func (f Factory[S, T]) Name() string { return f.name }

// Summary is one line that says what the implementation is.
func (f Factory[S, T]) Summary() string { return f.summary }

// Options lists the documented options with their defaults.
func (f Factory[S, T]) Options() []config.Field {
	if f.fields == nil {
		return nil
	}
	return f.fields()
}

// Effective lists the options with the values that a section gives them, in place of the defaults.
func (f Factory[S, T]) Effective(section config.Section) []config.Field {
	if f.effective == nil {
		return nil
	}
	return f.effective(section)
}

// Check decodes and validates a section as New would, and builds nothing. It returns all faults together.
func (f Factory[S, T]) Check(section config.Section) error {
	if f.check == nil {
		return errUnmade
	}
	return f.check(section)
}

// New builds an implementation: defaults, the section strictly over them, validation, then the constructor. Errors
// carry the place of the section.
func (f Factory[S, T]) New(section config.Section, settings S) (T, error) {
	if f.build == nil {
		var none T
		return none, errUnmade
	}
	return f.build(section, settings)
}

// errUnmade is the answer of a factory that NewFactory didn't make, or made without its functions.
var errUnmade = errors.New("plugin: this factory was not made by NewFactory, or without its functions")

// fault says what makes the factory unfit for a registry.
func (f Factory[S, T]) fault() error {
	if f.build == nil {
		return errUnmade
	}
	if !validName(f.name) {
		return fmt.Errorf("plugin: %q is no name: want lower-case letters, digits, '-' and '_', beginning with a letter", f.name)
	}
	return nil
}

func validName(name string) bool {
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_'):
		default:
			return false
		}
	}
	return name != ""
}
