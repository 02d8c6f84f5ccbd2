package gossip

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// Options are the plug-in's part of the YAML file.
type Options struct {
	Join            []string `yaml:"join" doc:"HOST:PORT of the coordination ports of some brokers of the cluster, this one or not; a host may be a name with many addresses. Without any the broker is the first of a cluster"`
	BootstrapExpect int      `yaml:"bootstrap_expect" doc:"how many brokers, none of which has a store yet, have to see one another until they form a cluster; 0 is 1 without join, the number of its addresses when this broker's own is among them, and otherwise never: the broker waits for a cluster that exists"`
	Voters          int      `yaml:"voters" doc:"how many of the brokers that form a cluster vote; the others follow. Later it is changed by barnabas coordination promote and remove alone"`

	Bind      string `yaml:"bind" doc:"HOST:PORT of the coordination port, TCP and UDP; empty is the host of the broker's first listener, and its port plus 10000 (less 10000, where that is too high)"`
	Advertise string `yaml:"advertise" doc:"HOST:PORT at which other brokers reach the coordination port; empty is that of bind, with the host of the first advertised listener where bind has none"`
	Cluster   string `yaml:"cluster" doc:"a name that all brokers of the cluster have, and those of no other cluster in the same network"`
	DataDir   string `yaml:"data_dir" doc:"the directory of the raft store, on a disk that outlives the broker; empty is one beside the first log directory, with its name and .coordination"`

	EncryptionKeys []string `yaml:"encryption_keys" secret:"true" doc:"keys of 16, 24 or 32 bytes in base64, of which all brokers must share one: gossip is encrypted with the first and read with each, and without one nobody is heard on the coordination port"`
	TLS            bool     `yaml:"tls" doc:"whether the coordination port's connections use TLS (gossip's packets don't: they have encryption_keys)"`
	TLSCert        string   `yaml:"tls_cert" doc:"a file with this broker's certificate in PEM, for both ends of connections"`
	TLSKey         string   `yaml:"tls_key" doc:"a file with that certificate's key in PEM"`
	TLSCA          string   `yaml:"tls_ca" doc:"a file of certificates in PEM that sign those of all brokers; who has none of theirs is refused"`
	TLSServerName  string   `yaml:"tls_server_name" doc:"the name that the certificates of other brokers must have; empty for that of the host"`

	Profile           string        `yaml:"profile" doc:"what sets the times that follow: local (one machine), lan or wan"`
	SessionTimeout    time.Duration `yaml:"session_timeout" doc:"how long the raft leader waits for a silent broker before it is taken for dead; 0 is the profile's (1.5s, 2s, 6s)"`
	HeartbeatTimeout  time.Duration `yaml:"heartbeat_timeout" doc:"how long a voter waits for the raft leader before it stands for election; 0 is the profile's (500ms, 500ms, 2s)"`
	ElectionTimeout   time.Duration `yaml:"election_timeout" doc:"how long a candidate waits for votes; 0 is the profile's (500ms, 500ms, 2s)"`
	LeaseTimeout      time.Duration `yaml:"lease_timeout" doc:"how long a raft leader that hears of no majority stays leader; at most heartbeat_timeout; 0 is the profile's (400ms, 400ms, 1.5s)"`
	ProbeInterval     time.Duration `yaml:"probe_interval" doc:"how often gossip asks one broker whether it is there; 0 is the profile's (1s, 1s, 5s)"`
	ProbeTimeout      time.Duration `yaml:"probe_timeout" doc:"how long gossip waits for the answer before it asks through others; 0 is the profile's (500ms, 500ms, 3s)"`
	SuspicionTimeout  time.Duration `yaml:"suspicion_timeout" doc:"how long gossip suspects a broker before it calls it dead, more in clusters above ten; 0 is the profile's (3s, 4s, 30s)"`
	GossipInterval    time.Duration `yaml:"gossip_interval" doc:"how often news are sent on, while there are any; 0 is the profile's (100ms, 200ms, 500ms)"`
	ReclaimTime       time.Duration `yaml:"reclaim_time" doc:"how long a broker must have been dead, for gossip, before another address may have its name; 0 is the profile's (1s, 5s, 15s)"`
	ChangeInterval    time.Duration `yaml:"change_interval" doc:"the least time between two changes of raft's configuration that the raft leader makes by itself; 0 is the profile's (200ms, 500ms, 2s)"`
	SnapshotThreshold int           `yaml:"snapshot_threshold" doc:"how many entries raft's log may hold before they are replaced by a snapshot"`
}

// DefaultOptions are the options that hold where the YAML file says nothing.
func DefaultOptions() Options {
	return Options{Voters: 3, Cluster: "barnabas", Profile: "lan", SnapshotThreshold: 8192}
}

