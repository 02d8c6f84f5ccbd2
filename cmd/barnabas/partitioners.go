package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// partitionersKey is the key of the YAML file below which partitioners get names of their own.
const partitionersKey = "partitioners"

// partitionerRegistry holds the implementations of partitioners.
type partitionerRegistry = plugin.Registry[partitioner.Settings, partitioner.Partitioner]

// namedPartitioner is a partitioner with its options under the name that topics call it by. It is a broker.Maker.
type namedPartitioner struct {
	name string
	plugin.Choice[partitioner.Settings, partitioner.Partitioner]
}

// Name is the name of this one; that of its implementation is the choice's.
func (n namedPartitioner) Name() string { return n.name }

// describe gives the name, and what is behind it where that says more.
func (n namedPartitioner) describe() string {
	if n.name == n.Choice.Name() {
		return describe(n.Choice)
	}
	return n.name + ": " + describe(n.Choice)
}

// choosePartitioners lists all partitioners that topics may declare: those that the configuration names, and each implementation
// under its own name, if it can do without options. The first is the one that serves topics which declare none: an implementation
// that `partitioner` chooses, as in other roles, or one of the configuration's names.
func choosePartitioners(root config.Section, registry partitionerRegistry) ([]namedPartitioner, error) {
	all, err := readPartitioners(root, registry)
	named := func(name string) int {
		return slices.IndexFunc(all, func(n namedPartitioner) bool { return n.name == name })
	}
	section, _ := root.Sub(registry.Role())
	alone, _ := section.Scalar()
	if at := named(alone); at >= 0 {
		first := all[at]
		all = slices.Insert(slices.Delete(all, at, at+1), 0, first)
	} else {
		choice, wrong := choose(root, registry)
		if wrong != nil {
			return nil, config.Join(err, wrong)
		}
		if at := named(choice.Name()); at >= 0 {
			return nil, config.Join(err, section.Wrap(fmt.Errorf("%s stands under %s as well: name it alone here", choice.Name(), partitionersKey)))
		}
		all = slices.Insert(all, 0, namedPartitioner{choice.Name(), choice})
	}
	for _, name := range registry.Names() {
		if named(name) >= 0 {
			continue
		}
		if choice, err := registry.Default(name); err == nil { // else it needs options, and so has to be named to be there
			all = append(all, namedPartitioner{name, choice})
		}
	}
	return all, err
}

// readPartitioners reads what the configuration names.
func readPartitioners(root config.Section, registry partitionerRegistry) ([]namedPartitioner, error) {
	section, given := root.Sub(partitionersKey)
	if !given {
		return nil, nil
	}
	if err := section.Only(section.Keys()...); err != nil { // it isn't a mapping
		return nil, err
	}
	var all []namedPartitioner
	var errs []error
	for _, name := range section.Keys() {
		sub, _ := section.Sub(name)
		choice, err := registry.Choose(sub)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case name == "" || strings.ContainsAny(name, " \t\n,"):
			errs = append(errs, sub.Wrap(fmt.Errorf("%q is no name: want one without blanks and commas", name)))
		case name != choice.Name() && slices.Contains(registry.Names(), name):
			errs = append(errs, sub.Wrap(fmt.Errorf("%s is the name of an implementation, and can't stand for another: %s", name, choice.Name())))
		}
		all = append(all, namedPartitioner{name, choice})
	}
	return all, config.Join(errs...)
}
