package kafka

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
)

// SchemaOfBroker describes the `broker` section of a YAML file as a JSON schema. It accepts what [ReadStatic] accepts, but for a
// list in place of a single value; what it can't say, such as which numbers in quotes are too large, is left to that.
func SchemaOfBroker() config.Schema {
	properties := config.Schema{}
	for _, d := range definitions().broker {
		properties[d.Name] = d.Schema()
	}
	return config.Schema{
		"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false,
		"patternProperties": config.Schema{`^listener\.name\.[^.]+\..+$`: config.Schema{
			"type": []string{"string", "number", "boolean", "array"}, "description": "A setting of a single listener. Has no effect: " + becauseListener + ".",
		}},
	}
}

// Schema describes the values of a property.
func (d Definition) Schema() config.Schema {
	s := d.Type.schema()
	if limited, ok := d.Valid.(interface{ limit(s config.Schema, t Type) }); ok {
		limited.limit(s, d.Type)
	}
	s["description"] = d.Doc
	if d.NoEffect != "" {
		s["description"] = fmt.Sprintf("%s Has no effect: %s.", d.Doc, d.NoEffect)
	}
	if !d.Null {
		s["default"] = d.typed()
	}
	if d.Refused {
		s["enum"] = []any{d.Default}
		if typed := d.typed(); typed != d.Default {
			s["enum"] = []any{d.Default, typed}
		}
	}
	return s
}

// typed gives the default as the JSON value that it would be in a file.
func (d Definition) typed() any {
	switch d.Type {
	case Boolean:
		return d.Default == "true"
	case Int, Short, Long:
		if n, err := strconv.ParseInt(d.Default, 10, 64); err == nil {
			return n
		}
	case Double:
		if f, err := strconv.ParseFloat(d.Default, 64); err == nil {
			return f
		}
	}
	return d.Default
}

// Forms of numbers in quotes, as text.
const (
	integerPattern = `^\s*[+-]?[0-9]+\s*$`
	numberPattern  = `^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$`
	booleanPattern = `^\s*([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])\s*$`
)

// schema describes a type. Any value may be in quotes; a list is as good as its elements with commas between.
func (t Type) schema() config.Schema {
	single := []string{"string", "number", "boolean"}
	switch t {
	case Boolean:
		return config.Schema{"type": []string{"boolean", "string"}, "pattern": booleanPattern}
	case Short:
		return config.Schema{"type": []string{"integer", "string"}, "pattern": integerPattern, "minimum": math.MinInt16, "maximum": math.MaxInt16}
	case Int:
		return config.Schema{"type": []string{"integer", "string"}, "pattern": integerPattern, "minimum": math.MinInt32, "maximum": math.MaxInt32}
	case Long:
		return config.Schema{"type": []string{"integer", "string"}, "pattern": integerPattern, "minimum": int64(math.MinInt64), "maximum": int64(math.MaxInt64)}
	case Double:
		return config.Schema{"type": []string{"number", "string"}, "pattern": numberPattern}
	}
	return config.Schema{"type": append(single, "array"), "items": config.Schema{"type": single}}
}

// limit narrows the schema of a type to the numbers that the rule allows.
func (r atLeast) limit(s config.Schema, _ Type) { s["minimum"] = int64(r) }

func (r between) limit(s config.Schema, _ Type) { s["minimum"], s["maximum"] = r.low, r.high }

func (r oneOf) limit(s config.Schema, _ Type) { setWords(s, r, false) }

func (r oneOfFolded) limit(s config.Schema, _ Type) { setWords(s, r, true) }

func (r anyOf) limit(s config.Schema, _ Type) {
	words := quoted(r, false)
	s["pattern"] = `^\s*(` + words + `)?(\s*,\s*(` + words + `))*\s*$`
	s["items"] = config.Schema{"type": "string", "pattern": `^\s*(` + words + `)\s*$`}
}

func (nonEmpty) limit(s config.Schema, _ Type) { s["minLength"] = 1 }

func (gzipLevel) limit(s config.Schema, _ Type) { s["minimum"], s["maximum"] = -1, 9 }

func setWords(s config.Schema, words []string, folded bool) {
	s["type"], s["pattern"] = "string", `^(`+quoted(words, folded)+`)$`
	delete(s, "items")
	if !folded {
		s["examples"] = words
	}
}

// quoted makes an alternative of words for a pattern, in any case when folded.
func quoted(words []string, folded bool) string {
	all := make([]string, len(words))
	for i, word := range words {
		if !folded {
			all[i] = regexp.QuoteMeta(word)
			continue
		}
		for _, c := range word {
			all[i] += "[" + strings.ToUpper(string(c)) + strings.ToLower(string(c)) + "]"
		}
	}
	return strings.Join(all, "|")
}
