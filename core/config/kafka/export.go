package kafka

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// FormatProperties writes properties as a file that [ParseProperties] and java.util.Properties read back as they are, one a line in the
// order given. A property whose name is empty can't be written, and is left out.
func FormatProperties(properties []Property) []byte {
	var b strings.Builder
	for _, p := range properties {
		if p.Name == "" {
			continue
		}
		writeEscaped(&b, p.Name, "=: ")
		b.WriteByte('=')
		value := strings.TrimLeft(p.Value, blanks)
		for _, blank := range p.Value[:len(p.Value)-len(value)] { // or it would be taken for the space around the separator
			writeEscaped(&b, string(blank), " ")
		}
		writeEscaped(&b, value, "")
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// writeEscaped writes a text with escapes for what has a meaning in the file: a backslash, what isn't printable ASCII, and more. A comment
// sign begins a comment in front of a name only, where it is escaped as what isn't ASCII is.
func writeEscaped(b *strings.Builder, text, more string) {
	for i, unit := range utf16.Encode([]rune(text)) {
		c := rune(unit)
		switch {
		case c == '\\' || strings.ContainsRune(more, c):
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c > '~' || i == 0 && more != "" && (c == '#' || c == '!'):
			fmt.Fprintf(b, `\u%04x`, unit)
		default:
			b.WriteRune(c)
		}
	}
}
