package port

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// maxHandshakes is how many connections may be in their handshake at a time. More are closed unheard: whoever has a right to be
// heard tries again.
const maxHandshakes = 256

// Config is what a port is made of.
type Config struct {
	// Dialer says who this broker is and what it proves itself with. Identity must be set.
	Dialer
	// Bind is HOST:PORT to listen on; port 0 is any that is free.
	Bind string
	// ServerTLS is nil for a cluster without TLS.
	ServerTLS *tls.Config
	// Logger is told of connections that are refused, at most once a second.
	Logger *slog.Logger
}

// Port is a broker's coordination port. Its methods may be called from any goroutine.
type Port struct {
	Dialer
	serverTLS *tls.Config
	log       *slog.Logger
	listener  net.Listener
	packets   *net.UDPConn
	kinds     map[Kind]*kindListener
	slots     chan struct{} // holds an element for each handshake that is under way
	closed    chan struct{}
	running   sync.WaitGroup
	close     func() error

	mu       sync.Mutex
	shaking  map[net.Conn]struct{} // connections in their handshake
	loggedAt time.Time
	unlogged int
}

// Listen opens the port. Connections are accepted from then on, and handed to the listeners of their kinds.
func Listen(c Config) (*Port, error) {
	l, packets, err := bind(c.Bind)
	if err != nil {
		return nil, err
	}
	p := &Port{Dialer: c.Dialer, serverTLS: c.ServerTLS, log: c.Logger, listener: l, packets: packets, kinds: map[Kind]*kindListener{},
		slots: make(chan struct{}, maxHandshakes), closed: make(chan struct{}), shaking: map[net.Conn]struct{}{}}
	for _, kind := range kinds() {
		p.kinds[kind] = &kindListener{port: p, arrived: make(chan net.Conn), closed: make(chan struct{})}
	}
	p.close = sync.OnceValue(func() error {
		close(p.closed)
		err := errors.Join(l.Close(), packets.Close())
		p.mu.Lock()
		for conn := range p.shaking {
			conn.Close()
		}
		p.mu.Unlock()
		p.running.Wait()
		return err
	})
	p.running.Go(p.accept)
	return p, nil
}

// bind listens for connections and packets on the same port. Where any will do, the one that TCP gets may be in use for UDP, and
// another one is tried.
func bind(address string) (net.Listener, *net.UDPConn, error) {
	for attempt := 1; ; attempt++ {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, nil, err
		}
		at := l.Addr().(*net.TCPAddr)
		packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port, Zone: at.Zone})
		if err == nil {
			return l, packets, nil
		}
		l.Close()
		if _, port, _ := net.SplitHostPort(address); port != "0" || attempt == 20 {
			return nil, nil, err
		}
	}
}

// Addr is where the port listens.
func (p *Port) Addr() *net.TCPAddr { return p.listener.Addr().(*net.TCPAddr) }

// Packets is the port's UDP socket. Close closes it.
func (p *Port) Packets() *net.UDPConn { return p.packets }

// Listener gives the connections of a kind, after their handshake. While nobody accepts them, they wait up to the end of their
// handshake's time. Closing it refuses those that come later, and leaves the port open.
func (p *Port) Listener(kind Kind) net.Listener { return p.kinds[kind] }

// Close ends the port and all its listeners, and waits for handshakes to end. Connections that were accepted stay open.
func (p *Port) Close() error { return p.close() }

func (p *Port) accept() {
	var pause time.Duration
	for {
		conn, err := p.listener.Accept()
		select {
		case <-p.closed:
			if err == nil {
				conn.Close()
			}
			return
		default:
		}
		if err != nil { // such as too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			p.refused("", err)
			select {
			case <-time.After(pause):
			case <-p.closed:
				return
			}
			continue
		}
		pause = 0
		select {
		case p.slots <- struct{}{}:
		default:
			conn.Close()
			p.refused(conn.RemoteAddr().String(), errors.New("too many connections at a time"))
			continue
		}
		p.running.Go(func() {
			defer func() { <-p.slots }()
			p.admit(quietly(conn))
		})
	}
}

// admit does the server's part of the handshake, and hands the connection on.
func (p *Port) admit(conn net.Conn) {
	p.mu.Lock()
	p.shaking[conn] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.shaking, conn)
		p.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	secured, r, err := p.handshake(ctx, conn)
	if err != nil {
		conn.Close()
		p.refused(conn.RemoteAddr().String(), err)
		return
	}
	l := p.kinds[r.Kind]
	_ = conn.SetDeadline(time.Time{})
	select {
	case l.arrived <- &Conn{Conn: secured, from: r.From}:
	case <-l.closed:
		conn.Close()
	case <-p.closed:
		conn.Close()
	case <-ctx.Done():
		conn.Close()
	}
}

