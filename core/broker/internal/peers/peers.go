package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// ErrUnknownBroker says that no living broker of that id is known, or that it doesn't have the listener that brokers use
// among themselves. It may be known later.
var ErrUnknownBroker = errors.New("no such broker is known to be alive")

// defaultConnectTimeout is Kafka's default of socket.connection.setup.timeout.ms.
const defaultConnectTimeout = 10 * time.Second

// Options say who dials, and where brokers are found.
type Options struct {
	// BrokerID is the id of this broker.
	BrokerID int32
	// Listener is the name of the listener that brokers use among themselves: inter.broker.listener.name.
	Listener string
	// Cluster is the cluster as this broker knows it.
	Cluster *metadata.Cache
	// ConnectTimeout bounds the making of a connection: socket.connection.setup.timeout.ms. 0 means Kafka's default.
	ConnectTimeout time.Duration
}

// Peers finds and dials other brokers. Any goroutine may use it.
type Peers struct{ o Options }

// New makes a Peers. It holds no connections, so there is nothing to close.
func New(o Options) *Peers {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = defaultConnectTimeout
	}
	return &Peers{o: o}
}

// Addr is where a broker is reached by other brokers, HOST:PORT, as of now. [ErrUnknownBroker] when it is not known.
func (p *Peers) Addr(broker int32) (string, error) {
	if b, ok := p.o.Cluster.Snapshot().Broker(broker); ok {
		if host, port, ok := b.Endpoint(p.o.Listener); ok {
			return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
		}
	}
	return "", fmt.Errorf("broker %d, listener %s: %w", broker, p.o.Listener, ErrUnknownBroker)
}

// Dial connects to a broker. ctx, and ConnectTimeout, bound the connecting only; the connection is the caller's to close.
// A broker that moved is dialled where it was until the controller has told this broker of it: who fails asks again.
func (p *Peers) Dial(ctx context.Context, broker int32) (*wire.Client, error) {
	addr, err := p.Addr(broker)
	if err != nil {
		return nil, err
	}
	return p.dial(ctx, broker, addr)
}

func (p *Peers) dial(ctx context.Context, broker int32, addr string) (*wire.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.ConnectTimeout)
	defer cancel()
	c, err := wire.Dial(ctx, addr, wire.ClientOptions{ClientID: "broker-" + strconv.Itoa(int(p.o.BrokerID))})
	if err != nil {
		return nil, fmt.Errorf("connect to broker %d: %w", broker, err)
	}
	return c, nil
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
