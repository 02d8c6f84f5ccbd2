// Package adminhttp is the broker's HTTP server for people and programs that watch and run it: metrics, health, and what the
// broker can tell of itself. It listens, bounds what comes in, finds the [Route] that a request is for, and answers errors as
// JSON, in the form of [Error]. What is served isn't its business: whoever makes a [Server] gives it the routes, all of them at
// once, so that one list in core/broker shows what there is.
//
// It is not the gateway, through which programs produce and consume, and serves no records.
package adminhttp
