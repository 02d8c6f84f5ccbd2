// Package rpc carries requests between brokers that coordinate, and from commands to them: one connection to each other server, any
// number of requests on it at a time.
//
// A message is its length (4 bytes, big endian, at most 64 MiB) and that many bytes of JSON: a request with an id, a method, the
// milliseconds that the caller waits, and its body; an answer with the same id and a body or an error. Answers come in any
// order.
//
// What a caller must know after a failure is whether the request may have been carried out: [ErrNotSent] says that it wasn't.
//
// What isn't its business: who may speak to whom (package port, before the first message), and what the methods do.
package rpc
