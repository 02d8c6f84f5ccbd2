package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep JSON may nest.
const maxDepth = 1000

// lexer reads JSON in one pass and hands out parts of it as they stand, so that what is embedded keeps its text, above
// all its numbers. It checks all that it passes over, UTF-8 apart, which the caller checks at once for the whole.
type lexer struct {
	b     []byte
	i     int
	depth int
}

// malformed is the answer to what isn't JSON.
func (l *lexer) malformed(what string) error {
	return fail(400, "Malformed JSON at byte %d: %s.", l.i, what)
}

func (l *lexer) space() {
	for l.i < len(l.b) {
		switch l.b[l.i] {
		case ' ', '\t', '\n', '\r':
			l.i++
		default:
			return
		}
	}
}

// peek gives the first byte of the next token, 0 at the end.
func (l *lexer) peek() byte {
	l.space()
	if l.i == len(l.b) {
		return 0
	}
	return l.b[l.i]
}

// end sees that nothing follows.
func (l *lexer) end() error {
	if l.peek(); l.i < len(l.b) {
		return l.malformed("more after the end of the value")
	}
	return nil
}

// null passes over a null, if it is one.
func (l *lexer) null() bool {
	if l.peek() == 'n' && len(l.b)-l.i >= 4 && string(l.b[l.i:l.i+4]) == "null" {
		l.i += 4
		return true
	}
	return false
}

// object calls member for each key, which must read the value. want names what is expected, for the error.
func (l *lexer) object(want string, member func(key string) error) error {
	if err := l.open('{', want); err != nil {
		return err
	}
	if l.peek() == '}' {
		return l.shut()
	}
	for {
		if l.peek() != '"' {
			return l.malformed("want a key")
		}
		key, err := l.text()
		if err != nil {
			return err
		}
		if l.peek() != ':' {
			return l.malformed(`want ":"`)
		}
		l.i++
		if err := member(string(key)); err != nil {
			return err
		}
		switch l.peek() {
		case ',':
			l.i++
		case '}':
			return l.shut()
		default:
			return l.malformed(`want "," or "}"`)
		}
	}
}

// array calls element for each, which must read it.
func (l *lexer) array(want string, element func() error) error {
	if err := l.open('[', want); err != nil {
		return err
	}
	if l.peek() == ']' {
		return l.shut()
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch l.peek() {
		case ',':
			l.i++
		case ']':
			return l.shut()
		default:
			return l.malformed(`want "," or "]"`)
		}
	}
}

func (l *lexer) open(bracket byte, want string) error {
	if l.peek() != bracket {
		return l.unlike(want)
	}
	if l.depth++; l.depth > maxDepth {
		return l.malformed("nested too deeply")
	}
	l.i++
	return nil
}

func (l *lexer) shut() error {
	l.depth--
	l.i++
	return nil
}

// unlike is the answer to a value of another kind than is wanted, or to none.
func (l *lexer) unlike(want string) error {
	if _, err := l.raw(); err != nil {
		return err
	}
	return fail(422, "want %s", want)
}

// raw passes over one value of any kind and gives its text as it stands.
func (l *lexer) raw() ([]byte, error) {
	first := l.peek()
	start := l.i
	var err error
	switch first {
	case '{':
		err = l.object("", func(string) error { _, err := l.raw(); return err })
	case '[':
		err = l.array("", func() error { _, err := l.raw(); return err })
	case '"':
		_, err = l.scanText()
	case 't':
		err = l.word("true")
	case 'f':
		err = l.word("false")
	case 'n':
		err = l.word("null")
	case 0:
		err = l.malformed("it ends too early")
	default:
		err = l.number()
	}
	return l.b[start:l.i], err
}

func (l *lexer) word(w string) error {
	if len(l.b)-l.i < len(w) || string(l.b[l.i:l.i+len(w)]) != w {
		return l.malformed("want a value")
	}
	l.i += len(w)
	return nil
}

