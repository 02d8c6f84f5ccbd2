package wire

import (
	"io"
	"net"
)

// readNewPlain is source.readNew for connections that can't be asked whether bytes are there: it waits with the first byte
// only, and takes the buffer then.
func readNewPlain(c net.Conn, pool *Buffers, size int) (*Buffer, error) {
	var first [1]byte
	if _, err := io.ReadFull(c, first[:]); err != nil {
		return nil, err
	}
	b := pool.Get(size)
	b.B = append(b.B, first[0])
	return b, nil
}
