// Package examples is the tests of the plug-ins in plugins/examples, from outside: each is built as its author would, graded by
// the kit, and used by a broker. It also takes every step of plugins/README.md.
package examples
