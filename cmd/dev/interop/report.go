package interop

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

// Report is what the suite found out about one broker.
type Report struct {
	Target  string
	Results []probe.Result // ordered by client
}

// Counts are the numbers of checks that passed and failed.
func (r Report) Counts() (passed, failed int) {
	for _, c := range r.Results {
		if c.OK {
			passed++
		} else {
			failed++
		}
	}
	return passed, failed
}

// String is the table of clients, below it each failed check.
func (r Report) String() string {
	type row struct {
		version        string
		passed, failed int
	}
	rows := map[string]*row{}
	var order []string
	var failures strings.Builder
	for _, c := range r.Results {
		if rows[c.Client] == nil {
			rows[c.Client] = &row{}
			order = append(order, c.Client)
		}
		w := rows[c.Client]
		if c.Version != "" {
			w.version = c.Version
		}
		if c.OK {
			w.passed++
			continue
		}
		w.failed++
		fmt.Fprintf(&failures, "FAILED %s: %s: %s\n", c.Client, c.Check, c.Detail)
	}
	t := table.NewWriter()
	t.SetTitle("Clients against " + r.Target)
	t.AppendHeader(table.Row{"client", "version", "passed", "failed"})
	for _, name := range order {
		w := rows[name]
		t.AppendRow(table.Row{name, w.version, w.passed, w.failed})
	}
	return "\n" + t.Render() + "\n" + failures.String()
}
