//go:build !unix

package wire

// sink is what a sender works on while it writes to a socket.
type sink struct{}

// write writes all of b to c.
func (s *sender) write(c *Conn, b []byte) error {
	_, err := c.nc.Write(b)
	return err
}
