// Package inplace has Apache Kafka 3.9 and Barnabas take turns on one log directory.
//
// One address and one directory belong to whoever's turn it is. Clients stay while brokers change under them: a producer goes on with the
// sequence numbers of its id, an open transaction is committed by the other broker's coordinator, a group goes on where it was. After each
// turn the directory is read by `barnabas log verify`, and at the beginning of the next one all that can be read (records, offsets, where
// logs begin and end) is what it was at the end of the last.
//
// What isn't its business: clusters with brokers of both kinds, and what the requests mean (interop).
package inplace
