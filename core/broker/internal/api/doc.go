// Package api answers Kafka's requests: it decodes them, asks the rooms of the broker that know (partitions, groups, the
// controller, the metadata cache), and encodes what they say.
//
// There is one file per request, named by its key: 00_produce.go, 01_fetch.go and so on. Each begins with what the request
// promises and with what every version added. table.go is the one list of keys, version ranges and handlers; ApiVersions
// answers from that same list, so what is advertised is what is served. errors.go is the one place that turns Go errors
// into Kafka's codes. UNSUPPORTED.md says what is missing.
//
// Produce and Fetch are decoded and encoded by hand, in place, because they carry the data. All other requests go through
// franz-go's kmsg.
//
// What isn't done here: frames, connections and the order of replies (package wire), and any decision. A handler that
// starts to decide something belongs into another room.
package api
