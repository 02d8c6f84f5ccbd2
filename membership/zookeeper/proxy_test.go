package zookeeper

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy stands between clients and a server, and can cut them off. It also remembers the credentials of the session that was granted
// last.
type proxy struct {
	t      *testing.T
	target string
	l      net.Listener
	wg     sync.WaitGroup

	mu       sync.Mutex
	cut      bool
	healed   chan struct{} // closed by heal
	conns    map[net.Conn]bool
	session  int64
	password []byte
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{t: t, target: target, l: l, healed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.drop()
		p.heal()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

// track notes a connection, to close it when the proxy drops all.
func (p *proxy) track(c net.Conn) {
	p.mu.Lock()
	p.conns[c] = true
	p.mu.Unlock()
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	p.track(client)
	p.pass()
	server, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	p.track(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		p.forward(client, server, true)
	}()
	p.forward(server, client, false)
	_ = server.Close()
	<-done
}

// pass waits while the line is cut.
func (p *proxy) pass() {
	p.mu.Lock()
	cut, healed := p.cut, p.healed
	p.mu.Unlock()
	if cut {
		<-healed
	}
}

func (p *proxy) forward(to io.Writer, from io.Reader, answers bool) {
	buf := make([]byte, 64<<10)
	for first := true; ; first = false {
		n, err := from.Read(buf)
		p.pass()
		if n >= 36 && first && answers { // length, protocol, timeout, session, length of the password, password
			p.mu.Lock()
			p.session, p.password = int64(binary.BigEndian.Uint64(buf[12:])), append([]byte{}, buf[24:40]...)
			p.mu.Unlock()
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// sever lets nothing through any more; connections stay open.
func (p *proxy) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

// heal lets everything through again.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		p.cut = false
		close(p.healed)
		p.healed = make(chan struct{})
	}
}

// drop closes all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

// expire ends the session that was granted last, as ZooKeeper ends one whose client is silent: somebody who knows its id and password
// closes it.
func (p *proxy) expire() {
	p.sever() // or the client would take its session back from this connection
	defer p.heal()
	p.mu.Lock()
	session, password := p.session, p.password
	p.mu.Unlock()
	conn, err := net.Dial("tcp", p.target)
	require.NoError(p.t, err)
	defer conn.Close()
	require.NoError(p.t, conn.SetDeadline(time.Now().Add(patience)))
	send := func(body []byte) {
		_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
		require.NoError(p.t, err)
	}
	connect := binary.BigEndian.AppendUint32(nil, 0)
	connect = binary.BigEndian.AppendUint64(connect, 0)
	connect = binary.BigEndian.AppendUint32(connect, 10000)
	connect = binary.BigEndian.AppendUint64(connect, uint64(session))
	connect = binary.BigEndian.AppendUint32(connect, uint32(len(password)))
	send(append(connect, password...))
	_, err = io.ReadFull(conn, make([]byte, 40))
	require.NoError(p.t, err)
	closing := int32(-11)
	send(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), uint32(closing)))
	_, err = io.Copy(io.Discard, conn) // until the server hangs up
	require.NoError(p.t, err)
}