// profile gives the times of a profile. A raft leader that died is missed after a heartbeat timeout, or 1.5 when the voter whose turn it is died with
// it; by then no broker that lives may doubt its session, which it does after five eighths of the session timeout at the earliest.
func profile(name string) (timings, bool) {
	const ms, s = time.Millisecond, time.Second
	switch name {
	case "local":
		return timings{Session: 1500 * ms, Heartbeat: 500 * ms, Election: 500 * ms, Lease: 400 * ms, Probe: s, ProbeTimeout: 500 * ms,
			Suspicion: 3 * s, Gossip: 100 * ms, Sync: 10 * s, Reclaim: s, Change: 200 * ms}, true
	case "lan":
		return timings{Session: 2 * s, Heartbeat: 500 * ms, Election: 500 * ms, Lease: 400 * ms, Probe: s, ProbeTimeout: 500 * ms,
			Suspicion: 4 * s, Gossip: 200 * ms, Sync: 20 * s, Reclaim: 5 * s, Change: 500 * ms}, true
	case "wan":
		return timings{Session: 6 * s, Heartbeat: 2 * s, Election: 2 * s, Lease: 1500 * ms, Probe: 5 * s, ProbeTimeout: 3 * s,
			Suspicion: 30 * s, Gossip: 500 * ms, Sync: 60 * s, Reclaim: 15 * s, Change: 2 * s}, true
	}
	return timings{}, false
}

// timings are all times that a coordination goes by.
type timings struct {
	Session                    time.Duration // of brokers with the raft leader
	Heartbeat, Election, Lease time.Duration // raft's
	Probe, ProbeTimeout        time.Duration // gossip's, like those that follow
	Suspicion, Gossip, Sync    time.Duration
	Reclaim                    time.Duration
	Change                     time.Duration // between changes of raft's configuration
}

// own lists the times that may be set one by one.
func (o Options) own(t *timings) []ownTime {
	return []ownTime{
		{"session_timeout", o.SessionTimeout, &t.Session}, {"heartbeat_timeout", o.HeartbeatTimeout, &t.Heartbeat},
		{"election_timeout", o.ElectionTimeout, &t.Election}, {"lease_timeout", o.LeaseTimeout, &t.Lease},
		{"probe_interval", o.ProbeInterval, &t.Probe}, {"probe_timeout", o.ProbeTimeout, &t.ProbeTimeout},
		{"suspicion_timeout", o.SuspicionTimeout, &t.Suspicion}, {"gossip_interval", o.GossipInterval, &t.Gossip},
		{"reclaim_time", o.ReclaimTime, &t.Reclaim}, {"change_interval", o.ChangeInterval, &t.Change},
	}
}

type ownTime struct {
	key   string
	value time.Duration
	into  *time.Duration
}

// timings are those of the profile, but for those that are set.
func (o Options) timings() timings {
	t, _ := profile(o.Profile)
	for _, own := range o.own(&t) {
		if own.value != 0 {
			*own.into = own.value
		}
	}
	return t
}

// Validate checks the options beyond their types.
func (o Options) Validate() error {
	var errs []error
	fault := func(key, format string, args ...any) {
		errs = append(errs, config.At(key, fmt.Errorf(format, args...)))
	}
	for _, address := range o.Join {
		if err := checkAddress(address, false); err != nil {
			errs = append(errs, config.At("join", err))
		}
	}
	if o.BootstrapExpect < 0 || o.BootstrapExpect > maxExpect {
		fault("bootstrap_expect", "want 0 to %d", maxExpect)
	}
	if o.BootstrapExpect > 1 && len(o.Join) == 0 {
		fault("bootstrap_expect", "want addresses to join, too: alone this broker never sees %d", o.BootstrapExpect)
	}
	if o.Voters < 1 || o.Voters > maxVoters || o.Voters%2 == 0 {
		fault("voters", "want an odd number up to %d: an even one survives no more failures than the one below it", maxVoters)
	}
	if o.Bind != "" {
		if err := checkAddress(o.Bind, true); err != nil {
			errs = append(errs, config.At("bind", err))
		}
	}
	if o.Advertise != "" {
		if err := checkAddress(o.Advertise, false); err != nil {
			errs = append(errs, config.At("advertise", err))
		} else if host, _, _ := net.SplitHostPort(o.Advertise); unspecified(host) {
			fault("advertise", "%s is all addresses of whoever reads it; want one", host)
		}
	}
	if o.Cluster == "" || len(o.Cluster) > 64 || strings.Trim(o.Cluster, nameCharacters) != "" {
		fault("cluster", "want up to 64 letters, digits, '.', '_' and '-'")
	}
	if _, err := o.keys(); err != nil {
		errs = append(errs, config.At("encryption_keys", err))
	}
	errs = append(errs, o.validateTLS()...)
	if _, ok := profile(o.Profile); !ok {
		fault("profile", "want local, lan or wan")
	} else {
		errs = append(errs, o.validateTimings()...)
	}
	if o.SnapshotThreshold < 64 {
		fault("snapshot_threshold", "want at least 64")
	}
	return errors.Join(errs...)
}

