package main

import (
	"errors"
	"net"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
	"github.com/barnabas-mq/barnabas/core/config"
)

// adminKey is the key of the YAML file whose presence turns the admin server on.
const adminKey = "admin"

// adminSummary says what the admin server is, for the reference of keys.
const adminSummary = "the HTTP server for those who watch and run the broker: metrics, health, and what the broker tells of itself"

// chooseAdmin reads the section of the admin server. nil is for none.
func chooseAdmin(root config.Section) (*adminhttp.Options, error) {
	section, ok := root.Sub(adminKey)
	if !ok {
		return nil, nil
	}
	if section.IsZero() {
		return nil, section.Wrap(errors.New("want the admin server's options, {} for the defaults"))
	}
	o := adminhttp.DefaultOptions()
	return &o, section.Decode(&o)
}

// administered is a broker that may have an admin server; AdminAddr is nil where there is none.
type administered interface{ AdminAddr() net.Addr }
