package gossip

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// NewFactory makes the coordination named "memberlist".
func NewFactory() election.Factory {
	return plugin.NewFactory("memberlist", "several brokers, which agree among themselves by raft and find one another by gossip", DefaultOptions, New)
}

// New makes a coordination. Nothing happens before Start.
func New(o Options, s election.Settings) (election.Coordination, error) {
	p, err := o.plan(s.Properties, s.DataDir)
	if err != nil {
		return nil, err
	}
	serverTLS, clientTLS, err := o.tlsConfigs()
	if err != nil {
		return nil, err
	}
	keyring, err := newKeyring(p.Keys)
	if err != nil {
		return nil, err
	}
	log := s.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := consensus.Timings{Session: p.Timings.Session, Heartbeat: p.Timings.Heartbeat, Election: p.Timings.Election, Lease: p.Timings.Lease}
	h := &host{name: p.Name, cluster: o.Cluster, dir: p.DataDir, bind: p.Bind, advertise: p.Advertise, keys: keyring.keys, serverTLS: serverTLS, clientTLS: clientTLS,
		timings: t, snapshotsAfter: o.SnapshotThreshold, log: log, company: newPeers(p, keyring, log)}
	return newCoordination(h, t, log), nil
}

// tlsConfigs reads the files that the options name: for the server's end of connections, and the client's. They are nil when there is no TLS.
func (o Options) tlsConfigs() (server, client *tls.Config, err error) {
	if !o.TLS {
		return nil, nil, nil
	}
	cert, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
	if err != nil {
		return nil, nil, fmt.Errorf("memberlist: tls_cert: %w", err)
	}
	pem, err := os.ReadFile(o.TLSCA)
	if err != nil {
		return nil, nil, fmt.Errorf("memberlist: tls_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("memberlist: tls_ca: %s has no certificate in PEM", o.TLSCA)
	}
	server = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	client = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: o.TLSServerName}
	return server, client, nil
}

// savedName is the broker id that a log directory remembers, for a broker that was given one; member.Generated when it has none.
func savedName(dataDir string) (string, error) {
	path := filepath.Join(dataDir, "meta.properties")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return member.Generated, nil
	}
	if err != nil {
		return "", err
	}
	list, err := kafka.ParseProperties(path, text)
	if err != nil {
		return "", err
	}
	for _, p := range list {
		if p.Name != "broker.id" {
			continue
		}
		if id, err := strconv.ParseInt(p.Value, 10, 32); err == nil && id >= 0 {
			return strconv.FormatInt(id, 10), nil
		}
	}
	return member.Generated, nil
}

// reachable completes HOST:PORT with the host that this machine can be reached by, where it has none.
func reachable(ctx context.Context, address string) (string, error) {
	host, number, err := net.SplitHostPort(address)
	if err == nil && host == "" {
		address = net.JoinHostPort(kafka.RoutableHost(ctx), number)
	}
	return address, err
}
