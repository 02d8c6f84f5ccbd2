// Package liar stands between clients and a broker, and lies: it loses, doubles, reorders, shows too much or too little. It is there to
// prove that package verify finds out, and why.
//
// A lie is a function around the broker: it may change the question, ask more or less than it was asked, and change the answer.
package liar

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Ask asks a broker.
type Ask func(kmsg.Request) (kmsg.Response, error)

// Lie answers a request; ask asks the broker that was meant. Connections call it side by side, each one request at a time.
type Lie func(ask Ask, req kmsg.Request) (kmsg.Response, error)

// Proxy listens and passes requests on, through a lie.
type Proxy struct {
	listener net.Listener
	broker   string
	lie      Lie

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	all    sync.WaitGroup
}

// Start starts a proxy on a free port of the loopback device, in front of the broker at an address. Answers that name a
// broker's address name the proxy's instead, so a cluster has to have one broker alone. A nil lie is the truth.
func Start(broker string, lie Lie) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if lie == nil {
		lie = func(ask Ask, req kmsg.Request) (kmsg.Response, error) { return ask(req) }
	}
	p := &Proxy{listener: l, broker: broker, lie: lie, conns: map[net.Conn]struct{}{}}
	p.all.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy and all its connections, and waits for them.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// keep notes a connection, or closes it when the proxy is closed.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.keep(client) {
			p.all.Go(func() { p.serve(client) })
		}
	}
}

// serve answers a client's requests one after the other.
func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)
	b, err := Dial(p.broker)
	if err != nil || !p.keep(b.conn) {
		return
	}
	defer p.drop(b.conn)
	in := bufio.NewReader(client)
	for {
		req, correlation, err := readRequest(in)
		if err != nil {
			return
		}
		resp, err := p.lie(b.Ask, req)
		if err != nil {
			return
		}
		if _, err := client.Write(p.answer(resp, correlation)); err != nil {
			return
		}
	}
}

// answer encodes a response, with this proxy's address in the place of the broker's.
func (p *Proxy) answer(resp kmsg.Response, correlation int32) []byte {
	host, portText, _ := net.SplitHostPort(p.Addr())
	number, _ := strconv.Atoi(portText)
	port := int32(number)
	switch r := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		for i := range r.ApiKeys {
			if k := &r.ApiKeys[i]; k.ApiKey == int16(kmsg.Fetch) || k.ApiKey == int16(kmsg.Produce) {
				k.MaxVersion = min(k.MaxVersion, 12) // later ones name topics by ids
			}
		}
	case *kmsg.MetadataResponse:
		for i := range r.Brokers {
			r.Brokers[i].Host, r.Brokers[i].Port = host, port
		}
	case *kmsg.FindCoordinatorResponse:
		r.Host, r.Port = host, port
		for i := range r.Coordinators {
			r.Coordinators[i].Host, r.Coordinators[i].Port = host, port
		}
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 4, 512), uint32(correlation))
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		frame = append(frame, 0)
	}
	frame = resp.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// mostFrame bounds a frame.
const mostFrame = 64 << 20

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > mostFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func readRequest(r io.Reader) (kmsg.Request, int32, error) {
	frame, err := readFrame(r)
	if err != nil {
		return nil, 0, err
	}
	b := kbin.Reader{Src: frame}
	key, version, correlation := b.Int16(), b.Int16(), b.Int32()
	b.NullableString() // the client's id
	req := kmsg.RequestForKey(key)
	if req == nil {
		return nil, 0, fmt.Errorf("no request has the key %d", key)
	}
	req.SetVersion(version)
	if req.IsFlexible() {
		kmsg.SkipTags(&b)
	}
	return req, correlation, req.ReadFrom(b.Src)
}

// Broker is a connection to a broker, for one question at a time.
type Broker struct {
	conn        net.Conn
	in          *bufio.Reader
	format      *kmsg.RequestFormatter
	correlation int32
}

// Dial connects.
func Dial(addr string) (*Broker, error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &Broker{conn: conn, in: bufio.NewReader(conn), format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("liar"))}, nil
}

// Close ends the connection.
func (b *Broker) Close() { _ = b.conn.Close() }

// Ask sends a request, in the version that it has, and waits for the answer. There is none to a produce request with acks=0.
func (b *Broker) Ask(req kmsg.Request) (kmsg.Response, error) {
	b.correlation++
	if _, err := b.conn.Write(b.format.AppendRequest(nil, req, b.correlation)); err != nil {
		return nil, err
	}
	frame, err := readFrame(b.in)
	if err != nil {
		return nil, err
	}
	body := kbin.Reader{Src: frame}
	if got := body.Int32(); got != b.correlation {
		return nil, fmt.Errorf("answer %d to question %d", got, b.correlation)
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		kmsg.SkipTags(&body)
	}
	if resp.Key() == int16(kmsg.ApiVersions) && len(body.Src) > 2 && int16(binary.BigEndian.Uint16(body.Src)) == kerr.UnsupportedVersion.Code {
		resp.SetVersion(0) // as it is answered to who asks in a version that the broker doesn't know
	}
	return resp, resp.ReadFrom(body.Src)
}
