package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// connectionFamilies are about who is connected.
type connectionFamilies struct {
	open, accepted, refused, idle family
}

func newConnectionFamilies() connectionFamilies {
	return connectionFamilies{
		open:     gauge("barnabas_connections", "Open connections, by listener and by what clients say of their software (KIP-511).", "listener", "software", "version"),
		accepted: counter("barnabas_connections_accepted_total", "Connections that were accepted."),
		refused:  counter("barnabas_connections_refused_total", "Connections that were refused because there were too many."),
		idle:     counter("barnabas_connections_idle_closed_total", "Connections that were closed because they were idle, for too long or to make room."),
	}
}

// maxSoftware bounds how many kinds of clients are shown apart: clients can call themselves whatever they want.
const maxSoftware = 100

// maxSoftwareName bounds what a client can have shown of what it calls itself, in bytes.
const maxSoftwareName = 64

const (
	unknownSoftware = "unknown"
	otherSoftware   = "other"
)

// softwareCount is how many connections a kind of client has.
type softwareCount struct {
	listener, name, version string
	connections             int
}

// countSoftware lists the kinds with the most connections; the others are one for each listener.
func countSoftware(peers map[wire.Peer]int) []softwareCount {
	sums := map[softwareCount]int{}
	for p, n := range peers {
		one := softwareCount{listener: p.Listener, name: cmp.Or(p.Software.Name, unknownSoftware), version: cmp.Or(p.Software.Version, unknownSoftware)}
		if len(one.name) > maxSoftwareName || len(one.version) > maxSoftwareName {
			one.name, one.version = otherSoftware, otherSoftware
		}
		sums[one] += n
	}
	all := make([]softwareCount, 0, len(sums))
	for one, n := range sums {
		one.connections = n
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b softwareCount) int {
		return cmp.Or(cmp.Compare(b.connections, a.connections), strings.Compare(a.listener, b.listener), strings.Compare(a.name, b.name), strings.Compare(a.version, b.version))
	})
	if len(all) <= maxSoftware {
		return all
	}
	rest := map[string]int{}
	for _, one := range all[maxSoftware:] {
		rest[one.listener] += one.connections
	}
	all = slices.DeleteFunc(all[:maxSoftware], func(one softwareCount) bool { // what was too long to be shown is among the others, too
		if one.name == otherSoftware && one.version == otherSoftware {
			rest[one.listener] += one.connections
			return true
		}
		return false
	})
	for listener, n := range rest {
		all = append(all, softwareCount{listener, otherSoftware, otherSoftware, n})
	}
	return all
}

func (f *connectionFamilies) show(o out, v *view) {
	for _, s := range v.software {
		o.put(f.open, float64(s.connections), s.listener, s.name, s.version)
	}
	o.put(f.accepted, float64(v.counts.Accepted))
	o.put(f.refused, float64(v.counts.Refused))
	o.put(f.idle, float64(v.counts.Idle))
}
