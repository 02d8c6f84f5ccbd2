package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/record"
)

// World is what a tool has to do with: where it reads and prints, and what only the program knows.
type World struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool   // In is a terminal, on which the producer asks for each line
	Version  string // what --version prints
	// Codecs gives codecs that are started, and how to stop them. Only kafka-dump-log asks.
	Codecs func(context.Context) (record.Codecs, func() error, error)
}

// Tool is one of Kafka's tools.
type Tool struct {
	Name    string // without ".sh"
	About   string // one sentence
	options []option
	run     func(context.Context, *call) error
}

// Tools lists all tools, by name.
func Tools() []Tool {
	return []Tool{configsTool(), consumerTool(), producerTool(), groupsTool(), dumpTool(), offsetsTool(), topicsTool()}
}

// Find finds a tool by the name of a program: maybe with a path before it, maybe with ".sh" behind.
func Find(program string) (Tool, bool) {
	name := strings.TrimSuffix(filepath.Base(program), ".sh")
	tools := Tools()
	at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if at < 0 {
		return Tool{}, false
	}
	return tools[at], true
}

// call is one call of a tool.
type call struct {
	World
	given
}

// The errors that end a tool otherwise than with its message and code 1.
type (
	usageError struct{ reason string } // the command line is wrong: its flags are shown
	codeError  int                     // everything is said
)

func (e usageError) Error() string { return e.reason }
func (e codeError) Error() string  { return fmt.Sprintf("exit code %d", int(e)) }

func misused(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// Run runs the tool and gives the code that its process is to exit with: as with Kafka, 1 whatever is wrong.
func (t Tool) Run(ctx context.Context, w World, args []string) int {
	options := append(slices.Clone(t.options), option{name: "help", about: "Print usage information."}, option{name: "version", about: "Display the version."})
	given, err := parse(options, args)
	if err == nil {
		switch {
		case len(args) == 0 || given.has("help"):
			t.usage(w.Err, t.About, options)
			if len(args) == 0 {
				return 1
			}
			return 0
		case given.has("version"):
			fmt.Fprintln(w.Out, w.Version)
			return 0
		}
		if len(given.rest) > 0 {
			fmt.Fprintf(w.Err, "WARN: these arguments belong to no option and mean nothing: %s\n", strings.Join(given.rest, " "))
		}
		err = t.run(ctx, &call{World: w, given: given})
	}
	var usage usageError
	var code codeError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		t.usage(w.Err, usage.reason, options)
	default:
		fmt.Fprintln(w.Err, err)
	}
	return 1
}

// usage prints the options in two columns.
func (t Tool) usage(w io.Writer, reason string, options []option) {
	fmt.Fprintln(w, reason)
	slices.SortFunc(options, func(x, y option) int { return strings.Compare(x.name, y.name) })
	fmt.Fprintf(w, "\n%-44s %s\n%-44s %s\n", "Option", "Description", "------", "-----------")
	for _, o := range options {
		left := "--" + o.name
		switch {
		case o.optional:
			left += " [" + o.arg + "]"
		case o.arg != "":
			left += " <" + o.arg + ">"
		}
		about := o.about
		if o.preset != "" {
			about += fmt.Sprintf(" (default: %s)", o.preset)
		}
		fmt.Fprintf(w, "%-44s %s\n", left, about)
	}
}

// sorted puts strings in order, where they lie.
func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
