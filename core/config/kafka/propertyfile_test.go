package kafka_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// TestParseProperties holds what java.util.Properties.load documents.
func TestParseProperties(t *testing.T) {
	tests := []struct {
		name, text string
		want       []kafka.Property
	}{
		{"nothing", "", nil},
		{"comments and blank lines", "# a\n  ! b=c\n \t\f\n#d\\\ne=f", []kafka.Property{{"e", "f", 5, ""}}},
		{"separators", "a=1\nb:2\nc 3\nd = 4\ne\t:\t5\nf==6\ng  =:7", []kafka.Property{
			{"a", "1", 1, ""}, {"b", "2", 2, ""}, {"c", "3", 3, ""}, {"d", "4", 4, ""}, {"e", "5", 5, ""}, {"f", "=6", 6, ""}, {"g", ":7", 7, ""}}},
		{"no value", "a\nb=\nc =  ", []kafka.Property{{"a", "", 1, ""}, {"b", "", 2, ""}, {"c", "", 3, ""}}},
		{"blanks around", "  a = b c  ", []kafka.Property{{"a", "b c  ", 1, ""}}},
		{"line ends", "a=1\rb=2\r\nc=3", []kafka.Property{{"a", "1", 1, ""}, {"b", "2", 2, ""}, {"c", "3", 3, ""}}},
		{"continued", "a=1,\\\n   2,\\\r\n\t3\nb=4", []kafka.Property{{"a", "1,2,3", 1, ""}, {"b", "4", 4, ""}}},
		{"continued with what looks like a comment", "a=1\\\n#2", []kafka.Property{{"a", "1#2", 1, ""}}},
		{"continued by a blank line", "a=1\\\n\nb=2", []kafka.Property{{"a", "1", 1, ""}, {"b", "2", 3, ""}}},
		{"continued by nothing", "a=1\\", []kafka.Property{{"a", "1", 1, ""}}},
		{"a backslash that isn't the end", `a=1\\` + "\nb=2", []kafka.Property{{"a", `1\`, 1, ""}, {"b", "2", 2, ""}}},
		{"escapes", `a\=\ b\:=\t\n\r\f\\\q\u00e4\uD83D\uDE00`, []kafka.Property{{"a= b:", "\t\n\r\f\\qä😀", 1, ""}}},
		{"ISO-8859-1", "a=\xe4", []kafka.Property{{"a", "ä", 1, ""}}},
		{"twice", "a=1\na=2", []kafka.Property{{"a", "1", 1, ""}, {"a", "2", 2, ""}}},
		{"only a value", "=1", []kafka.Property{{"", "1", 1, ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := kafka.ParseProperties("s.properties", []byte(tt.text))
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParsePropertiesFaults(t *testing.T) {
	_, err := kafka.ParseProperties("s.properties", []byte("a=\\u12\nb=1\nc=\\u00zz\nd\\u=1\ne=\\uD83D"))
	const want = `want four hexadecimal digits behind \u, and both halves of a surrogate pair`
	assert.EqualError(t, err, "s.properties:1: "+want+"\ns.properties:3: "+want+"\ns.properties:4: "+want+"\ns.properties:5: "+want)
	_, err = kafka.ParseProperties("s.properties", make([]byte, config.MaxDocument+1))
	assert.ErrorContains(t, err, "s.properties: larger than")
}

// FuzzParseProperties writes down what was read, escaped, and reads it again.
func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("a=1,\\\n 2\n#c\nb : \\u00e4\\\\\n"))
	f.Add([]byte("\\\n\n\\"))
	f.Add([]byte("a\\"))
	f.Fuzz(func(t *testing.T, data []byte) {
		properties, err := kafka.ParseProperties("s.properties", data)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, p := range properties {
			b.WriteString(escape(p.Name) + "=" + escape(p.Value) + "\n")
		}
		again, err := kafka.ParseProperties("s.properties", []byte(b.String()))
		if err != nil || len(again) != len(properties) {
			t.Fatalf("%+v became %+v (%v)", properties, again, err)
		}
		for i, p := range again {
			if p.Name != properties[i].Name || p.Value != properties[i].Value || p.Line != i+1 {
				t.Fatalf("%+v became %+v", properties[i], p)
			}
		}
		_, _ = kafka.Import("s.properties", properties)
	})
}

func escape(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for _, unit := range utf16Of(text) {
		b.WriteString(`\u` + string([]byte{hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15]}))
	}
	return b.String()
}
