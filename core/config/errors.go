package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error is one fault of a configuration and the place it stands at.
type Error struct {
	File string // as given to [Parse]; "" when the value came from no file
	Line int    // from 1; 0 when unknown
	Path string // dotted path of the key, "" for the document itself
	Err  error  // what is wrong
}

// Error gives "file:line: path: what is wrong", leaving out what is unknown.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap gives what is wrong, without the place.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all the faults found in one go, in the order in which they were found. A function of this package that fails returns
// either nil or Errors with at least one element.
type Errors []error

// Error gives one line per fault.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, err := range es {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets [errors.Is] and [errors.As] look at each fault.
func (es Errors) Unwrap() []error { return es }

// Join collects faults of several sections into one [Errors], flattening what is itself a collection and leaving out
// nil. It returns nil when nothing is left.
func Join(errs ...error) error {
	var all Errors
	for _, err := range errs {
		all = append(all, flatten(err)...)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// flatten gives the single faults inside of err. Only bare collections are opened: an error with a text of its own
// around a collection stays whole, for its text may say what the parts don't.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what is wrapped in a text stays whole
	if !ok || Errors(many.Unwrap()).Error() != err.Error() {
		return []error{err}
	}
	var flat []error
	for _, one := range many.Unwrap() {
		flat = append(flat, flatten(one)...)
	}
	return flat
}

// keyError is a fault of one key below the struct whose Validate found it.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }
func (e *keyError) Unwrap() error { return e.err }

// At says which key a fault found by Validate belongs to, so that the error names that key's line. The key is the
// YAML name of a field of the validated struct. A nil err stays nil.
func At(key string, err error) error {
	if err == nil {
		return nil
	}
	return &keyError{key: key, err: err}
}

// unknownKey is the fault of a key that nothing reads.
func unknownKey(key string, valid []string) error {
	return errors.New("unknown key " + strconv.Quote(key) + hint(key, valid))
}

// hint gives ` (did you mean "x"?)` or, when nothing is near, the list of what is valid.
func hint(word string, valid []string) string {
	if near := Nearest(word, valid); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	if len(valid) == 0 {
		return " (no key is valid here)"
	}
	if len(valid) <= 12 {
		return " (valid: " + strings.Join(valid, ", ") + ")"
	}
	return ""
}