func (l *lexer) digits() (n int) {
	for l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '9' {
		l.i++
		n++
	}
	return n
}

func (l *lexer) at(c byte) bool { return l.i < len(l.b) && l.b[l.i] == c }

func (l *lexer) number() error {
	if l.at('-') {
		l.i++
	}
	if l.at('0') {
		l.i++
	} else if l.digits() == 0 {
		return l.malformed("want a value")
	}
	if l.at('.') {
		l.i++
		if l.digits() == 0 {
			return l.malformed("want digits after the point")
		}
	}
	if l.at('e') || l.at('E') {
		l.i++
		if l.at('+') || l.at('-') {
			l.i++
		}
		if l.digits() == 0 {
			return l.malformed("want digits in the exponent")
		}
	}
	return nil
}

// scanText passes over a string, and says whether there is an escape in it.
func (l *lexer) scanText() (escaped bool, err error) {
	l.i++ // the quote
	for l.i < len(l.b) {
		switch c := l.b[l.i]; {
		case c == '"':
			l.i++
			return escaped, nil
		case c < ' ':
			return escaped, l.malformed("a control character in a string")
		case c == '\\':
			escaped = true
			if err := l.escape(); err != nil {
				return escaped, err
			}
		default:
			l.i++
		}
	}
	return escaped, l.malformed("it ends within a string")
}

func (l *lexer) escape() error {
	l.i++
	if l.i == len(l.b) {
		return l.malformed("it ends within a string")
	}
	switch l.b[l.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		l.i++
		return nil
	case 'u':
		l.i++
		for range 4 {
			if l.i == len(l.b) || !hex(l.b[l.i]) {
				return l.malformed(`want four hexadecimal digits after "\u"`)
			}
			l.i++
		}
		return nil
	}
	return l.malformed("no such escape")
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// text reads a string. The bytes are part of the input unless something was escaped.
func (l *lexer) text() ([]byte, error) {
	if l.peek() != '"' {
		return nil, l.unlike("a string")
	}
	start := l.i
	escaped, err := l.scanText()
	if err != nil || !escaped {
		return l.b[start+1 : max(start+1, l.i-1)], err
	}
	var s string
	if err := json.Unmarshal(l.b[start:l.i], &s); err != nil {
		return nil, l.malformed(err.Error())
	}
	return []byte(s), nil
}

// integer reads a whole number that fits bits.
func (l *lexer) integer(bits int) (int64, error) {
	raw, err := l.raw()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, bits)
	if f, ok := whole(string(raw)); err != nil && ok {
		n, err = strconv.ParseInt(strconv.FormatInt(f, 10), 10, bits)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fail(422, "the number %.40s is too large", raw)
	case err != nil:
		return 0, fail(422, "want a whole number")
	}
	return n, nil
}

// inside puts where something is before what is wrong with it.
func inside(err error, format string, args ...any) error {
	var own *Error
	if errors.As(err, &own) && own.Code != 400 {
		return fail(own.Code, "%s: %s", fmt.Sprintf(format, args...), own.Message)
	}
	return err
}

// splitter finds where a JSON object ends while its bytes come in, looking at each byte once.
type splitter struct {
	depth         int
	text, escaped bool
}

// feed looks at more bytes of the object, which begin with its "{" at first. It returns how many belong to it, and
// whether it is complete. What it takes for complete may still be malformed.
func (s *splitter) feed(b []byte) (n int, complete bool) {
	for i, c := range b {
		switch {
		case s.escaped:
			s.escaped = false
		case s.text:
			switch c {
			case '\\':
				s.escaped = true
			case '"':
				s.text = false
			}
		case c == '"':
			s.text = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth <= 0 {
				*s = splitter{}
				return i + 1, true
			}
		}
	}
	return len(b), false
}

// validJSON says whether data is one JSON value in UTF-8.
func validJSON(data []byte) bool {
	l := lexer{b: data}
	_, err := l.raw()
	return err == nil && l.end() == nil && utf8.Valid(data)
}
