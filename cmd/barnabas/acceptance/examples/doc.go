// Package examples is the tests of the plug-ins in plugins/examples, from outside: each is built and tested as its author would,
// held against its contract through its process, and used with a broker.
package examples
