package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// Admin asks the brokers of a cluster for what operators want to know, and gives them orders. Its methods may be called from any
// goroutine, until Close.
type Admin struct {
	client *rpc.Client
	keys   [][]byte
}

// NewAdmin makes one for the cluster of brokers with these options: its name, keys and TLS are needed.
func NewAdmin(o Options) (*Admin, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	keys, err := o.keys()
	if err != nil {
		return nil, err
	}
	_, clientTLS, err := o.tlsConfigs()
	if err != nil {
		return nil, err
	}
	d := port.Dialer{Name: o.Cluster, Keys: func() [][]byte { return keys }, TLS: clientTLS}
	return &Admin{keys: keys, client: rpc.NewClient(func(ctx context.Context, server, address string) (net.Conn, error) {
		return d.Dial(ctx, port.Commands, member.ServerID(server), address)
	})}, nil
}

// Addresses are where the coordination ports are that a broker's configuration names: its own first, then those that it joins.
// properties are the broker's.
func (o Options) Addresses(properties map[string]string) ([]string, error) {
	p, err := o.plan(properties, "none")
	if err != nil {
		return nil, err
	}
	own := p.Advertise
	host, number, err := net.SplitHostPort(own)
	if err != nil {
		return nil, err
	}
	if host == "" {
		own = net.JoinHostPort("127.0.0.1", number)
	}
	addresses := []string{own}
	if number == "0" {
		addresses = nil
	}
	for _, a := range p.Join {
		if a != own {
			addresses = append(addresses, a)
		}
	}
	if len(addresses) == 0 {
		return nil, errors.New("the coordination port of this broker is any that is free, and it joins none: give an address")
	}
	return addresses, nil
}

// Close ends all connections.
func (a *Admin) Close() { a.client.Close() }

// Status asks the broker at an address what it knows.
func (a *Admin) Status(ctx context.Context, address string) (Status, error) {
	var s Status
	err := a.client.Call(ctx, "", address, methodStatus, nil, &s)
	return s, err
}

// Promote gives a server that follows a vote: which is its id, or its broker's. It is asked of the raft leader, which is found through
// the addresses.
func (a *Admin) Promote(ctx context.Context, addresses []string, which string) (Order, error) {
	return a.order(ctx, addresses, methodPromote, which)
}

// Remove takes a server's vote when it lives, and forgets it when it doesn't. See Promote.
func (a *Admin) Remove(ctx context.Context, addresses []string, which string) (Order, error) {
	return a.order(ctx, addresses, methodRemove, which)
}

// leaderPause is between two attempts to find who leads, while nobody does or that is changing.
const leaderPause = 200 * time.Millisecond

// order asks one address after the other, and whom they call leader, until somebody carries the order out or refuses it.
func (a *Admin) order(ctx context.Context, addresses []string, method, which string) (o Order, err error) {
	if len(addresses) == 0 {
		return o, errors.New("no address to ask")
	}
	refused := 0 // addresses in a row that refused this end: no other attempt changes that
	for attempt := 0; attempt < 25 && refused < len(addresses); attempt++ {
		for next := addresses[attempt%len(addresses)]; next != ""; {
			at := next
			next = ""
			err = a.client.Call(ctx, "", at, method, which, &o)
			if refused++; !errors.Is(err, port.ErrRefused) {
				refused = 0
			}
			var answer *rpc.Error
			switch {
			case err == nil:
				return o, nil
			case errors.As(err, &answer) && answer.Code == codeNotLeader:
				if answer.Detail != at {
					next = answer.Detail
				}
			case errors.As(err, &answer):
				return o, err
			case !errors.Is(err, rpc.ErrNotSent):
				return o, fmt.Errorf("whether it was done isn't known: %w", err)
			}
		}
		select {
		case <-time.After(leaderPause):
		case <-ctx.Done():
			return o, ctx.Err()
		}
	}
	return o, err
}
