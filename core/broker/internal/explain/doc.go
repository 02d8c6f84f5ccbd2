// Package explain says why things are as they are: why a group rebalanced, why a partition is under-replicated or has the leader that it
// has, why a broker isn't ready. It is pure: what is known now and what the journal remembers go in, sentences and their facts come out.
//
// A broker explains from what it knows itself. Where another knows more, the coordinator of a group say, or the leader of a partition,
// the explanation names it: asking several brokers is for whoever asks.
//
// What isn't its business: finding the facts (core/broker), remembering (package journal), and HTTP.
package explain

import (
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// Explanation is an answer to why.
type Explanation struct {
	About  string    `json:"about"`  // as journal.Subject writes it
	Broker int32     `json:"broker"` // who explains
	At     time.Time `json:"at"`
	// Summary is the answer in one sentence.
	Summary string `json:"summary"`
	// Findings are what led to it, what matters most first.
	Findings []Finding `json:"findings"`
	// Ask are brokers that know more.
	Ask []Ask `json:"ask"`
	// State is what is true now, in a type for each kind of subject.
	State any `json:"state,omitempty"`
	// Events are what the journal of this broker remembers, the oldest first.
	Events []journal.Entry `json:"events"`
}

// Finding is one reason.
type Finding struct {
	Code string `json:"code"` // for programs; it stays when the text is reworded
	Text string `json:"text"`
}

// Ask is a broker that knows more.
type Ask struct {
	Broker int32  `json:"broker"`
	Why    string `json:"why"`
}

func (e *Explanation) find(code, format string, args ...any) {
	e.Findings = append(e.Findings, Finding{code, fmt.Sprintf(format, args...)})
}

func (e *Explanation) ask(broker int32, why string) {
	for _, a := range e.Ask {
		if a.Broker == broker {
			return
		}
	}
	if broker >= 0 && broker != e.Broker {
		e.Ask = append(e.Ask, Ask{broker, why})
	}
}

// begin makes an explanation whose lists are empty rather than missing.
func begin(about journal.Subject, broker int32, now time.Time, events []journal.Entry) Explanation {
	if events == nil {
		events = []journal.Entry{}
	}
	return Explanation{About: about.String(), Broker: broker, At: now, Findings: []Finding{}, Ask: []Ask{}, Events: events}
}

// ago is the time since then, in a precision that people want.
func ago(now, then time.Time) time.Duration { return round(max(now.Sub(then), 0)) }

func round(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond)
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
