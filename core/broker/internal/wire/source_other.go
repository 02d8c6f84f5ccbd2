//go:build !unix

package wire

import "net"

// source reads from a connection.
type source struct {
	conn   net.Conn
	idle   func() error // never called
	waited bool
}

// flows says that what was read since waited was set to false was there already, and that idle is called before a wait.
func (s *source) flows() bool { return false }

// attach makes s read from c.
func (s *source) attach(c net.Conn) { s.conn = c }

// read waits for bytes and reads them into p. Deadlines of the connection hold.
func (s *source) read(p []byte) (int, error) { return s.conn.Read(p) }

// readNew waits for bytes and reads them into a new buffer of the pool, of which the caller is the owner.
func (s *source) readNew(pool *Buffers, size int) (*Buffer, error) {
	return readNewPlain(s.conn, pool, size)
}
