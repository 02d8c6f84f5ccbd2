//go:build !linux

package wire

// writeMore writes bytes that others follow at once.
func writeMore(c *Conn, b []byte) error {
	_, err := c.nc.Write(b)
	return err
}
