//go:build !unix

package port

import "net"

// quietly is the connection as it is.
func quietly(conn net.Conn) net.Conn { return conn }
