package kafka

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Listener is one address the broker listens on, or tells clients to connect to.
type Listener struct {
	Name     string // in capitals
	Host     string // without brackets; "" listens on all addresses
	Port     int    // 0 lets the system choose one
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
}

// Address gives HOST:PORT as package net wants it.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// String gives the form of the property, NAME://HOST:PORT.
func (l Listener) String() string { return l.Name + "://" + l.Address() }

// unspecified reports whether the host stands for all addresses of the machine.
func (l Listener) unspecified() bool {
	addr, err := netip.ParseAddr(l.Host)
	return l.Host == "" || err == nil && addr.IsUnspecified()
}

// Advertise gives what clients are told to connect to: what advertised.listeners says, or else the listeners
// themselves. bound gives the port that the listener of a name really has; host, from [RoutableHost], takes the place
// of a host that stands for all addresses. Every result has a host and a port from 1 up.
func (c BrokerConfig) Advertise(bound func(name string) int, host string) []Listener {
	list := c.Advertised
	if len(list) == 0 {
		list = c.Listeners
	}
	advertised := make([]Listener, len(list))
	for i, l := range list {
		if l.unspecified() {
			l.Host = host
		}
		if l.Port == 0 {
			l.Port = bound(l.Name)
		}
		advertised[i] = l
	}
	return advertised
}

// listeners parses and checks listeners, advertised.listeners and listener.security.protocol.map.
func (l Layers) listeners() (listeners, advertised []Listener, err error) {
	protocols, err := parseProtocols(l.text("listener.security.protocol.map"))
	if err != nil {
		return nil, nil, err
	}
	listeners, err = parseListeners("listeners", l.text("listeners"), protocols)
	if err != nil {
		return nil, nil, err
	}
	faults := []error{checkListeners(listeners)}
	if text, _, ok := l.Get("advertised.listeners"); ok {
		advertised, err = parseListeners("advertised.listeners", text, protocols)
		if err != nil {
			faults = append(faults, err)
		} else {
			faults = append(faults, checkAdvertised(advertised, listeners))
		}
	}
	return listeners, advertised, errors.Join(faults...)
}

// interBroker gives the name of the listener that brokers use among themselves: the one that is named, or else the one that has
// the name of security.inter.broker.protocol. Where nothing is said and none is called PLAINTEXT it is the first that is
// advertised: Kafka wants that to be said even of a broker that stands alone.
func (l Layers) interBroker(listeners, advertised []Listener) (string, error) {
	const property, byProtocol = "inter.broker.listener.name", "security.inter.broker.protocol"
	name, _, named := l.Get(property)
	_, source, _ := l.Get(byProtocol)
	switch name = strings.ToUpper(strings.TrimSpace(name)); {
	case named && source != FromDefault:
		return "", listenerFault(property, "only one of this and %s may be set", byProtocol)
	case !named:
		name = l.text(byProtocol)
	}
	names := make([]string, len(listeners))
	found := false
	for i, one := range listeners {
		names[i] = one.Name
		found = found || one.Name == name
	}
	told := len(advertised) == 0
	for _, one := range advertised {
		told = told || one.Name == name
	}
	switch {
	case !named && source == FromDefault && !(found && told):
		return slices.Concat(advertised, listeners)[0].Name, nil
	case !found && !named:
		return "", listenerFault(byProtocol, "%s is none of the listeners (%s)", name, strings.Join(names, ", "))
	case !found:
		return "", listenerFault(property, "%s is none of the listeners (%s)", name, strings.Join(names, ", "))
	case !told:
		return "", listenerFault(property, "%s is not advertised: other brokers would not find this one", name)
	}
	return name, nil
}

func listenerFault(property, format string, args ...any) error {
	return &Fault{Name: property, Kind: ErrInvalidValue, Text: property + ": " + fmt.Sprintf(format, args...)}
}

