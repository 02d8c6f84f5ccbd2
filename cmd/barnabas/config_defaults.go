package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func newConfigDefaults(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "defaults",
		Short: "Print a configuration file with every key, at its default",
		Long: `Prints a file that has every key in it: what acts, commented out, at its default and with its meaning; and what Kafka has and
Barnabas does without, by the reason. It can be used as it is, and then sets nothing.`,
		Example: `  barnabas config defaults > barnabas.yaml`,
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write([]byte(allOptions(a.parts)))
			return err
		},
	}
}

// allOptions writes the file. A line that begins with "#" and no blank after it shows a default, as in all files that are shown to
// people; what has no default, and the implementations that a role doesn't have by default, stand behind "# ".
func allOptions(parts components) string {
	w := &optionWriter{}
	w.line(`# Every key of a configuration, at its default, as "barnabas config defaults" prints them. For an everyday file begin with standalone.yaml.`)
	w.line(`# A line that begins with "#" and no blank after it shows a default: take the "#" away to change the value. What has no default,`)
	w.line(`# or isn't what a role has by default, stands behind "# >": take that away.`)
	w.line("")
	w.line("broker:")
	for _, d := range kafka.BrokerDefinitions() {
		if d.NoEffect == "" {
			w.property(d)
		}
	}
	w.withoutEffect()
	all := reference(parts)
	for _, k := range all {
		if k.Scope == inFile && !strings.Contains(k.Name, ".") {
			w.section(all, k)
		}
	}
	return w.text.String()
}

// optionWriter writes the lines of the file.
type optionWriter struct{ text strings.Builder }

func (w *optionWriter) line(format string, args ...any) {
	fmt.Fprintf(&w.text, format+"\n", args...)
}

// comment writes a text in lines of a readable length.
func (w *optionWriter) comment(indent, text string) {
	const width = 130
	for _, line := range wrap(text, width-len(indent)) {
		w.line("%s# %s", indent, line)
	}
}

func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// shown are the marks before a key that isn't set.
const (
	atDefault = "#"
	optional  = "# >"
)

func (w *optionWriter) property(d kafka.Definition) {
	k := keyOf(d)
	text := d.Doc + " " + k.Type
	if k.Valid != "" {
		text += ": " + k.Valid
	}
	text += "."
	if d.Mode != kafka.ReadOnly {
		text += " It may change while brokers run."
	}
	w.comment("  ", text)
	mark, value := atDefault, d.Default
	if d.Null {
		mark = optional
	}
	switch d.Type {
	case kafka.Int, kafka.Short, kafka.Long, kafka.Double:
	default:
		value = scalar(value)
	}
	w.line("  %s%s: %s", mark, d.Name, value)
	w.line("")
}

// withoutEffect lists what Kafka has and nothing here reads, by the reason.
func (w *optionWriter) withoutEffect() {
	w.comment("  ", "The following properties of Apache Kafka are understood and have no effect. Of those that are marked with !, any other value than "+
		"the default is refused.")
	reasons := map[string][]string{}
	for _, d := range kafka.BrokerDefinitions() {
		if d.NoEffect == "" {
			continue
		}
		name := d.Name
		if d.Refused {
			name += "!"
		}
		reasons[d.NoEffect] = append(reasons[d.NoEffect], name)
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		w.line("  #")
		w.comment("  ", reason+":")
		w.comment("  ", "  "+strings.Join(reasons[reason], ", "))
	}
}

// section writes a top-level key with all that can stand below it.
func (w *optionWriter) section(all []key, k key) {
	w.line("")
	w.comment("", k.Meaning)
	switch k.Type {
	case choiceType:
		usual, _, _ := strings.Cut(k.Valid, ",")
		w.line("%s:", k.Name)
		w.choices(all, k, usual, "  ", "")
	case codecsType:
		w.line("%s%s: [%s]", atDefault, k.Name, k.Default)
		w.choices(all, k, "", "  ", "- ")
	case electionsType:
		w.line("%s%s: {IMPLEMENTATION: {OPTION: VALUE}}", optional, k.Name)
	case partitionersType:
		w.line("%s%s: {NAME: {IMPLEMENTATION: {OPTION: VALUE}}}", optional, k.Name)
	default:
		w.line("%s%s:", optional, k.Name)
		w.options(all, k.Name, "  ", optional)
	}
}

// choices writes the implementations of a role; usual is the one that is there by default.
func (w *optionWriter) choices(all []key, role key, usual, indent, item string) {
	for _, k := range all {
		name, ok := strings.CutPrefix(k.Name, role.Name+".")
		if !ok || k.Type != sectionType || strings.Contains(name, ".") {
			continue
		}
		w.comment(indent, name+": "+k.Meaning)
		options := optionsOf(all, k.Name)
		switch {
		case name == usual && len(options) > 0:
			w.line("%s%s:", indent, name)
			w.options(all, k.Name, indent+"  ", atDefault)
		case name == usual:
			w.line("%s%s: {}", indent, name)
		case len(options) > 0:
			w.line("%s%s%s%s:", indent, optional, item, name)
			w.options(all, k.Name, indent+strings.Repeat(" ", len(item))+"  ", optional)
		default:
			w.line("%s%s%s%s", indent, optional, item, name)
		}
	}
}

// options writes the options of an implementation, those of inner sections below the section's own key.
func (w *optionWriter) options(all []key, name, indent, mark string) {
	section := ""
	for _, o := range optionsOf(all, name) {
		inner, short := "", o.Name
		if at := strings.LastIndexByte(o.Name, '.'); at >= 0 {
			inner, short = o.Name[:at], o.Name[at+1:]
		}
		depth := indent
		for part := range strings.SplitSeq(inner, ".") {
			if inner == "" {
				break
			}
			if inner != section {
				w.line("%s%s%s:", depth, mark, part)
			}
			depth += "  "
		}
		section = inner
		w.comment(depth, o.Doc)
		m, value := mark, o.Default
		switch {
		case o.Type == textOption:
			value = scalar(value)
		case o.Type == sectionType:
			value = "{}"
		case value == "":
			m = optional // there is no default that could be written
		}
		w.line("%s%s%s: %s", depth, m, short, value)
	}
}
