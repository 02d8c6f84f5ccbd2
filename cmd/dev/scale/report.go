package scale

import (
	"fmt"
	"sync"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Figure is one line of the report.
type Figure struct {
	Scenario string
	Broker   string // "mmap", "sendfile", or the coordination of a cluster
	Name     string // what was measured, with its unit
	Value    float64
	Bound    float64 // what Value may be at most, or with AtLeast at least
	AtLeast  bool
}

// Met says whether the bound holds.
func (f *Figure) Met() bool {
	if f.AtLeast {
		return f.Value >= f.Bound
	}
	return f.Value <= f.Bound
}

// Report collects figures. Any goroutine may add to it.
type Report struct {
	mu      sync.Mutex
	figures []Figure
}

func (r *Report) add(f Figure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures = append(r.figures, f)
}

// Missed counts the figures that miss their bounds.
func (r *Report) Missed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i := range r.figures {
		if !r.figures[i].Met() {
			n++
		}
	}
	return n
}

// String is the report as a table.
func (r *Report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := table.NewWriter()
	t.AppendHeader(table.Row{"scenario", "broker", "figure", "value", "bound", "result"})
	for i := range r.figures {
		f := &r.figures[i]
		bound, result := fmt.Sprintf("≤ %.4g", f.Bound), "pass"
		if f.AtLeast {
			bound = fmt.Sprintf("≥ %.4g", f.Bound)
		}
		if !f.Met() {
			result = "MISSED"
		}
		t.AppendRow(table.Row{f.Scenario, f.Broker, f.Name, fmt.Sprintf("%.4g", f.Value), bound, result})
	}
	return t.Render()
}
