package api

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// serve puts a table behind a real listener.
func serve(t testing.TB, table *Table) *wire.Server {
	s, err := wire.New(wire.Options{Handler: table, Listeners: []wire.Listener{{Name: "PLAINTEXT", Address: "127.0.0.1:0"}}})
	require.NoError(t, err)
	require.NoError(t, s.Listen(context.Background()))
	require.NoError(t, s.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	})
	return s
}

// client is a plain Kafka client with one connection.
type client struct {
	t testing.TB
	net.Conn
	corr int32
}

func connect(t testing.TB, s *wire.Server) *client {
	c, err := net.Dial("tcp", s.Addr("PLAINTEXT").String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return &client{t: t, Conn: c}
}

// frame encodes a request with a body of its own.
func (c *client) frame(key, version int16, flexible bool, body []byte) []byte {
	c.corr++
	b := []byte{0, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(c.corr))
	b = append(b, 0, 4, 't', 'e', 's', 't')
	if flexible {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func (c *client) write(b []byte) {
	c.t.Helper()
	_, err := c.Write(b)
	require.NoError(c.t, err)
}

// send writes a request and returns its correlation id.
func (c *client) send(req kmsg.Request) int32 {
	c.t.Helper()
	c.write(c.frame(req.Key(), req.GetVersion(), req.IsFlexible(), wire.AppendBody(nil, req)))
	return c.corr
}

// receive reads the next response, whose request must be req.
func (c *client) receive(corr int32, req kmsg.Request) kmsg.Response {
	c.t.Helper()
	b := c.payload()
	require.Equal(c.t, corr, int32(binary.BigEndian.Uint32(b)), "correlation id")
	b = b[4:]
	if req.IsFlexible() && req.Key() != 18 {
		require.Zero(c.t, b[0], "tags in the response header")
		b = b[1:]
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	require.NoError(c.t, resp.ReadFrom(b))
	require.Equal(c.t, resp.AppendTo(nil), b, "the response isn't encoded as it should be")
	return resp
}

func (c *client) payload() []byte {
	c.t.Helper()
	var size [4]byte
	_, err := io.ReadFull(c, size[:])
	require.NoError(c.t, err)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(c, b)
	require.NoError(c.t, err)
	return b
}

func (c *client) expectClosed() {
	c.t.Helper()
	n, err := c.Read(make([]byte, 1))
	require.Zero(c.t, n, "bytes where the connection should have ended")
	require.False(c.t, errors.Is(err, os.ErrDeadlineExceeded), "still open")
}

// call sends a request and returns its response, of type R.
func call[R kmsg.Response](c *client, version int16, req kmsg.Request) R {
	c.t.Helper()
	req.SetVersion(version)
	return c.receive(c.send(req), req).(R)
}

// dial connects to one of several listeners.
func dial(t testing.TB, s *wire.Server, listener string) (net.Conn, error) {
	c, err := net.Dial("tcp", s.Addr(listener).String())
	if err == nil {
		t.Cleanup(func() { c.Close() })
		err = c.SetDeadline(time.Now().Add(time.Minute))
	}
	return c, err
}
