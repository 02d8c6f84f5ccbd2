// Package peers is how a broker reaches the other brokers of its cluster.
//
// [Peers] knows where they are and dials them, for whoever has something to say to a broker of a known id: fetchers,
// transaction coordinators. [Channel] brings requests to the controller, whichever broker that is. [Pusher] is the other
// direction: it brings the controller's requests to the brokers, in order, until they are taken. [Versions] are those of the
// requests that brokers send without asking what the other one speaks.
//
// What isn't its business: what is said. It decides nothing, and knows no room of the broker but the connections (package
// wire) and the cluster as this broker knows it (package metadata).
package peers
