package archtest

// Rule is one rule of the house.
type Rule struct {
	Name   string
	Reason string
	// Check lists what breaks the rule, and counts the places where the rule was applied: none means that it has
	// outlived what it was about.
	Check func(t *Tree) (faults []string, applied int)
}

// Rules lists all rules.
func Rules() []Rule {
	return []Rule{
		{
			Name:   "contracts stand alone",
			Reason: "whoever writes a plug-in reads one contract, and depends on nothing that changes for other reasons",
			Check:  contractImports,
		},
		{
			Name:   "core knows no implementation",
			Reason: "what core imports cannot be swapped by a key in a YAML file",
			Check:  coreImports,
		},
		{
			Name:   "implementations know contracts, not one another",
			Reason: "each can be taken out, or into another repository, without the others noticing",
			Check:  implementationImports,
		},
		{
			Name:   "one file names the implementations",
			Reason: "what is in the binary, or in a broker under test, can be read in one place",
			Check:  namedByComposers,
		},
		{
			Name:   "no init, no package-level mutable state",
			Reason: "two brokers in one process must not share anything, and nothing may happen by mere import",
			Check:  packageState,
		},
		{
			Name:   "knowledge in the broker runs one way",
			Reason: "coordinators and replicas can be read, tested and simulated without connections and requests",
			Check:  brokerImports,
		},
		{
			Name:   "deciders are state machines",
			Reason: "decisions without I/O, goroutines and clocks can be tested through thousands of random histories",
			Check:  deciders,
		},
		{
			Name:   "files and interfaces stay small",
			Reason: "a file is read in one sitting, and an interface is implemented in an afternoon",
			Check:  sizes,
		},
		{
			Name:   "the top level is the house",
			Reason: "the first listing a newcomer sees is a map, not a heap",
			Check:  topLevel,
		},
		{
			Name:   "every property that acts is read",
			Reason: "a key that does nothing and says nothing is a lie to whoever sets it",
			Check:  properties,
		},
		{
			Name:   "nothing is unfinished",
			Reason: "what isn't done is left out and said in UNSUPPORTED.md, where people look for it",
			Check:  unfinished,
		},
		{
			Name:   "only commands print",
			Reason: "a library that prints can't be embedded, and its output can't be switched off",
			Check:  printing,
		},
		{
			Name:   "no test skips",
			Reason: "a test that may skip is green for no reason",
			Check:  skipping,
		},
	}
}
