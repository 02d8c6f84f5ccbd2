package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// company brings a host together with the other servers of its cluster: it finds them, forms a cluster with them or has this one
// added, and keeps raft's configuration.
type company interface {
	// handlers are the methods that it answers on connections of the kind port.Requests, besides raft's.
	handlers() map[string]rpc.Handler
	// start begins, when the port is open and raft runs. It doesn't wait for anybody. When it fails it has undone what it began.
	start(ctx context.Context, h *host) error
	// locate says where a server is, "" when that isn't known. It may be called before start.
	locate(server string) string
	// stop ends what start began. Raft still runs.
	stop(ctx context.Context)
}

// host implements server: a directory with the store, the coordination port, raft, and company.
type host struct {
	name            string // the broker id, or member.Generated
	cluster         string // the name that all brokers of the cluster have
	dir             string
	bind, advertise string // HOST:PORT; advertise's port may be 0: the one that is bound
	keys            func() [][]byte
	serverTLS       *tls.Config
	clientTLS       *tls.Config
	timings         consensus.Timings
	snapshotsAfter  int
	segmentSize     int
	log             *slog.Logger
	company         company

	address  string // where others reach it
	lock     io.Closer
	identity *member.Identity
	port     *port.Port
	node     *consensus.Node

	exporting atomic.Pointer[consensus.Node] // node, for what is answered before open returns
}

func (h *host) id() string { return string(h.identity.Server()) }

// open implements server. The order is that of the things: the directory, who it is, its port, raft, the others.
func (h *host) open(ctx context.Context, observe consensus.Observer) (node *consensus.Node, err error) {
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
	}()
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return nil, err
	}
	if h.lock, err = consensus.LockDir(h.dir); err != nil {
		return nil, err
	}
	undo = append(undo, h.lock.Close)
	if err := checkFinished(h.dir); err != nil {
		return nil, err
	}
	if h.identity, err = member.OpenIdentity(h.dir, h.name); err != nil {
		return nil, err
	}
	if broker := h.identity.Server().Name(); broker != h.name && broker != member.Generated && h.name != member.Generated {
		return nil, fmt.Errorf("%s belongs to broker %s, this is broker %s", h.dir, broker, h.name)
	}
	h.port, err = port.Listen(port.Config{Dialer: port.Dialer{Name: h.cluster, Keys: h.keys, TLS: h.clientTLS, Identity: h.identity},
		Bind: h.bind, ServerTLS: h.serverTLS, Logger: h.log})
	if err != nil {
		return nil, fmt.Errorf("coordination port: %w", err)
	}
	undo = append(undo, h.port.Close)
	if h.advertise, err = reachable(ctx, h.advertise); err != nil {
		return nil, err
	}
	if h.address, err = advertised(h.advertise, h.port.Addr()); err != nil {
		return nil, err
	}
	if err := h.noteAddress(); err != nil {
		return nil, err
	}
	h.node, err = consensus.Open(consensus.Config{ID: h.id(), Address: h.address, Dir: h.dir,
		Raft: h.port.Listener(port.Raft), Requests: h.port.Listener(port.Requests),
		DialRaft: h.dial(port.Raft), DialRequests: h.dial(port.Requests), Locate: h.company.locate,
		Timings: h.timings, SnapshotThreshold: h.snapshotsAfter, SegmentSize: h.segmentSize, Logger: h.log, Observer: observe}, h.handlers())
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { return h.node.Close(ctx) })
	h.exporting.Store(h.node)
	if err := h.company.start(ctx, h); err != nil {
		return nil, err
	}
	return h.node, nil
}

// advertised completes what others are to dial with the port that was bound.
func advertised(address string, bound net.Addr) (string, error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if number == "0" {
		_, number, err = net.SplitHostPort(bound.String())
	}
	return net.JoinHostPort(host, number), err
}

func (h *host) dial(kind port.Kind) func(ctx context.Context, server, address string) (net.Conn, error) {
	return func(ctx context.Context, server, address string) (net.Conn, error) {
		return h.port.Dial(ctx, kind, member.ServerID(server), address)
	}
}

// close implements server.
func (h *host) close(ctx context.Context) error {
	h.company.stop(ctx)
	err := h.node.Close(ctx)
	return errors.Join(err, h.port.Close(), h.lock.Close())
}
