package task

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// TestLog reads the events that go tool test2json prints: it counts results, and passes on what failed tests said. It is
// written to by one goroutine.
type TestLog struct {
	Out io.Writer

	line                    []byte
	said                    map[string]*Tail // by test, until it has ended
	passed, failed, skipped int
}

// testEvent is a line of test2json.
type testEvent struct {
	Action, Test, Output string
}

// Write takes output in pieces of any size.
func (l *TestLog) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.line = append(l.line, p...)
			break
		}
		l.take(append(l.line, p[:i]...))
		l.line, p = l.line[:0], p[i+1:]
	}
	return n, nil
}

func (l *TestLog) take(line []byte) {
	var e testEvent
	if err := json.Unmarshal(line, &e); err != nil {
		_, _ = l.Out.Write(append(line, '\n')) // not an event: something went wrong before the tests
		return
	}
	top := e.Test != "" && !strings.Contains(e.Test, "/")
	switch e.Action {
	case "output":
		if l.said == nil {
			l.said = map[string]*Tail{}
		}
		if l.said[e.Test] == nil {
			l.said[e.Test] = &Tail{Max: tailBytes}
		}
		_, _ = l.said[e.Test].Write([]byte(e.Output))
		return
	case "pass":
		if top {
			l.passed++
		}
	case "skip":
		if top {
			l.skipped++
		}
	case "fail":
		if top {
			l.failed++
		}
		l.show(e.Test)
	default:
		return
	}
	delete(l.said, e.Test)
}

func (l *TestLog) show(test string) {
	if said := l.said[test]; said != nil {
		_, _ = io.WriteString(l.Out, said.String())
	}
}

// Counts is how many tests (not sub-tests) ended how.
func (l *TestLog) Counts() (passed, failed, skipped int) {
	return l.passed, l.failed, l.skipped
}
