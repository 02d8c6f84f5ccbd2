package broker

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/api"
	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/peers"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
)

// This file has the steps of Start that make the broker a member of its cluster.

// makeController makes what decides for the cluster while this broker is elected, and what brings its decisions to the brokers.
func (b *Broker) makeController(context.Context) error {
	c := &b.o.Config
	pusher := peers.NewPusher(peers.PusherOptions{
		Peers:    b.peers,
		Versions: peers.VersionsOf(c.InterBrokerProtocol),
		Own:      b.control.own,
		Deliver: func(broker int32, epoch int64, req kmsg.Request, resp kmsg.Response) {
			b.controller.Deliver(controller.Delivered{Broker: broker, Epoch: epoch, Request: req, Response: resp})
		},
		RequestTimeout: c.ControllerSocketTimeout,
		Logger:         b.logger(loggerController),
	})
	b.onStop("stop telling the other brokers", func(context.Context) error {
		pusher.Close()
		return nil
	})
	b.controller = controller.New(controller.Options{
		Rules:      b.rules(),
		Rebalance:  rebalance(&b.o.Config),
		Election:   b.coordination.Election(),
		Membership: b.coordination.Membership(),
		Metadata:   b.coordination.Metadata(),
		Requests:   b.coordination.Requests(),
		Pusher:     pusher,
		Logger:     b.logger(loggerController),
		Journal:    b.journal,
	})
	b.creating = b.newChannel()
	b.onStop("stop creating topics", func(context.Context) error { return b.creating.Close() })
	return nil
}

// newChannel makes a channel to the controller for one purpose. Its maker closes it.
func (b *Broker) newChannel() *peers.Channel {
	return peers.NewChannel(peers.ChannelOptions{
		Peers: b.peers,
		Local: func(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
			return api.ToController(ctx, b.controller, req)
		},
		RequestTimeout: b.o.Config.ControllerSocketTimeout,
		Logger:         b.log,
	})
}

// register makes the broker known to the cluster under the addresses that clients are to use.
func (b *Broker) register(ctx context.Context) error {
	addresses := b.o.Config.Advertise(func(name string) int {
		if tcp, ok := b.server.Addr(name).(*net.TCPAddr); ok {
			return tcp.Port
		}
		return 0
	}, kafka.RoutableHost(ctx))
	b.addresses.Store(&addresses)
	self := election.Broker{ID: b.id, Rack: b.o.Config.Rack, Endpoints: make([]election.Endpoint, len(addresses))}
	for i, l := range addresses {
		self.Endpoints[i] = election.Endpoint{Listener: l.Name, Protocol: l.Protocol, Host: l.Host, Port: int32(l.Port)}
	}
	r, err := b.coordination.Membership().Register(ctx, self)
	if err != nil {
		return fmt.Errorf("register broker %d: %w", b.id, err)
	}
	b.registered(r.Epoch(), false)
	b.keepRegistered(self, r)
	return nil
}

// open begins to answer requests between brokers. Clients are held until serve. It comes after the registration: before, no
// request of a controller could be told from one that was meant for an earlier life of this broker.
func (b *Broker) open(context.Context) error { return b.server.Start() }

const (
	// toldPatience is how long a starting broker waits for a controller before it serves with what it knows, as Kafka's do.
	toldPatience = 30 * time.Second
	// strayPatience is how long it then waits to be told of the logs that it has.
	strayPatience = 3 * time.Second
)

// startController campaigns, and waits until a controller, here or elsewhere, has told this broker what it serves.
func (b *Broker) startController(ctx context.Context) error {
	if err := b.run(ctx, "controller", b.controller); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, toldPatience)
	defer cancel()
	lives := func() bool {
		_, alive := b.cache.Snapshot().Broker(b.id)
		return alive
	}
	if err := b.awaitNews(patience, lives); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for a controller: %w", ctx.Err())
		}
		b.log.Warn("no controller has spoken to this broker yet; it serves with what it knows", "waited", toldPatience)
		return nil
	}
	if id, _ := b.cache.Snapshot().Controller(); id == b.id {
		select {
		case <-b.controller.Ready():
			return nil
		case <-patience.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("wait for the controller to take over broker %d: %w", b.id, ctx.Err())
			}
		}
	}
	patience, cancel = context.WithTimeout(ctx, strayPatience)
	defer cancel()
	if err := b.awaitNews(patience, func() bool { return b.unclaimed() == 0 }); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the controller to say what this broker serves: %w", ctx.Err())
		}
		b.log.Warn("the controller has not spoken of all logs that this broker has; those are left alone", "logs", b.unclaimed())
	}
	return nil
}

// awaitNews waits until something is true of what the controller has told.
func (b *Broker) awaitNews(ctx context.Context, done func() bool) error {
	for {
		news := b.control.news()
		if done() {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unclaimed counts the logs of partitions that the controller hasn't spoken of, or that clients couldn't find here yet.
func (b *Broker) unclaimed() (n int) {
	cluster := b.cache.Snapshot()
	for l := range b.logs.All() {
		_, err := b.partitions.Get(partition.ID{Topic: l.Topic(), Partition: l.Partition()})
		known := false
		if t, ok := cluster.Topic(l.Topic()); ok {
			_, known = t.Partition(l.Partition())
		}
		if err != nil || !known {
			n++
		}
	}
	return n
}
