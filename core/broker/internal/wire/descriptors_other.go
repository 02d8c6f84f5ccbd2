//go:build !unix

package wire

import (
	"math"
	"net"
)

// defaultDescriptors is no limit: this system numbers its sockets as it likes.
func defaultDescriptors() int { return math.MaxInt }

func descriptor(net.Conn) int { return 0 }
