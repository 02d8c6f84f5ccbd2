// Package probe is what the interop suite's client programs written in Go have in common.
//
// A client program is one process around one Kafka client library. It is started with flags (see Args), plays one
// role and writes one JSON object a line to standard output: Result lines for the roles "checks" and "read", Event
// lines for the role "member". Whatever else it has to say goes to standard error. Programs in other languages follow
// the same rules; this package is only the Go way of keeping them.
//
// It knows no Kafka library: each program gives it a Client. Starting brokers, choosing clients and judging what
// members of a group saw is the business of package interop.
package probe
