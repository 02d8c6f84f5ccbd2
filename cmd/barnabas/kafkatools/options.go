package kafkatools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// option is a flag of a tool. Kafka's tools read theirs as the library jopt-simple does: "--name value" and "--name=value", with one
// dash or two, and any beginning of the name that is of no other option.
type option struct {
	name     string
	about    string
	arg      string // what its argument is; "" for none
	optional bool   // the argument may be missing
	many     bool   // it may be given again and again
	bits     int    // 32 and 64: the argument is such an integer
	preset   string // stands for the argument where the option isn't given
}

// given is what a command line says.
type given struct {
	options []option
	order   []string // the options as they came, by their full names
	values  map[string][]string
	rest    []string // arguments of no option
}

func parse(options []option, args []string) (given, error) {
	g := given{options: options, values: map[string][]string{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			g.rest = append(g.rest, args...)
			break
		}
		if !dashed(arg) {
			g.rest = append(g.rest, arg)
			continue
		}
		name, value, attached := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		o, err := lookup(options, name)
		if err != nil {
			return g, err
		}
		switch {
		case o.arg == "" && attached:
			return g, misused("Option %s takes no argument, and not %q", o.name, value)
		case o.arg == "", attached:
		case len(args) > 0 && (!o.optional || !dashed(args[0])):
			value, args = args[0], args[1:]
		case !o.optional:
			return g, misused("Option %s requires an argument", o.name)
		}
		if o.bits > 0 {
			if _, err := strconv.ParseInt(value, 10, o.bits); err != nil {
				return g, misused("Cannot parse argument '%s' of option %s", value, o.name)
			}
		}
		g.order = append(g.order, o.name)
		if o.arg == "" {
			g.values[o.name] = nil
			continue
		}
		if g.values[o.name] = append(g.values[o.name], value); len(g.values[o.name]) > 1 && !o.many {
			return g, misused("Found multiple arguments for option %s, but you asked for only one", o.name)
		}
	}
	return g, nil
}

func dashed(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// lookup finds an option by its name, or a beginning of it.
func lookup(options []option, name string) (option, error) {
	var found []option
	for _, o := range options {
		if o.name == name {
			return o, nil
		}
		if name != "" && strings.HasPrefix(o.name, name) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return option{}, misused("%s is not a recognized option", name)
	}
	names := make([]string, len(found))
	for i, o := range found {
		names[i] = "--" + o.name
	}
	slices.Sort(names)
	return option{}, misused("%s is not a recognized option: it may be %s", name, strings.Join(names, " or "))
}

// has says whether an option was given.
func (g given) has(name string) bool {
	_, ok := g.values[name]
	return ok
}

// count says how many of the options were given.
func (g given) count(names ...string) (n int) {
	for _, name := range names {
		if g.has(name) {
			n++
		}
	}
	return n
}

// text gives the argument of an option, else its preset.
func (g given) text(name string) string {
	if all := g.values[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	for _, o := range g.options {
		if o.name == name {
			return o.preset
		}
	}
	return ""
}

// number is text of an option with an integer, 0 where there is neither argument nor preset.
func (g given) number(name string) int64 {
	n, _ := strconv.ParseInt(g.text(name), 10, 64) // which parse has seen to
	return n
}

// require wants options.
func (g given) require(names ...string) error {
	for _, name := range names {
		if !g.has(name) {
			return misused("Missing required argument \"[%s]\"", name)
		}
	}
	return nil
}

// apart refuses an option together with others.
func (g given) apart(name string, others ...string) error {
	if !g.has(name) {
		return nil
	}
	for _, other := range others {
		if g.has(other) {
			return misused("Option \"[%s]\" can't be used with option \"[%s]\"", name, other)
		}
	}
	return nil
}

// exactlyOne wants one of the actions.
func (g given) exactlyOne(actions ...string) (string, error) {
	found := ""
	if g.count(actions...) == 1 {
		for _, a := range actions {
			if g.has(a) {
				found = a
			}
		}
		return found, nil
	}
	return "", misused("Command must include exactly one action: --%s", strings.Join(actions, ", --"))
}

// pairs reads arguments of the form NAME=VALUE. Without "=" the value is empty, as with Kafka.
func pairs(args []string) map[string]string {
	m := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		m[name] = value
	}
	return m
}

// padded lays cells out in columns of at least so many characters, the last as it is. As with Kafka's tools, what is wider moves the rest.
func padded(widths []int, cells ...any) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i < len(widths) {
			fmt.Fprintf(&b, "%-*v", widths[i], cell)
		} else {
			fmt.Fprint(&b, cell)
		}
	}
	return b.String()
}
