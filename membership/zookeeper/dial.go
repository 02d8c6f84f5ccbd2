package zookeeper

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// network is one session's way to the servers. The library dials through it, so that names are resolved each time, a server that
// accepts connections and says nothing costs a share of the session's timeout only, and it is known how long the session surely lasts.
type network struct {
	servers   []string
	tls       *tls.Config // nil for plain connections
	handshake time.Duration
	base      time.Time
	heard     atomic.Int64 // when a server has heard this side last, as far as is known, in nanoseconds since base
	timeout   atomic.Int64 // the session's, as the server set it; 0 before
	session   atomic.Int64 // its id, as the server said it last; kept when it has expired
	ctx       context.Context
	cancel    context.CancelFunc
	late      func() // told when a server is heard after more silence than the session lasts; set before anything is dialled

	mu     sync.Mutex
	next   int
	failed int // servers tried since the last success
	conn   net.Conn
	last   error // why the last attempt failed
	refuse bool  // there is no session any more to connect for
}

func newNetwork(servers []string, tlsConfig *tls.Config, timeout time.Duration) *network {
	n := &network{servers: append([]string{}, servers...), tls: tlsConfig, base: time.Now()}
	rand.Shuffle(len(n.servers), func(i, j int) { n.servers[i], n.servers[j] = n.servers[j], n.servers[i] })
	// Every server can be tried within the part of the timeout that is left when one falls silent.
	n.handshake = max(timeout/time.Duration(3*len(n.servers)), 200*time.Millisecond)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Init, Len, Next and Connected are the library's HostProvider.
func (n *network) Init([]string) error { return nil }
func (n *network) Len() int            { return len(n.servers) }

func (n *network) Next() (server string, retryStart bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	server = n.servers[n.next]
	n.next = (n.next + 1) % len(n.servers)
	retryStart = n.failed > 0 && n.failed%len(n.servers) == 0
	n.failed++
	return server, retryStart
}

func (n *network) Connected() {
	n.mu.Lock()
	n.failed = 0
	n.mu.Unlock()
}

var errNoSession = errors.New("the session is over")

// dial is the library's Dialer.
func (n *network) dial(_, address string, _ time.Duration) (net.Conn, error) {
	conn, err := n.open(address)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.refuse {
		err = errors.Join(errNoSession, conn.Close())
	}
	if err != nil {
		n.last = err
		return nil, err
	}
	n.conn = conn
	return &watched{Conn: conn, n: n, until: time.Now().Add(n.handshake)}, nil
}

func (n *network) open(address string) (net.Conn, error) {
	n.mu.Lock()
	refuse := n.refuse
	n.mu.Unlock()
	if refuse {
		return nil, errNoSession
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.handshake)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil || n.tls == nil {
		return conn, err
	}
	config := n.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS with %s: %w", address, err), conn.Close())
	}
	return secure, nil
}

// giveUp lets nobody connect any more.
func (n *network) giveUp() {
	n.mu.Lock()
	n.refuse = true
	n.mu.Unlock()
}

// shut ends what is going on on the network, and lets nothing begin.
func (n *network) shut() {
	n.giveUp()
	n.cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil {
		_ = n.conn.Close() // the library may have closed it
	}
}

// failure is why the last attempt to connect failed; nil when none has.
func (n *network) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// silence is for how long it isn't known that a server has heard this side.
func (n *network) silence() time.Duration {
	return time.Since(n.base) - time.Duration(n.heard.Load())
}

// watched is a connection that notes until when a server has surely heard this side: an answer tells that the request was heard no
// earlier than it was sent. That something comes in tells less, for it may have been on its way for long.
//
// Reads come from one goroutine, writes from another, a request with each write. Answers come in the order of requests.
type watched struct {
	net.Conn
	n     *network
	until time.Time // for the first answer
	first [20]byte  // of what was read: length, protocol version, timeout, session
	got   int
	head  [8]byte // of the packet that is being read: length, number of the request
	have  int
	left  int64 // of that packet, behind the head

	mu   sync.Mutex
	sent []time.Duration // when requests were sent that aren't answered, since the network's base
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.sent = append(w.sent, time.Since(w.n.base))
	w.mu.Unlock()
	return w.Conn.Write(p)
}

func (w *watched) Read(p []byte) (int, error) {
	k, err := w.Conn.Read(p)
	if w.got < len(w.first) {
		w.got += copy(w.first[w.got:], p[:k])
		if id := int64(binary.BigEndian.Uint64(w.first[12:])); w.got == len(w.first) && id != 0 { // 0: it has expired
			w.n.session.Store(id)
			w.n.timeout.Store(int64(binary.BigEndian.Uint32(w.first[8:])) * int64(time.Millisecond))
		}
	}
	for b := p[:k]; len(b) > 0; {
		if w.left > 0 {
			n := min(w.left, int64(len(b)))
			w.left, b = w.left-n, b[n:]
			continue
		}
		n := copy(w.head[w.have:], b)
		w.have, b = w.have+n, b[n:]
		if w.have == len(w.head) {
			w.have, w.left = 0, int64(binary.BigEndian.Uint32(w.head[:]))-4
			if int32(binary.BigEndian.Uint32(w.head[4:])) != notification {
				w.answered()
			}
		}
	}
	return k, err
}

// notification is the number of what a server sends without having been asked: that a watch was triggered.
const notification = -1

// answered takes note of an answer.
func (w *watched) answered() {
	w.mu.Lock()
	if len(w.sent) == 0 {
		w.mu.Unlock()
		return
	}
	at := w.sent[0]
	w.sent = w.sent[1:]
	w.mu.Unlock()
	if at > time.Duration(w.n.heard.Load()) {
		w.n.heard.Store(int64(at))
	}
	if w.n.silence() > w.n.patience() {
		w.n.late() // this process slept, say, or the answer was long on its way
	}
}

// SetReadDeadline doesn't let the library wait for the first answer for as long as it would: ten times the usual.
func (w *watched) SetReadDeadline(t time.Time) error {
	if w.got < len(w.first) && !t.IsZero() && t.After(w.until) {
		t = w.until
	}
	return w.Conn.SetReadDeadline(t)
}
