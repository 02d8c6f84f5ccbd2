// Package plugin says what it means to be a plug-in: a life cycle ([Component]), a [Factory] with a name, documented
// options and a constructor, and a [Registry] that finds the factory a configuration names.
//
// Nothing registers itself. Whoever composes a program calls the factory function of each implementation and puts the
// results into one registry per role:
//
//	storages, err := plugin.NewRegistry("storage", storagemmap.NewFactory(), storagesendfile.NewFactory())
//
// What isn't its business: what a role does (the contract packages beside it), reading files (package config), and
// plug-ins that run as processes of their own (which appear here as ordinary factories).
package plugin
