package compare

import (
	"bytes"
	"fmt"
	"os"
)

// Part is which part of a document a run writes: that of a whole run, or that of clusters.
type Part string

// The parts of a document.
const (
	PartTable    Part = "comparison"
	PartClusters Part = "clusters"
)

func (p Part) begin() []byte {
	return []byte("<!-- " + string(p) + ": written by go run ./cmd/dev compare -->\n")
}
func (p Part) end() []byte { return []byte("<!-- end of " + string(p) + " -->\n") }

// Write puts text into a part of a Markdown document, in the place of what is there. The document has to have the part, an
// HTML comment before it and one behind.
func (p Part) Write(file, text string) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(document, p.begin())
	_, after, ended := bytes.Cut(rest, p.end())
	if !found || !ended {
		return fmt.Errorf("%s: it has no place for the results, which is between the lines\n%s%s", file, p.begin(), p.end())
	}
	return os.WriteFile(file, bytes.Join([][]byte{before, p.begin(), []byte("\n" + text + "\n"), p.end(), after}, nil), 0o644)
}