func (p *Port) handshake(ctx context.Context, conn net.Conn) (net.Conn, request, error) {
	var r request
	if p.serverTLS != nil {
		secured := tls.Server(conn, p.serverTLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, r, fmt.Errorf("TLS: %w", err)
		}
		conn = secured
	}
	var first [len(opening)]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return nil, r, err
	}
	if string(first[:]) != opening {
		if first[0] == 0x16 && first[1] == 0x03 { // a ClientHello
			return nil, r, errors.New("it speaks TLS, which this broker isn't configured for")
		}
		return nil, r, errors.New("it sends something else than Barnabas")
	}
	h := hello{Nonce: make([]byte, nonceSize)}
	_, _ = rand.Read(h.Nonce) // never fails
	if err := writeFrame(conn, h, nil, "", nil); err != nil {
		return nil, r, err
	}
	body, sum, err := readFrame(conn, &r)
	if err != nil {
		return nil, r, err
	}
	keys := p.Keys()
	key, ok := keyOf(keys, "request", h.Nonce, body, sum)
	a := answer{Server: p.Identity.Server()}
	switch {
	case ok:
		err = p.check(r)
		a.Cluster = p.Identity.Cluster()
	case len(keys) == 0:
		err = errors.New("it has an encryption key, this broker has none")
	default:
		err = errors.New("it has none of the encryption keys")
	}
	if err != nil {
		a.Error = err.Error()
	}
	if werr := writeFrame(conn, a, key, "answer", r.Nonce); err == nil {
		err = werr
	}
	return conn, r, err
}

// check says whether a request may come in.
func (p *Port) check(r request) error {
	own := p.Identity.Cluster()
	l, known := p.kinds[r.Kind]
	switch {
	case !known:
		return fmt.Errorf("this broker knows no connections of kind %.20q", r.Kind)
	case l.isClosed():
		return fmt.Errorf("this broker takes no connections of kind %s now", r.Kind)
	case r.Name != p.Name:
		return fmt.Errorf("it belongs to the cluster %.64q, this broker to %q", r.Name, p.Name)
	case !r.Cluster.Valid() || len(r.Nonce) != nonceSize:
		return errors.New("its request makes no sense")
	case r.From == "" && r.Kind != Commands, r.From != "" && !r.From.Valid():
		return errors.New("it doesn't say which server it is")
	case r.From == p.Identity.Server() && r.Kind != Requests && r.Kind != Commands:
		return fmt.Errorf("it is server %s, which this broker is: was its directory copied?", r.From)
	case r.To != "" && r.To != p.Identity.Server():
		return fmt.Errorf("it looks for server %.40q, this broker is %s", r.To, p.Identity.Server())
	case r.Kind == Commands:
		return nil
	case r.Cluster != "" && own != "" && r.Cluster != own:
		return fmt.Errorf("it belongs to the raft cluster %s, this broker to %s", r.Cluster, own)
	case r.Kind == Gossip:
		return nil
	case r.Cluster == "":
		return errors.New("it belongs to no raft cluster yet")
	case own == "" && (r.Kind != Raft || r.To == ""):
		return errors.New("this broker belongs to no raft cluster yet")
	}
	if own == "" {
		// A leader speaks to this very server: it is one of the cluster from now on.
		if err := p.Identity.Adopt(r.Cluster); err != nil {
			return err
		}
		p.log.Info("this broker takes part in a raft cluster from now on", "raft_cluster", string(r.Cluster), "leader", string(r.From))
	}
	return nil
}

// refused logs a refusal, but not more than one a second.
func (p *Port) refused(remote string, err error) {
	select {
	case <-p.closed:
		return
	default:
	}
	p.mu.Lock()
	now := time.Now()
	if now.Sub(p.loggedAt) < time.Second {
		p.unlogged++
		p.mu.Unlock()
		return
	}
	more := p.unlogged
	p.loggedAt, p.unlogged = now, 0
	p.mu.Unlock()
	level := slog.LevelWarn
	if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "reset by peer") { // a port scanner, a health check
		level = slog.LevelDebug
	}
	p.log.Log(context.Background(), level, "refused a connection to the coordination port", "from", remote, "because", err, "not_logged", more)
}

// Conn is a connection that was accepted.
type Conn struct {
	net.Conn
	from member.ServerID
}

// From is the server at the other end, empty for a command.
func (c *Conn) From() member.ServerID { return c.from }

// kindListener is the net.Listener of one kind.
type kindListener struct {
	port    *Port
	arrived chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *kindListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.arrived:
		return conn, nil
	case <-l.closed:
	case <-l.port.closed:
	}
	return nil, net.ErrClosed
}

func (l *kindListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *kindListener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

func (l *kindListener) Addr() net.Addr { return l.port.Addr() }
