package compare

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Figure is one line of the report.
type Figure struct {
	Name    string
	Broker  string // "barnabas mmap"
	Unit    string
	Ours    float64
	Theirs  float64 // Kafka's, 0 when it isn't measured
	Limit   float64 // what Ours, or its ratio to Theirs, may be at most; or with AtLeast at least
	OfRatio bool
	AtLeast bool // Limit is what it must be at least: more is better
}

// Ratio is Ours to Theirs, 0 when there are none.
func (f *Figure) Ratio() float64 {
	if f.Theirs == 0 {
		return 0
	}
	return f.Ours / f.Theirs
}

// Met says whether the target is met. A ratio to nothing never is.
func (f *Figure) Met() bool {
	value := f.Ours
	if f.OfRatio {
		if f.Theirs <= 0 {
			return false
		}
		value = f.Ratio()
	}
	if f.AtLeast {
		return value >= f.Limit
	}
	return value <= f.Limit
}

// Report is what a comparison came to.
type Report []Figure

// Missed counts the figures that miss their targets.
func (r Report) Missed() int {
	n := 0
	for i := range r {
		if !r[i].Met() {
			n++
		}
	}
	return n
}

// String is the report as a table.
func (r Report) String() string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"figure", "broker", "unit", "barnabas", "kafka", "ratio", "target", "result"})
	for i := range r {
		f := &r[i]
		theirs, ratio, target, result := "", "", fmt.Sprintf("≤ %g", f.Limit), "pass"
		if f.AtLeast {
			target = fmt.Sprintf("≥ %g", f.Limit)
		}
		if f.Theirs != 0 {
			theirs, ratio = fmt.Sprintf("%.3g", f.Theirs), fmt.Sprintf("%.3f", f.Ratio())
		}
		if f.OfRatio {
			target += " of Kafka's"
		}
		if !f.Met() {
			result = "MISSED"
		}
		t.AppendRow(table.Row{f.Name, f.Broker, f.Unit, fmt.Sprintf("%.3g", f.Ours), theirs, ratio, target, result})
	}
	return t.Render()
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
