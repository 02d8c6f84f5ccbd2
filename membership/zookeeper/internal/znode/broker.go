package znode

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
)

// brokerNode is what /brokers/ids/N holds since IBP 2.7.
type brokerNode struct {
	Version   int               `json:"version"`
	Host      *string           `json:"host"`
	Port      int32             `json:"port"`
	Endpoints []string          `json:"endpoints"`
	JMXPort   int               `json:"jmx_port"`
	Timestamp string            `json:"timestamp"`
	Rack      string            `json:"rack,omitempty"`
	Protocols map[string]string `json:"listener_security_protocol_map"`
	Features  struct{}          `json:"features"`
}

// EncodeBroker writes a broker's registration, version 5. Host and port of old clients are those of the first endpoint without
// encryption and authentication, as in Kafka. It supports no features, as every broker of 3.9 on ZooKeeper.
func EncodeBroker(b election.Broker, now time.Time) []byte {
	n := brokerNode{Version: 5, Port: -1, JMXPort: -1, Timestamp: strconv.FormatInt(now.UnixMilli(), 10), Rack: b.Rack, Protocols: map[string]string{}}
	for _, e := range b.Endpoints {
		if e.Protocol == "PLAINTEXT" && n.Host == nil {
			n.Host, n.Port = &e.Host, e.Port
		}
		n.Endpoints = append(n.Endpoints, e.Listener+"://"+net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
		n.Protocols[e.Listener] = e.Protocol
	}
	return encode(n)
}

// DecodeBroker reads a broker's registration of versions 1 to 5. Endpoints come in the order of the node.
func DecodeBroker(id int32, data []byte) (election.Broker, error) {
	what := fmt.Sprintf("broker %d", id)
	b := election.Broker{ID: id}
	o, err := decode(what, data)
	if err != nil {
		return b, err
	}
	version, err := member[int64](o, what, "version")
	if err != nil {
		return b, err
	}
	if version < 1 {
		return b, fmt.Errorf("%s: %w: version %d", what, ErrMalformed, version)
	}
	if b.Rack, err = optional[string](o, what, "rack"); err != nil {
		return b, err
	}
	if version == 1 {
		return decodeFirstBroker(b, what, o)
	}
	endpoints, err := member[[]string](o, what, "endpoints")
	if err != nil {
		return b, err
	}
	protocols, err := optional[map[string]string](o, what, "listener_security_protocol_map")
	if err != nil {
		return b, err
	}
	for _, text := range endpoints {
		e, err := parseEndpoint(text)
		if err != nil {
			return b, fmt.Errorf("%s: %w", what, err)
		}
		e.Protocol = e.Listener // before version 4, listeners were named by their protocols
		if p, ok := protocols[e.Listener]; ok {
			e.Protocol = p
		}
		if slices.ContainsFunc(b.Endpoints, func(o election.Endpoint) bool { return o.Listener == e.Listener }) {
			return b, fmt.Errorf("%s: %w: listener %q twice", what, ErrMalformed, clip(e.Listener))
		}
		b.Endpoints = append(b.Endpoints, e)
	}
	if len(b.Endpoints) == 0 {
		return b, fmt.Errorf("%s: %w: no endpoints", what, ErrMalformed)
	}
	return b, nil
}

// decodeFirstBroker reads version 1, of Kafka 0.8: one address.
func decodeFirstBroker(b election.Broker, what string, o object) (election.Broker, error) {
	host, err := member[string](o, what, "host")
	if err != nil {
		return b, err
	}
	port, err := member[int32](o, what, "port")
	if err != nil {
		return b, err
	}
	if host == "" || port < 1 || port > 65535 {
		return b, fmt.Errorf("%s: %w: address %q port %d", what, ErrMalformed, clip(host), port)
	}
	b.Endpoints = []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: host, Port: port}}
	return b, nil
}

// parseEndpoint reads LISTENER://host:port; an IPv6 address may stand in brackets.
func parseEndpoint(text string) (e election.Endpoint, err error) {
	listener, address, ok := strings.Cut(text, "://")
	colon := strings.LastIndexByte(address, ':')
	if !ok || listener == "" || colon < 0 {
		return e, fmt.Errorf("%w: endpoint %q", ErrMalformed, clip(text))
	}
	host := strings.TrimSuffix(strings.TrimPrefix(address[:colon], "["), "]")
	port, err := strconv.ParseUint(address[colon+1:], 10, 16)
	if err != nil || port == 0 || host == "" {
		return e, fmt.Errorf("%w: endpoint %q", ErrMalformed, clip(text))
	}
	return election.Endpoint{Listener: listener, Host: host, Port: int32(port)}, nil
}
