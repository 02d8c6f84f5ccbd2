package acceptance

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// perConnection is how much memory a connection may cost that has sent a few bytes and says nothing more: a small goroutine,
// and no buffer.
const perConnection = 24 << 10

// TestCrowd: 2,000 connections that are silent, in the middle of a length or a frame, half closed, or send a byte at a time,
// beside a client that works.
func TestCrowd(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("t", 1, forever())
	c.accepted("t", 0, unhex(t, va1))
	before, open := n.memory(), n.descriptors()
	const crowd = 2000
	slow := binary.BigEndian.AppendUint32(nil, 10<<20)
	var conns []net.Conn
	defer func() {
		for _, nc := range conns {
			_ = nc.Close()
		}
	}()
	for i := range crowd {
		nc, err := net.Dial("tcp", n.options.Addr)
		require.NoError(t, err)
		conns = append(conns, nc)
		switch i % 5 {
		case 1:
			_, err = nc.Write([]byte{0, 0})
		case 2:
			_, err = nc.Write(unhex(t, "06400000 0000 0007 0000"))
		case 3:
			_, err = nc.Write(unhex(t, "00001000"))
			require.NoError(t, err)
			err = nc.(*net.TCPConn).CloseWrite()
		case 4:
			_, err = nc.Write(slow[:1])
		}
		require.NoError(t, err)
	}
	// One byte each, round and round, while the client works.
	var took []time.Duration
	for round := range 40 {
		if round > 0 && round < len(slow)+10 {
			for i := 4; i < crowd; i += 5 {
				b := []byte{0}
				if round < len(slow) {
					b = slow[round : round+1]
				}
				_, err := conns[i].Write(b)
				require.NoError(t, err)
			}
		}
		begin := time.Now()
		c.accepted("t", int64(1+round), unhex(t, va1))
		require.NotEmpty(t, c.fetch(11, "t", 0, int64(1+round)).RecordBatches)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	t.Logf("a record in and out: median %s, slowest %s; %d KiB for each of %d connections",
		took[len(took)/2], took[len(took)-1], (n.memory()-before)/crowd>>10, crowd)
	assert.Less(t, took[len(took)/2], 10*time.Second)
	assert.Less(t, took[len(took)-1], 30*time.Second)
	assert.Less(t, n.memory()-before, int64(crowd*perConnection))

	for _, nc := range conns {
		_ = nc.Close()
	}
	eventually(t, func() bool { return n.descriptors() <= open+5 }, "the crowd's connections to be closed")
	c.alive()
}
