package state

import (
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
)

// RandomClusterID makes an id as Kafka's Uuid does: it never begins with '-', which command lines take for an option.
func RandomClusterID() string {
	for {
		var id election.TopicID
		rand.Read(id[:])
		if text := EncodeID(id); text[0] != '-' {
			return text
		}
	}
}

// CheckBroker says what is wrong with a broker that wants to be registered (2.5, 0.7): ErrInvalid.
func CheckBroker(b election.Broker) error {
	if b.ID < 0 || len(b.Endpoints) == 0 || !IsText(b.Rack, nil) {
		return fmt.Errorf("%w: broker %d with %d endpoints in rack %q", election.ErrInvalid, b.ID, len(b.Endpoints), b.Rack)
	}
	for i, e := range b.Endpoints {
		if e.Listener == "" || e.Host == "" || e.Port < 1 || e.Port > 65535 || !IsText(e.Host, map[string]string{e.Listener: e.Protocol}) ||
			slices.ContainsFunc(b.Endpoints[:i], func(o election.Endpoint) bool { return o.Listener == e.Listener }) {
			return fmt.Errorf("%w: broker %d's endpoint %q at %s:%d", election.ErrInvalid, b.ID, e.Listener, e.Host, e.Port)
		}
	}
	return nil
}

// CheckAlone says why a broker can't be alive beside another one (2.4), or nothing: ErrBrokerExists.
func CheckAlone(alive, b election.Broker) error {
	if alive.ID == b.ID {
		return fmt.Errorf("%w: id %d", election.ErrBrokerExists, alive.ID)
	}
	for _, x := range alive.Endpoints {
		for _, y := range b.Endpoints {
			if x.Host == y.Host && x.Port == y.Port {
				return fmt.Errorf("%w: broker %d advertises %s:%d", election.ErrBrokerExists, alive.ID, x.Host, x.Port)
			}
		}
	}
	return nil
}
