package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// gatewayKey is the key of the YAML file whose presence puts the HTTP gateway in front of the broker.
const gatewayKey = "gateway"

// chooseGateway reads the section of the gateway. nil is for none.
func chooseGateway(root config.Section, factory gatewayFactory) (*config.Section, error) {
	section, ok := root.Sub(gatewayKey)
	if !ok {
		return nil, nil
	}
	if section.IsZero() {
		return nil, section.Wrap(errors.New("want the gateway's options, {} for the defaults"))
	}
	return &section, factory.Check(section)
}

// fronted is a broker with the gateway before it. To the gateway the broker is one like any other: it is told an
// address, and speaks Kafka's protocol with it.
type fronted struct {
	server
	partitioner partitioner.Partitioner // the broker's, which starts and stops it
	c           *composition
	log         *slog.Logger

	gateway gatewayServer
}

// Start starts the broker, and, when that serves, the gateway.
func (f *fronted) Start(ctx context.Context) error {
	if err := f.server.Start(ctx); err != nil {
		return err
	}
	if err := f.startGateway(ctx); err != nil {
		return errors.Join(err, f.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (f *fronted) startGateway(ctx context.Context) error {
	made, err := f.c.gatewayMade.New(*f.c.gateway, gatewaySettings{
		Settings:    plugin.Settings{Logger: f.log.With("plugin", gatewayKey)},
		Brokers:     addresses(f.server.Advertised()),
		Partitioner: f.partitioner,
	})
	if err != nil {
		return err
	}
	if err := made.Start(ctx); err != nil {
		return err
	}
	f.gateway = made
	return nil
}

// Stop stops the gateway before the broker.
func (f *fronted) Stop(ctx context.Context) error {
	var errs []error
	if f.gateway != nil {
		errs = append(errs, f.gateway.Stop(ctx))
		f.gateway = nil
	}
	return errors.Join(append(errs, f.server.Stop(ctx))...)
}

// front is where the gateway listens.
func (f *fronted) front() string { return "http://" + f.gateway.Addr().String() }

func addresses(listeners []kafka.Listener) []string {
	var list []string
	for _, l := range listeners {
		list = append(list, net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))))
	}
	return list
}
