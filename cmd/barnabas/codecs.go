package main

import (
	"log/slog"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// codecs makes all codecs that run in this process, with their default options. They are to be started.
func (c components) codecs() (*compression.Set, error) {
	var made []compression.Codec
	for _, name := range c.inProcess.Names() {
		choice, err := c.inProcess.Default(name)
		if err != nil {
			return nil, err
		}
		codec, err := choice.New(compression.Settings{Settings: plugin.Settings{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			return nil, err
		}
		made = append(made, codec)
	}
	return compression.NewSet(made...)
}
