package main

import (
	"log/slog"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// codecs makes all codecs in this binary, with their default options. They are to be started.
func (c components) codecs() (*compression.Set, error) {
	var made []compression.Codec
	for _, name := range c.compression.Names() {
		choice, err := c.compression.Default(name)
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
