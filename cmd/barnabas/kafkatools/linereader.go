package kafkatools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLine bounds a line of input: no broker takes a larger message.
const maxLine = 1 << 30

// lineReader makes a message of each line, by the settings of Kafka's LineMessageReader:
//
//	[headers headers.delimiter] [key key.separator] value
//
// where headers are NAME:VALUE,NAME:VALUE with other separators if it is said. Headers and key are there if parse.headers and
// parse.key say so; then they have to be, unless ignore.error lets lines without them pass.
type lineReader struct {
	in     *bufio.Reader
	number int // of the line

	parseKey, parseHeaders, ignoreError bool
	key, headers, header, headerKey     string // separators
	nullMarker                          string // stands for null
	hasMarker                           bool
}

// lineReader reads the settings of the reader.
func (c *call) lineReader() (*lineReader, error) {
	if class := c.text("line-reader"); class != lineReaderClass && class != "kafka.tools.ConsoleProducer$LineMessageReader" {
		return nil, misused("--line-reader: only %s can be had, not %s", lineReaderClass, class)
	}
	over, err := c.either("reader-property", "property")
	if err != nil {
		return nil, err
	}
	p, err := loadProperties(c.text("reader-config"), pairs(over))
	if err != nil {
		return nil, err
	}
	r := &lineReader{
		in: bufio.NewReader(c.In), parseKey: p.isTrue("parse.key"), parseHeaders: p.isTrue("parse.headers"), ignoreError: p.isTrue("ignore.error"),
		key: p.get("key.separator", "\t"), headers: p.get("headers.delimiter", "\t"), header: p.get("headers.separator", ","), headerKey: p.get("headers.key.separator", ":"),
		nullMarker: p.get("null.marker", ""),
	}
	_, r.hasMarker = p.values["null.marker"]
	p.get("topic", "")
	if names := p.unused(); len(names) > 0 {
		fmt.Fprintf(c.Err, "WARN: these properties mean nothing to the reader: %s\n", strings.Join(sorted(names), ", "))
	}
	return r, r.check()
}

// check finds separators that can't be told apart. That of keys may be any of the others, for it comes after them.
func (r *lineReader) check() error {
	separators := []struct{ name, text string }{
		{"headers.delimiter", r.headers}, {"headers.separator", r.header}, {"headers.key.separator", r.headerKey}, {"key.separator", r.key},
	}
	for i, s := range separators {
		if s.text == "" {
			return fmt.Errorf("%s may not be empty", s.name)
		}
		if r.hasMarker && s.text == r.nullMarker {
			return fmt.Errorf("null.marker and %s may not be equal", s.name)
		}
		for _, other := range separators[:i] {
			if s.name != "key.separator" && s.text == other.text {
				return fmt.Errorf("%s and %s may not be equal", other.name, s.name)
			}
		}
	}
	return nil
}

// next gives the next message, nil at the end of the input.
func (r *lineReader) next() (*kgo.Record, error) {
	line, err := r.line()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	r.number++
	record := &kgo.Record{}
	rest := line
	if r.parseHeaders {
		headers, after, ok, err := r.cut(rest, r.headers, "headers delimiter", line)
		if err != nil {
			return nil, err
		}
		if ok {
			rest = after
			if record.Headers, err = r.splitHeaders(headers); err != nil {
				return nil, err
			}
		}
	}
	if r.parseKey {
		key, after, ok, err := r.cut(rest, r.key, "key separator", line)
		if err != nil {
			return nil, err
		}
		if ok {
			rest, record.Key = after, r.bytes(key)
		}
	}
	record.Value = r.bytes(rest)
	return record, nil
}

// line reads a line without its end, which is "\n", "\r\n" or a lone "\r".
func (r *lineReader) line() (string, error) {
	var b strings.Builder
	some := false
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && some {
				return b.String(), nil
			}
			return "", err
		}
		some = true
		switch {
		case c == '\n':
			return b.String(), nil
		case c == '\r':
			if next, err := r.in.Peek(1); err == nil && next[0] == '\n' {
				_, _ = r.in.Discard(1)
			}
			return b.String(), nil
		case b.Len() == maxLine:
			return "", fmt.Errorf("line %d is longer than %d bytes", r.number+1, maxLine)
		}
		b.WriteByte(c)
	}
}

func (r *lineReader) cut(text, separator, what, line string) (before, after string, ok bool, err error) {
	before, after, ok = strings.Cut(text, separator)
	if !ok && !r.ignoreError {
		return "", "", false, fmt.Errorf("No %s found on line number %d: '%s'", what, r.number, line) //nolint:staticcheck // Kafka's words
	}
	return before, after, ok, nil
}

func (r *lineReader) bytes(text string) []byte {
	if r.hasMarker && text == r.nullMarker {
		return nil
	}
	return []byte(text)
}

func (r *lineReader) splitHeaders(text string) ([]kgo.RecordHeader, error) {
	if r.hasMarker && text == r.nullMarker {
		return nil, nil
	}
	var headers []kgo.RecordHeader
	for _, pair := range strings.Split(text, r.header) {
		key, value, ok := strings.Cut(pair, r.headerKey)
		switch {
		case !ok && r.ignoreError:
			headers = append(headers, kgo.RecordHeader{Key: pair})
			continue
		case !ok:
			return nil, fmt.Errorf("No header key separator found in pair '%s' on line number %d", pair, r.number) //nolint:staticcheck // Kafka's words
		case r.hasMarker && key == r.nullMarker:
			return nil, fmt.Errorf("Header keys should not be equal to the null marker '%s' as they can't be null", r.nullMarker) //nolint:staticcheck // Kafka's words
		}
		headers = append(headers, kgo.RecordHeader{Key: key, Value: r.bytes(value)})
	}
	return headers, nil
}
