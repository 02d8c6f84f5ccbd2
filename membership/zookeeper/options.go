package zookeeper

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the plug-in's part of the YAML file.
type Options struct {
	Connect           string        `yaml:"connect" doc:"ZooKeeper's servers, with an optional path below which everything is kept: host1:2181,host2:2181/kafka; an empty one is the broker's zookeeper.connect"`
	SessionTimeout    time.Duration `yaml:"session_timeout" doc:"how long ZooKeeper waits for a silent broker before it is taken for dead; 0 is the broker's zookeeper.session.timeout.ms (18s)"`
	ConnectionTimeout time.Duration `yaml:"connection_timeout" doc:"how long a start waits for a connection; 0 is the broker's zookeeper.connection.timeout.ms, or else the session timeout"`
	SetACL            bool          `yaml:"set_acl" doc:"whether nodes may be changed by this user alone (and be read by all, unless they are secret), as zookeeper.set.acl does"`
	User              string        `yaml:"user" doc:"for ZooKeeper's digest authentication; empty for none"`
	Password          string        `yaml:"password" secret:"true" doc:"of that user"`
	TLS               bool          `yaml:"tls" doc:"whether connections to ZooKeeper use TLS, to its secure port"`
	TLSCA             string        `yaml:"tls_ca" doc:"a file of certificates in PEM that sign ZooKeeper's; empty for those of the system"`
	TLSCert           string        `yaml:"tls_cert" doc:"a file with this broker's certificate in PEM, when ZooKeeper asks for one"`
	TLSKey            string        `yaml:"tls_key" doc:"a file with that certificate's key in PEM"`
	TLSServerName     string        `yaml:"tls_server_name" doc:"the name that ZooKeeper's certificates must have; empty for the host's"`
}

// DefaultOptions are the options that hold where the YAML file says nothing.
func DefaultOptions() Options { return Options{} }

// Validate checks the options beyond their types.
func (o Options) Validate() error {
	var errs []error
	if o.Connect != "" {
		if _, _, err := parseConnect(o.Connect); err != nil {
			errs = append(errs, config.At("connect", err))
		}
	}
	if o.SessionTimeout != 0 && (o.SessionTimeout < 100*time.Millisecond || o.SessionTimeout > time.Hour) {
		errs = append(errs, config.At("session_timeout", errors.New("want 0, or 100ms to 1h")))
	}
	if o.ConnectionTimeout < 0 {
		errs = append(errs, config.At("connection_timeout", errors.New("want 0 or more")))
	}
	if (o.User == "") != (o.Password == "") {
		errs = append(errs, config.At("user", errors.New("want a user and a password, or neither")))
	}
	if strings.Contains(o.User, ":") {
		errs = append(errs, config.At("user", errors.New("want no colon in it: ZooKeeper's digest can't have one")))
	}
	if o.SetACL && o.User == "" {
		errs = append(errs, config.At("set_acl", errors.New("want a user: nodes that belong to nobody could be changed by nobody")))
	}
	if !o.TLS && o.TLSCA+o.TLSCert+o.TLSKey+o.TLSServerName != "" {
		errs = append(errs, config.At("tls", errors.New("want true, or nothing else about TLS")))
	}
	if (o.TLSCert == "") != (o.TLSKey == "") {
		errs = append(errs, config.At("tls_cert", errors.New("want a certificate and a key, or neither")))
	}
	return errors.Join(errs...)
}

// NewFactory makes the coordination named "zookeeper".
func NewFactory() election.Factory {
	return plugin.NewFactory("zookeeper", "several brokers, which agree through ZooKeeper in Apache Kafka's own nodes", DefaultOptions, New)
}

// The properties of a Kafka broker that hold where the options say nothing.
const (
	propertyConnect           = "zookeeper.connect"
	propertySessionTimeout    = "zookeeper.session.timeout.ms"
	propertyConnectionTimeout = "zookeeper.connection.timeout.ms"
	propertySetACL            = "zookeeper.set.acl"
)

// defaultSessionTimeout is Kafka's.
const defaultSessionTimeout = 18 * time.Second

// complete fills in what the options leave to the broker's properties.
func (o Options) complete(properties map[string]string) (Options, error) {
	if o.Connect == "" {
		if o.Connect = properties[propertyConnect]; o.Connect == "" {
			return o, errors.New("zookeeper: no servers: set election.zookeeper.connect, or zookeeper.connect among the broker's properties")
		}
	}
	for _, p := range []struct {
		name string
		to   *time.Duration
	}{{propertySessionTimeout, &o.SessionTimeout}, {propertyConnectionTimeout, &o.ConnectionTimeout}} {
		text := properties[p.name]
		if *p.to != 0 || text == "" {
			continue
		}
		ms, err := strconv.ParseInt(text, 10, 32)
		if err != nil || ms <= 0 {
			return o, fmt.Errorf("zookeeper: %s is %q: want milliseconds", p.name, text)
		}
		*p.to = time.Duration(ms) * time.Millisecond
	}
	o.SetACL = o.SetACL || properties[propertySetACL] == "true"
	if o.SessionTimeout == 0 {
		o.SessionTimeout = defaultSessionTimeout
	}
	if o.ConnectionTimeout == 0 {
		o.ConnectionTimeout = o.SessionTimeout
	}
	return o, o.Validate()
}

// parseConnect reads "host:port,host:port/root". A host without a port gets ZooKeeper's.
func parseConnect(connect string) (servers []string, root string, err error) {
	hosts := connect
	if slash := strings.IndexByte(connect, '/'); slash >= 0 {
		hosts, root = connect[:slash], connect[slash:]
	}
	if root = strings.TrimRight(root, "/"); root != "" {
		for part := range strings.SplitSeq(root[1:], "/") {
			if !isName(part) {
				return nil, "", fmt.Errorf("%q is no path in ZooKeeper", root)
			}
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		host = strings.TrimSpace(host)
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), "2181"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || name == "" || strings.ContainsAny(name, " \t") {
			return nil, "", fmt.Errorf("%q is no host:port", host)
		}
		servers = append(servers, net.JoinHostPort(name, port))
	}
	return servers, root, nil
}

// auth is what ZooKeeper's digest authentication takes; nil for none.
func (o Options) auth() []byte {
	if o.User == "" {
		return nil
	}
	return []byte(o.User + ":" + o.Password)
}

// tlsConfig reads the files that the options name. It returns nil when there is no TLS.
func (o Options) tlsConfig() (*tls.Config, error) {
	if !o.TLS {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.TLSServerName}
	if o.TLSCA != "" {
		pem, err := os.ReadFile(o.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("zookeeper: tls_ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("zookeeper: tls_ca: %s has no certificate in PEM", o.TLSCA)
		}
	}
	if o.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("zookeeper: tls_cert: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}
