package kafka

import (
	"fmt"
	"strconv"
	"strings"
)

// atLeast is the rule for numbers with a lower bound.
type atLeast int64

func (r atLeast) Check(value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= int64(r) {
		return ""
	}
	return fmt.Sprintf("value must be at least %d", int64(r))
}

func (r atLeast) String() string { return fmt.Sprintf("at least %d", int64(r)) }

// between is the rule for numbers with two bounds.
type between struct{ low, high float64 }

func (r between) Check(value string) string {
	n, err := strconv.ParseFloat(value, 64)
	if err == nil && n >= r.low && n <= r.high {
		return ""
	}
	if n > r.high {
		return fmt.Sprintf("value must be no more than %v", r.high)
	}
	return fmt.Sprintf("value must be at least %v", r.low)
}

func (r between) String() string { return fmt.Sprintf("%v to %v", r.low, r.high) }

// oneOf is the rule for words from a list.
type oneOf []string

func (r oneOf) Check(value string) string {
	for _, word := range r {
		if value == word {
			return ""
		}
	}
	return "must be one of: " + strings.Join(r, ", ")
}

func (r oneOf) String() string { return strings.Join(r, ", ") }

// oneOfFolded is oneOf in any case.
type oneOfFolded []string

func (r oneOfFolded) Check(value string) string { return oneOf(r).Check(strings.ToUpper(value)) }
func (r oneOfFolded) String() string            { return oneOf(r).String() + ", in any case" }

// anyOf is the rule for lists of such words.
type anyOf []string

func (r anyOf) Check(value string) string {
	for _, word := range splitList(value) {
		if fault := oneOf(r).Check(word); fault != "" {
			return fmt.Sprintf("%q %s", word, fault)
		}
	}
	return ""
}

func (r anyOf) String() string { return "list of " + strings.Join(r, ", ") }

// nonEmpty is the rule for texts that must not be empty.
type nonEmpty struct{}

func (nonEmpty) Check(value string) string {
	if value == "" {
		return "must not be empty"
	}
	return ""
}

func (nonEmpty) String() string { return "not empty" }

// gzipLevel is the rule for gzip's effort: 1 to 9, or -1 for the default.
type gzipLevel struct{}

func (gzipLevel) Check(value string) string {
	if value == "-1" {
		return ""
	}
	return between{1, 9}.Check(value)
}

func (gzipLevel) String() string { return "1 to 9, or -1" }

// throttledReplicas is the rule for lists of PARTITION:BROKER, or * alone.
type throttledReplicas struct{}

func (throttledReplicas) Check(value string) string {
	if strings.TrimSpace(value) == "*" {
		return ""
	}
	for _, pair := range splitList(value) {
		partition, broker, ok := strings.Cut(pair, ":")
		if !ok || !isDigits(partition) || !isDigits(broker) {
			return "must be * or a list of PARTITION:BROKER"
		}
	}
	return ""
}

func (throttledReplicas) String() string { return "PARTITION:BROKER,… or *" }

func isDigits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// releases is the rule for versions of Kafka, such as "2.8", "0.10.2" or "3.9-IV0".
type releases struct{}

func (releases) Check(value string) string {
	number, iv, hasIV := strings.Cut(value, "-")
	parts := strings.Split(number, ".")
	ok := len(parts) >= 2 && len(parts) <= 4 && len(value) <= 16
	for _, part := range parts {
		ok = ok && isDigits(part)
	}
	if hasIV {
		n, found := strings.CutPrefix(iv, "IV")
		ok = ok && found && isDigits(n)
	}
	if !ok {
		return "must be a version of Apache Kafka, such as 3.9"
	}
	return ""
}

func (releases) String() string { return "a version of Apache Kafka" }