const (
	// maxExpect bounds how many brokers may form a cluster at once; more can join it.
	maxExpect = 64
	// maxVoters bounds the voters: each write waits for a majority of them.
	maxVoters      = 9
	nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

func (o Options) validateTLS() (errs []error) {
	switch {
	case !o.TLS && o.TLSCert+o.TLSKey+o.TLSCA+o.TLSServerName != "":
		errs = append(errs, config.At("tls", errors.New("want true, or nothing else about TLS")))
	case o.TLS && (o.TLSCert == "" || o.TLSKey == "" || o.TLSCA == ""):
		errs = append(errs, config.At("tls", errors.New("want tls_cert, tls_key and tls_ca, too: brokers are both ends of these connections")))
	}
	return errs
}

func (o Options) validateTimings() (errs []error) {
	t := o.timings()
	for _, own := range o.own(&timings{}) {
		if own.value != 0 && (own.value < 10*time.Millisecond || own.value > time.Hour) {
			errs = append(errs, config.At(own.key, errors.New("want 0, or 10ms to 1h")))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if t.Lease > t.Heartbeat {
		errs = append(errs, config.At("lease_timeout", fmt.Errorf("want at most heartbeat_timeout (%v): else there could be two raft leaders for a while", t.Heartbeat)))
	}
	if t.Election < t.Heartbeat {
		errs = append(errs, config.At("election_timeout", fmt.Errorf("want at least heartbeat_timeout (%v)", t.Heartbeat)))
	}
	if t.ProbeTimeout > t.Probe {
		errs = append(errs, config.At("probe_timeout", fmt.Errorf("want at most probe_interval (%v)", t.Probe)))
	}
	if t.Suspicion < t.Probe {
		errs = append(errs, config.At("suspicion_timeout", fmt.Errorf("want at least probe_interval (%v)", t.Probe)))
	}
	return errs
}

// keys decodes the encryption keys, that to be used first.
func (o Options) keys() ([][]byte, error) {
	keys := make([][]byte, 0, len(o.EncryptionKeys))
	for i, text := range o.EncryptionKeys {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != 16 && len(key) != 24 && len(key) != 32 {
			return nil, fmt.Errorf("key %d isn't 16, 24 or 32 bytes in base64", i+1) // and isn't shown
		}
		if slices.ContainsFunc(keys, func(k []byte) bool { return string(k) == string(key) }) {
			return nil, fmt.Errorf("key %d is there twice", i+1)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// checkAddress checks HOST:PORT. Where it is to be bound, the host may be empty and the port 0.
func checkAddress(address string, bind bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no HOST:PORT", address)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !bind {
		return fmt.Errorf("%q has no port from 1 to 65535", address)
	}
	if host == "" && !bind || len(host) > 255 || strings.ContainsAny(host, " \t/@") {
		return fmt.Errorf("%q has no host", address)
	}
	return nil
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// plan is what the options and the broker's properties come to.
type plan struct {
	Name      string // in gossip: the broker id, or member.Generated
	Bind      string // HOST:PORT; the port may be 0
	Advertise string // HOST:PORT; an empty host is whatever this machine is reached by, port 0 the one that is bound
	Join      []string
	Expect    int // 0 is to form no cluster
	Voters    int
	DataDir   string
	Keys      [][]byte
	Timings   timings
}

// portOffset is between the port of a broker's first listener and its coordination port, where that isn't given.
const portOffset = 10000

// plan completes the options with the broker's properties; dataDir is its first log directory.
func (o Options) plan(properties map[string]string, dataDir string) (plan, error) {
	if err := o.Validate(); err != nil {
		return plan{}, err
	}
	broker, err := kafka.Layers{Static: properties}.BrokerConfig()
	if err != nil {
		return plan{}, err
	}
	p := plan{Bind: o.Bind, Advertise: o.Advertise, Join: o.Join, Expect: o.BootstrapExpect, Voters: o.Voters, DataDir: o.DataDir, Timings: o.timings()}
	if broker.BrokerID >= 0 {
		p.Name = strconv.Itoa(int(broker.BrokerID))
	} else if p.Name, err = savedName(dataDir); err != nil {
		return plan{}, err
	}
	if p.Keys, err = o.keys(); err != nil {
		return plan{}, err
	}
	first := broker.Listeners[0]
	if p.Bind == "" {
		port := first.Port
		switch {
		case port == 0:
		case port+portOffset <= 65535:
			port += portOffset
		default:
			port -= portOffset
		}
		p.Bind = net.JoinHostPort(first.Host, strconv.Itoa(port))
	}
	if p.Advertise == "" {
		host, port, _ := net.SplitHostPort(p.Bind)
		if unspecified(host) {
			host = ""
			if len(broker.Advertised) > 0 && !unspecified(broker.Advertised[0].Host) {
				host = broker.Advertised[0].Host
			}
		}
		p.Advertise = net.JoinHostPort(host, port)
	}
	if p.DataDir == "" {
		if dataDir == "" {
			return plan{}, errors.New("memberlist: no data directory, and no data_dir")
		}
		p.DataDir = filepath.Clean(dataDir) + ".coordination"
	}
	switch {
	case p.Expect > 0:
	case len(p.Join) == 0:
		p.Expect = 1
	case slices.Contains(p.Join, p.Advertise):
		p.Expect = len(p.Join)
	}
	return p, nil
}
