// Package wire is the broker's end of Kafka's connections: it accepts them, cuts the byte stream into frames, reads the
// request header, hands the request to a [Handler] and sends what that answers, in the order in which the requests came.
//
// # Requests and responses
//
// A connection has one small goroutine, which reads a request, calls the handler, writes the response, and reads the next
// one. Whoever has to wait (a fetch for data, a join for the other members) waits in its handler, with a context that ends
// when the peer goes away or the server drains. Only one kind of request is answered later while the next one is already
// being read and handled: the one whose handler returns a [Pending] reply. Then a second goroutine writes the replies, in
// order, and ends when nothing is pending any more.
//
// # Memory
//
// An idle connection holds a goroutine and no buffer: a buffer is taken from a pool when the system says that bytes are
// there. A frame's buffer grows with the bytes that came, never with the length that was promised.
//
// # What isn't done here
//
// The package knows the frame, the request header and the response header, and nothing of what a request means. Which keys
// and versions exist, and which form of header they have, is the handler's to say. Errors of a request are its handler's
// business, too: all that this package can do to a client is to close its connection.
package wire
