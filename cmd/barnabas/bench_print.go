package main

import (
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
)

// printResults prints a table of throughput and cost, and one of delays.
func printResults(a *app, results []*bench.Result) {
	number := func(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
	cost := false
	for _, r := range results {
		cost = cost || r.Broker != nil
	}
	t := newTable()
	header := table.Row{"load", "records/s", "MiB/s", "req/s", "own CPU-s", "own CPU-s/GB", "own CPU µs/req"}
	if cost {
		header = append(header, "broker CPU-s/GB", "broker CPU µs/req", "RSS MiB", "RssAnon MiB")
	}
	t.AppendHeader(header)
	for _, r := range results {
		row := table.Row{loadName(r), number(r.RecordsPerSecond(), 0), number(r.MiBPerSecond(), 1), number(r.RequestsPerSecond(), 0),
			number(r.ClientCPU, 2), number(r.ClientCPUPerGB(), 3), number(r.ClientCPUPerRequest(), 1)}
		if r.Broker != nil {
			row = append(row, number(r.CPUPerGB(), 3), number(r.CPUPerRequest(), 1), r.Broker.RSS>>20, r.Broker.RSSAnon>>20)
		}
		t.AppendRow(row)
	}
	fmt.Fprintln(a.out, t.Render())

	t = newTable()
	t.AppendHeader(table.Row{"delay in ms", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"})
	delays := func(name string, l *bench.Latency) {
		if l == nil {
			return
		}
		row := table.Row{name}
		for _, x := range []float64{l.Mean, l.P50, l.P90, l.P99, l.P999, l.P9999, l.Max} {
			row = append(row, number(x/1e3, 3))
		}
		t.AppendRow(row)
	}
	for _, r := range results {
		delays(loadName(r), &r.Latency)
		delays("  of which sent late", r.Late)
		delays("  acknowledgement", r.Ack)
	}
	fmt.Fprintln(a.out, t.Render())
	for _, r := range results {
		if r.Unsent > 0 {
			fmt.Fprintf(a.out, "%s: %d records were due and could not be sent in time: more --connections or --in-flight, or a lower --rate\n", loadName(r), r.Unsent)
		}
	}
}

// loadName names a result, by its rate where it has one.
func loadName(r *bench.Result) string {
	if r.Rate > 0 {
		return fmt.Sprintf("%s at %.0f/s", r.Name, r.Rate)
	}
	return r.Name
}
