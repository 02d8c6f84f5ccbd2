package inspect

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is something about a file that is worth telling.
type Finding struct {
	// File is the path, as it came from the caller or from the directory that was read.
	File string
	// Position is the byte that it is about, -1 when it is about the file as a whole.
	Position int64
	// Harmless says that nothing is lost: a broker that is running or died leaves such things behind, and mends them when it
	// starts.
	Harmless bool
	// Text says what it is.
	Text string
}

// String has file, position and text, and whether it is harmless.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Position >= 0 {
		fmt.Fprintf(&b, " at %d", f.Position)
	}
	b.WriteString(": ")
	if f.Harmless {
		b.WriteString("harmless: ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// MaxFindings is how many findings about one file are listed: a file of another format would have millions.
const MaxFindings = 20

// Report is what a verification saw.
type Report struct {
	Partitions, Segments, Batches int
	OffsetEntries, TimeEntries    int // of indexes
	Records                       int // only when they were read
	Findings                      []Finding

	file    string // that the last finding was about
	of      int    // how many it has had
	skipped int    // how many faults weren't listed
}

// Faults counts the findings that aren't harmless, also those that aren't listed.
func (r *Report) Faults() int {
	n := r.skipped
	for _, f := range r.Findings {
		if !f.Harmless {
			n++
		}
	}
	return n
}

// Unlisted is the number of faults that were counted only, since their files have so many.
func (r *Report) Unlisted() int { return r.skipped }

func (r *Report) add(f Finding) {
	if f.File != r.file {
		r.file, r.of = f.File, 0
	}
	if r.of++; r.of > MaxFindings {
		if !f.Harmless {
			r.skipped++
		}
		return
	}
	r.Findings = append(r.Findings, f)
}

func (r *Report) fault(file string, position int64, format string, args ...any) {
	r.add(Finding{File: file, Position: position, Text: fmt.Sprintf(format, args...)})
}

func (r *Report) harmless(file string, position int64, format string, args ...any) {
	r.add(Finding{File: file, Position: position, Harmless: true, Text: fmt.Sprintf(format, args...)})
}

// sort puts the findings in the order of files and positions.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return int(min(max(a.Position-b.Position, -1), 1))
	})
}

// clip shortens what a hostile file may have put into a text.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
