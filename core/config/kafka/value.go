package kafka

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The kinds of fault that a property, its value or a change to it can have. They decide the code that clients get:
// INVALID_CONFIG for the first three, INVALID_REQUEST for the others. Use [errors.Is] on a [Fault].
var (
	ErrUnknownKey   = errors.New("unknown property")
	ErrInvalidValue = errors.New("invalid value")
	ErrNotList      = errors.New("not a list")
	ErrNoValue      = errors.New("no value given")
	ErrDuplicateKey = errors.New("given more than once")
	ErrReadOnly     = errors.New("cannot be changed while the broker runs")
	ErrPerBroker    = errors.New("cannot be set for all brokers at once")
	ErrUnknownOp    = errors.New("unknown operation")
)

// Fault is what is wrong with one property.
type Fault struct {
	Name string // of the property
	Kind error  // one of the Err variables above
	Text string // a sentence for people; never holds a sensitive value
}

// Error gives the text.
func (f *Fault) Error() string { return f.Text }

// Unwrap gives the kind.
func (f *Fault) Unwrap() error { return f.Kind }

func invalid(d Definition, value, why string) error {
	shown := value
	if d.Sensitive() {
		shown = "[hidden]"
	} else if len(shown) > 200 {
		shown = shown[:200] + "…"
	}
	return &Fault{Name: d.Name, Kind: ErrInvalidValue, Text: fmt.Sprintf("Invalid value %s for configuration %s: %s", shown, d.Name, why)}
}

// Canonical checks a value against a definition and gives the form in which Kafka shows it: numbers without blanks or
// plus signs, lists without blanks. The error is a [Fault] of kind [ErrInvalidValue].
func (d Definition) Canonical(value string) (string, error) {
	canonical, why := parse(d.Type, value)
	if why == "" && d.Valid != nil {
		why = d.Valid.Check(canonical)
	}
	if why != "" {
		return "", invalid(d, value, why)
	}
	return canonical, nil
}

// parse gives the canonical form of a value of a type, or says what is wrong.
func parse(t Type, value string) (canonical, why string) {
	trimmed := strings.TrimSpace(value)
	switch t {
	case Boolean:
		switch {
		case strings.EqualFold(trimmed, "true"):
			return "true", ""
		case strings.EqualFold(trimmed, "false"):
			return "false", ""
		}
		return "", "expected value to be either true or false"
	case Short:
		return parseInteger(trimmed, t, 16)
	case Int:
		return parseInteger(trimmed, t, 32)
	case Long:
		return parseInteger(trimmed, t, 64)
	case Double:
		f, err := strconv.ParseFloat(trimmed, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(trimmed, "xX_") {
			return "", "not a number of type DOUBLE"
		}
		return formatDouble(f), ""
	case List:
		return strings.Join(splitList(trimmed), ","), ""
	case Class:
		return trimmed, ""
	default:
		return value, ""
	}
}

func parseInteger(value string, t Type, bits int) (canonical, why string) {
	n, err := strconv.ParseInt(value, 10, bits)
	if err != nil {
		return "", "not a number of type " + t.String()
	}
	return strconv.FormatInt(n, 10), ""
}

// splitList splits at commas and trims the elements; the empty text is the empty list.
func splitList(value string) []string {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	elements := strings.Split(value, ",")
	for i, element := range elements {
		elements[i] = strings.TrimSpace(element)
	}
	return elements
}

// formatDouble writes a number as Java does, which is how clients see it: 0.5, 1.0, 1.0E10.
func formatDouble(f float64) string {
	if abs := math.Abs(f); f == 0 || abs >= 1e-3 && abs < 1e7 {
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