// parseProtocols reads "NAME:PROTOCOL,…".
func parseProtocols(text string) (map[string]string, error) {
	const property = "listener.security.protocol.map"
	protocols := map[string]string{}
	for _, pair := range splitList(text) {
		name, protocol, ok := strings.Cut(pair, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || name == "" {
			return nil, listenerFault(property, "want NAME:PROTOCOL, not %q", pair)
		}
		if fault := (oneOf{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}).Check(protocol); fault != "" {
			return nil, listenerFault(property, "the protocol of %s %s", name, fault)
		}
		if _, double := protocols[name]; double {
			return nil, listenerFault(property, "the listener %s is given twice", name)
		}
		protocols[name] = protocol
	}
	return protocols, nil
}

// parseListeners reads "NAME://HOST:PORT,…". A name that the map of protocols doesn't know is a fault.
func parseListeners(property, text string, protocols map[string]string) ([]Listener, error) {
	var list []Listener
	for _, one := range splitList(text) {
		name, address, ok := strings.Cut(one, "://")
		colon := strings.LastIndexByte(address, ':')
		if !ok || name == "" || colon < 0 {
			return nil, listenerFault(property, "want NAME://HOST:PORT, not %q", one)
		}
		host := address[:colon]
		if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
			host, ok = strings.CutSuffix(inner, "]")
			if _, err := netip.ParseAddr(host); !ok || err != nil {
				return nil, listenerFault(property, "%q holds no address between its brackets", one)
			}
		} else if strings.ContainsAny(host, ":/?#@[] \t") {
			return nil, listenerFault(property, "%q has no valid host (an IPv6 address goes into brackets)", one)
		}
		port, err := strconv.ParseUint(address[colon+1:], 10, 16)
		if err != nil {
			return nil, listenerFault(property, "the port of %q is not a number from 0 to 65535", one)
		}
		l := Listener{Name: strings.ToUpper(name), Host: host, Port: int(port)}
		if l.Protocol = protocols[l.Name]; l.Protocol == "" {
			return nil, listenerFault(property, "no protocol is given for the listener %s; name it in listener.security.protocol.map", l.Name)
		}
		for _, other := range list {
			if other.Name == l.Name {
				return nil, listenerFault(property, "the listener %s is given twice", l.Name)
			}
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		return nil, listenerFault(property, "at least one listener is needed")
	}
	return list, nil
}

// checkListeners refuses protocols that aren't spoken and one port for two listeners. As in Kafka, one IPv4 and one
// IPv6 address may share a port (KIP-797).
func checkListeners(list []Listener) error {
	var faults []error
	for i, l := range list {
		if l.Protocol != "PLAINTEXT" {
			faults = append(faults, listenerFault("listeners", "the listener %s wants %s, but %s", l.Name, l.Protocol, becauseAuth))
		}
		for _, other := range list[:i] {
			if l.Port != 0 && l.Port == other.Port && !differentFamilies(l.Host, other.Host) {
				faults = append(faults, listenerFault("listeners", "%s and %s have the same port %d", other.Name, l.Name, l.Port))
			}
		}
	}
	return errors.Join(faults...)
}

func differentFamilies(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Is4() != y.Is4()
}

// checkAdvertised refuses what no client could connect to, and names that aren't listened on.
func checkAdvertised(advertised, listeners []Listener) error {
	const property = "advertised.listeners"
	known := map[string]bool{}
	names := make([]string, len(listeners))
	for i, l := range listeners {
		known[l.Name], names[i] = true, l.Name
	}
	var faults []error
	for _, l := range advertised {
		if !known[l.Name] {
			faults = append(faults, listenerFault(property, "%s is none of the listeners (%s)", l.Name, strings.Join(names, ", ")))
		}
		if l.Host != "" && l.unspecified() {
			faults = append(faults, listenerFault(property, "%s stands for all addresses of a machine and cannot be connected to: name one that clients can reach", l.Host))
		}
		if l.Port == 0 {
			faults = append(faults, listenerFault(property, "the port of %s is 0, which cannot be connected to", l.Name))
		}
		delete(known, l.Name)
	}
	return errors.Join(faults...)
}
