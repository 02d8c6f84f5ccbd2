// Package port is a broker's coordination port: one TCP port on which raft, requests among brokers, gossip's streams and commands
// arrive, each connection of one [Kind], with or without TLS; and the UDP port of the same number, for gossip's packets.
//
// A connection begins with a handshake in which both ends say who they are and, when there are keys, prove that they have one. Who
// belongs to another cluster, looks for another server, has the wrong key or speaks something else is refused before anything of
// it is interpreted, and told why.
//
// # The handshake
//
// The client sends "BNC1 hello" and a newline. Then three frames follow: the server's hello, the client's request, the server's answer.
// A frame is
//
//	BNC1        4 bytes
//	length      2 bytes, big endian, at most 1024
//	body        a JSON object
//	MAC         32 bytes
//
// The bodies are those of the types hello, request and answer. The MAC of a request or answer is HMAC-SHA256 over its direction ("request"
// or "answer"), the nonce that the other end has sent, and the body, under a key that both have; all zero when they have none,
// as in a hello. It proves who may speak; it hides nothing, and doesn't protect what follows: TLS does.
//
// What isn't its business: what is said after the handshake, and by whom that may be said.
package port
