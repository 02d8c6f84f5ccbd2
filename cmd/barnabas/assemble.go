package main

import (
	"log/slog"

	"github.com/barnabas-mq/barnabas/core/broker"
	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// assemble makes the broker that a composition describes, without starting it.
func assemble(c *composition, log *slog.Logger) (server, error) {
	codecs := make([]broker.Maker[compression.Settings, compression.Codec], len(c.compression))
	for i, choice := range c.compression {
		codecs[i] = choice
	}
	partitioners := make([]broker.Maker[partitioner.Settings, partitioner.Partitioner], len(c.partitioners))
	for i, p := range c.partitioners {
		partitioners[i] = p
	}
	b, err := broker.New(broker.Options{
		Layers:       c.layers,
		Config:       c.broker,
		Storage:      c.storage,
		Election:     c.election,
		Compression:  codecs,
		Offsets:      c.offsets,
		Partitioners: partitioners,
		Admin:        c.admin,
		Metrics:      c.metrics,
		Logger:       log,
		LogLevels:    c.levels,
	})
	if err != nil || c.gateway == nil {
		return b, err
	}
	return &fronted{server: b, partitioner: b.Partitioner(), c: c, log: log}, nil
}
