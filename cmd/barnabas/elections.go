package main

import (
	"fmt"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// electionsKey is the key of the YAML file below which the options of several coordinations stand, so that `election` is a name alone and
// decides which of them the broker is coordinated by. The options of the others are checked all the same.
const electionsKey = "elections"

// chooseElection chooses the coordination.
func chooseElection(root config.Section, registry plugin.Registry[election.Settings, election.Coordination]) (chosen plugin.Choice[election.Settings, election.Coordination], err error) {
	named, given := root.Sub(electionsKey)
	if !given {
		return choose(root, registry)
	}
	if err := named.Only(registry.Names()...); err != nil {
		return chosen, err
	}
	var errs []error
	collect := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	section, decided := root.Sub(registry.Role())
	name, alone := section.Scalar()
	for _, one := range named.Keys() {
		options, _ := named.Sub(one)
		choice, err := registry.With(one, options)
		collect(err)
		if one == name {
			chosen = choice
		}
	}
	switch _, there := named.Sub(name); {
	case !decided:
		collect(named.Wrap(fmt.Errorf("want %s: NAME beside it, which decides between them", registry.Role())))
	case !alone:
		collect(section.Wrap(fmt.Errorf("want a name alone: the options stand under %s", electionsKey)))
	case !there:
		chosen, err = choose(root, registry)
		collect(err)
	}
	return chosen, config.Join(errs...)
}

// electionOptions is the section in which the options of the chosen coordination stand: its place says where, even if nobody has written any.
// Nothing was chosen when ok is false.
func electionOptions(root config.Section) (name string, options config.Section, ok bool) {
	section, _ := root.Sub("election")
	name, options, err := section.Choice()
	if err != nil {
		return "", config.Section{}, false
	}
	named, _ := root.Sub(electionsKey)
	if below, there := named.Sub(name); there {
		options = below
	}
	return name, options, true
}
