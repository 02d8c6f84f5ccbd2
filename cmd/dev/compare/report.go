package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// againstKafka is what most targets are ratios to.
const againstKafka = "Kafka"

// Target is what is good enough.
type Target struct {
	Limit   float64 // at most
	Against string  // what the limit is a ratio to: againstKafka, or a limit of the machine; "" when it is absolute
	AtLeast bool    // more is better: at least Limit
}

// atMost and atLeast are targets that are ratios to Kafka's figure.
func atMost(limit float64) Target  { return Target{Limit: limit, Against: againstKafka} }
func atLeast(limit float64) Target { return Target{Limit: limit, Against: againstKafka, AtLeast: true} }

// None says whether there is no target: the figure is told, and nothing is asked of it.
func (t Target) None() bool { return t == Target{} }

func (t Target) String() string {
	if t.None() {
		return ""
	}
	sign, of := "≤", ""
	if t.AtLeast {
		sign = "≥"
	}
	if t.Against != "" {
		of = " of " + t.Against
	}
	return fmt.Sprintf("%s %.3g%s", sign, t.Limit, of)
}

// Figure is one line of the report: a row's figure for one broker. There is a sample a round.
type Figure struct {
	Name   string // of the row
	Broker string // "barnabas mmap"
	Unit   string
	Target Target
	Ours   []float64
	Theirs []float64 // Kafka's; empty when it isn't measured
	// Reference is what the target is a ratio to when that isn't Kafka's figure.
	Reference []float64
	// Bound is what the machine alone costs for the same, empty when nothing is known.
	Bound []float64
}

// reference is what the target is a ratio to.
func (f *Figure) reference() []float64 {
	if f.Target.Against == againstKafka {
		return f.Theirs
	}
	return f.Reference
}

// Ratios are those of our samples to what they are held against, round by round, ascending. Rounds in which there was
// nothing to be held against are left out.
func (f *Figure) Ratios() []float64 { return ratios(f.Ours, f.reference()) }

func ratios(ours, theirs []float64) []float64 {
	var all []float64
	for i := range min(len(ours), len(theirs)) {
		if theirs[i] > 0 {
			all = append(all, ours[i]/theirs[i])
		}
	}
	slices.Sort(all)
	return all
}

// Met says whether the target is met, if there is one. A ratio to nothing never is, and nothing measured never does.
func (f *Figure) Met() bool {
	if f.Target.None() {
		return true
	}
	values := f.Ours
	if f.Target.Against != "" {
		values = f.Ratios()
	}
	if len(values) == 0 {
		return false
	}
	if f.Target.AtLeast {
		return median(values) >= f.Target.Limit
	}
	return median(values) <= f.Target.Limit
}

// Lost says whether Kafka is better.
func (f *Figure) Lost() bool {
	all := ratios(f.Ours, f.Theirs)
	if len(all) == 0 {
		return false
	}
	if f.Target.AtLeast {
		return median(all) < 1
	}
	return median(all) > 1
}

// result is the verdict in words.
func (f *Figure) result() string {
	switch {
	case f.Target.None() && f.Lost():
		return "we lose here"
	case f.Target.None():
		return ""
	case f.Lost() && f.Met():
		return "pass, but we lose here"
	case f.Lost():
		return "MISSED: we lose here"
	case !f.Met():
		return "MISSED"
	}
	return "pass"
}

// share is how much of what each broker takes the machine alone would take: of ours, and of Kafka's.
func (f *Figure) share() string {
	if len(f.Bound) == 0 {
		return ""
	}
	of := func(samples []float64) string {
		all := ratios(f.Bound, samples)
		if f.Target.AtLeast {
			all = ratios(samples, f.Bound)
		}
		if len(all) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f %%", 100*median(all))
	}
	return of(f.Ours) + " / " + of(f.Theirs)
}

// Report is what a comparison came to.
type Report struct {
	Figures []Figure
	Limits  []Limit
	Failed  []string // what could not be measured, and why
}

// Limit is what one thing costs on this machine without any broker.
type Limit struct {
	Name      string
	SpeedUnit string
	CostUnit  string
	Speed     []float64
	Cost      []float64
}

// Missed counts the figures that miss their targets.
func (r *Report) Missed() int {
	n := 0
	for i := range r.Figures {
		if !r.Figures[i].Met() {
			n++
		}
	}
	return n
}

// lost names where Kafka is better.
func (r *Report) lost() []string {
	var names []string
	for i := range r.Figures {
		if f := &r.Figures[i]; f.Lost() {
			names = append(names, fmt.Sprintf("%s (%s, %s)", f.Name, f.Unit, f.Broker))
		}
	}
	return names
}

// verdict is the report in one or two sentences.
func (r *Report) verdict() string {
	s := fmt.Sprintf("%d of %d figures miss their targets.", r.Missed(), len(r.Figures))
	for _, why := range r.Failed {
		s += " Not measured: " + why + "."
	}
	if lost := r.lost(); len(lost) > 0 {
		return s + " Kafka is better at: " + strings.Join(lost, "; ") + "."
	}
	return s + " Kafka is better at none."
}

// String is the report for a screen.
func (r *Report) String() string {
	s := r.figures().Render() + "\n\n"
	if len(r.Limits) > 0 {
		s += r.limits().Render() + "\n\n"
	}
	return s + r.verdict()
}

// Markdown is the report as tables in Markdown.
func (r *Report) Markdown() string {
	s := r.figures().RenderMarkdown() + "\n\n" + r.verdict() + "\n"
	if len(r.Limits) > 0 {
		s += "\n" + r.limits().RenderMarkdown() + "\n"
	}
	return s
}

func (r *Report) figures() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"row", "broker", "unit", "barnabas", "kafka", "ratio", "min..max", "target", "limit's share", "result"})
	for i := range r.Figures {
		f := &r.Figures[i]
		kafka, ratio, spread := "", "", ""
		if len(f.Theirs) > 0 {
			kafka = number(median(f.Theirs))
		}
		all := f.Ratios()
		if f.Target.None() {
			all = ratios(f.Ours, f.Theirs)
		}
		switch {
		case len(all) > 0:
			ratio, spread = number(median(all)), number(all[0])+".."+number(all[len(all)-1])
		case len(f.Ours) > 0:
			spread = number(slices.Min(f.Ours)) + ".." + number(slices.Max(f.Ours))
		}
		t.AppendRow(table.Row{f.Name, f.Broker, f.Unit, number(median(f.Ours)), kafka, ratio, spread, f.Target.String(), f.share(), f.result()})
	}
	return t
}

func (r *Report) limits() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"limit of the machine", "speed", "cost", "min..max"})
	for _, l := range r.Limits {
		if len(l.Cost) > 0 {
			t.AppendRow(table.Row{l.Name, fmt.Sprintf("%.0f %s", median(l.Speed), l.SpeedUnit), number(median(l.Cost)) + " " + l.CostUnit, number(slices.Min(l.Cost)) + ".." + number(slices.Max(l.Cost))})
		}
	}
	return t
}

// number is one in three digits or more, never with an exponent.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

// median is the middle one, of an even number the mean of the two; 0 of none.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}
