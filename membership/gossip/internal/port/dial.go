package port

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// ErrRefused says that the other end has refused a connection, and why.
var ErrRefused = errors.New("refused")

// handshakeTimeout bounds the handshake of either end; a caller's context may end it earlier.
const handshakeTimeout = 10 * time.Second

// Dialer opens connections to the coordination ports of others. Its fields aren't changed once it is used; its methods may be
// called from any goroutine.
type Dialer struct {
	// Name is the name of the cluster, as all of its brokers have it in their configuration.
	Name string
	// Keys gives the keys that brokers prove themselves with, that to be used first; none for a cluster without.
	Keys func() [][]byte
	// TLS is nil for a cluster without. Its ServerName may be empty for the host that is dialled.
	TLS *tls.Config
	// Identity is who dials; nil for a command.
	Identity *member.Identity
}

// Dial opens a connection of a kind. The server that answers must be the one meant, unless to is empty; ctx bounds all of it.
// The error is [ErrRefused] when the other end says no.
func (d *Dialer) Dial(ctx context.Context, kind Kind, to member.ServerID, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn = quietly(conn)
	// A context that ends closes the connection under whoever waits for it; once that is stopped it is the caller's.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	secured, err := d.handshake(ctx, conn, kind, to, address)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if cause := ctx.Err(); cause != nil && !errors.Is(err, ErrRefused) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return secured, nil
}

func (d *Dialer) handshake(ctx context.Context, conn net.Conn, kind Kind, to member.ServerID, address string) (net.Conn, error) {
	if d.TLS != nil {
		config := d.TLS
		if config.ServerName == "" {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			config = config.Clone()
			config.ServerName = host
		}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		conn = secured
	}
	if _, err := io.WriteString(conn, opening); err != nil {
		return nil, err
	}
	var h hello
	if _, _, err := readFrame(conn, &h); err != nil && d.TLS != nil {
		return nil, fmt.Errorf("hello: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("it doesn't say hello as a coordination port without TLS does: %w", err)
	}
	r := request{Kind: kind, Name: d.Name, To: to, Nonce: make([]byte, nonceSize)}
	_, _ = rand.Read(r.Nonce) // never fails
	if d.Identity != nil {
		r.From, r.Cluster = d.Identity.Server(), d.Identity.Cluster()
	}
	key := primary(d.Keys())
	if err := writeFrame(conn, r, key, "request", h.Nonce); err != nil {
		return nil, err
	}
	var a answer
	body, sum, err := readFrame(conn, &a)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	if a.Error != "" {
		return nil, fmt.Errorf("%w: %q", ErrRefused, a.Error)
	}
	var keys [][]byte
	if key != nil {
		keys = [][]byte{key}
	}
	if _, ok := keyOf(keys, "answer", r.Nonce, body, sum); !ok {
		return nil, fmt.Errorf("%w: it doesn't prove that it has the key", ErrRefused)
	}
	return conn, nil
}
