// Package gateway is the HTTP front door of a broker: Confluent REST Proxy's v2 API, and the topic, produce and
// consumer-group parts of its v3 API, for programs that can speak HTTP and JSON but not Kafka's protocol.
//
// It is a client of the broker like any other: what it does, every Kafka client could do, and the broker doesn't know
// of it. Records that don't name a partition go where the configured partitioner says, one call for a whole request.
//
// How a request goes: api.go and call.go find the operation, bound its body, check it against the schema that
// /openapi.json shows, and turn errors into the API's. Operations are in v2_*.go and v3_*.go. producer.go routes and
// sends records, topics.go knows the topics, instance.go is one consumer instance and instances.go all of them. errors.go
// is the only place that turns Kafka's errors into those of HTTP.
//
// What isn't its business: storing anything, schemas (Avro, Protobuf and JSON Schema need a registry, which there
// isn't), and who may do what: it has no authentication, and listens on the loopback address unless told otherwise.
package gateway
