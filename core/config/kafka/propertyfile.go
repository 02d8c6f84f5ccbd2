package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Property is one entry of a file of properties, or of an environment.
type Property struct {
	Name     string
	Value    string
	Line     int    // on which it begins, from 1; 0 when it comes from no file
	Variable string // of the environment, that it comes from; "" when it comes from a file
}

// ParseProperties reads a file such as server.properties by the rules of java.util.Properties: ISO-8859-1, with escapes for the
// rest, `=`, `:` or blanks behind a name, `#` and `!` before comments, and a backslash at the end of a line that goes on. Entries
// come in the order of the file; a name that stands there twice comes twice. file is used in messages only.
//
// A broken escape is an error, as it is in Java, and so is a file above [config.MaxDocument].
func ParseProperties(file string, data []byte) ([]Property, error) {
	if len(data) > config.MaxDocument {
		return nil, &config.Error{File: file, Err: fmt.Errorf("larger than %d bytes", config.MaxDocument)}
	}
	var properties []Property
	var errs []error
	lines := naturalLines(data)
	for i := 0; i < len(lines); {
		at := i + 1
		text := trimBlanks(lines[i])
		i++
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		var logical strings.Builder
		for continues(text) && i < len(lines) {
			logical.WriteString(text[:len(text)-1])
			text = trimBlanks(lines[i])
			i++
		}
		logical.WriteString(strings.TrimSuffix(text, trailing(text)))
		p, err := parseProperty(logical.String())
		if err != nil {
			errs = append(errs, &config.Error{File: file, Line: at, Err: err})
			continue
		}
		if p.Line = at; p.Name != "" || p.Value != "" {
			properties = append(properties, p)
		}
	}
	return properties, config.Join(errs...)
}

// naturalLines splits at any of the three line ends.
func naturalLines(data []byte) []string {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	return strings.Split(string(data), "\n")
}

// blanks are what Java takes for white space within a line.
const blanks = " \t\f"

func trimBlanks(line string) string { return strings.TrimLeft(line, blanks) }

// continues reports whether a line ends in a backslash that isn't itself escaped.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// trailing gives the backslash at the end of the last line of a file that goes on nowhere.
func trailing(line string) string {
	if continues(line) {
		return `\`
	}
	return ""
}

// parseProperty splits a logical line, which holds no continuation.
func parseProperty(line string) (p Property, err error) {
	end := 0
	for end < len(line) && !strings.ContainsRune("=:"+blanks, rune(line[end])) {
		if line[end] == '\\' {
			end++ // whatever follows belongs to the name
		}
		end++
	}
	end = min(end, len(line))
	value := trimBlanks(line[end:])
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = trimBlanks(value[1:])
	}
	if p.Name, err = unescape(line[:end]); err == nil {
		p.Value, err = unescape(value)
	}
	return p, err
}

// unescape resolves Java's escapes in bytes of ISO-8859-1.
func unescape(text string) (string, error) {
	var units []uint16
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+1 == len(text) {
			units = append(units, uint16(c))
			continue
		}
		i++
		switch c = text[i]; c {
		case 't':
			c = '\t'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 'f':
			c = '\f'
		case 'u':
			if i+4 >= len(text) {
				return "", errBadEscape
			}
			unit, err := strconv.ParseUint(text[i+1:i+5], 16, 16)
			if err != nil {
				return "", errBadEscape
			}
			units = append(units, uint16(unit))
			i += 4
			continue
		}
		units = append(units, uint16(c))
	}
	runes := utf16.Decode(units)
	if slices.Contains(runes, unicode.ReplacementChar) && !slices.Contains(units, unicode.ReplacementChar) {
		return "", errBadEscape
	}
	return string(runes), nil
}

var errBadEscape = errors.New(`want four hexadecimal digits behind \u, and both halves of a surrogate pair`)
