package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// printRows prints pairs in two columns.
func printRows(w io.Writer, rows [][2]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	return t.Flush()
}
