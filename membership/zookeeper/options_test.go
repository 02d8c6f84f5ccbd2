package zookeeper

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/configtest"
	"github.com/barnabas-mq/barnabas/core/election"
)

func TestOptions(t *testing.T) {
	configtest.CheckStruct(t, DefaultOptions())
	for yaml, want := range map[string]string{
		"connect: 'h1:2181,h2/kafka'\nsession_timeout: 6s\nset_acl: true\nuser: u\npassword: p": "",
		"tls: true\ntls_ca: ca.pem\ntls_cert: c.pem\ntls_key: k.pem\ntls_server_name: zk":       "",
		"connect: 'h1:x'":                "no host:port",
		"connect: 'h1:0'":                "no host:port",
		"connect: ',h1'":                 "no host:port",
		"connect: 'h1/a//b'":             "no path",
		"connect: 'h1/../b'":             "no path",
		"session_timeout: 10ms":          "100ms to 1h",
		"connection_timeout: -1s":        "0 or more",
		"user: u":                        "a user and a password",
		"user: 'a:b'\npassword: p":       "no colon",
		"set_acl: true":                  "want a user",
		"tls_ca: ca.pem":                 "nothing else about TLS",
		"tls: true\ntls_cert: c.pem":     "a certificate and a key",
		"conect: h":                      "unknown key",
		"session_timeout: 18":            "session_timeout",
		"connect: 'h1:2181'\nuser: [u]":  "user",
		"tls: maybe":                     "tls",
		"tls_key: k.pem\ntls: false":     "nothing else about TLS",
		"set_acl: true\npassword: p":     "a user and a password",
		"connect: 'h1:70000/a'":          "no host:port",
		"connect: \"h1/a\\u0001\"":       "no path",
		"connection_timeout: 'for ever'": "connection_timeout",
	} {
		section, err := config.Parse("x.yaml", []byte(yaml))
		require.NoError(t, err)
		if err := NewFactory().Check(section); want == "" {
			require.NoError(t, err, yaml)
		} else {
			require.ErrorContains(t, err, want, yaml)
		}
	}
}

func TestConnect(t *testing.T) {
	for connect, want := range map[string]struct {
		servers []string
		root    string
	}{
		"h":                       {[]string{"h:2181"}, ""},
		"h/":                      {[]string{"h:2181"}, ""},
		" h1:1 , h2:2/kafka/a/":   {[]string{"h1:1", "h2:2"}, "/kafka/a"},
		"[::1]:2182,[fe80::1]/x":  {[]string{"[::1]:2182", "[fe80::1]:2181"}, "/x"},
		"10.0.0.1:2181,10.0.0.2/": {[]string{"10.0.0.1:2181", "10.0.0.2:2181"}, ""},
	} {
		servers, root, err := parseConnect(connect)
		require.NoError(t, err, connect)
		require.Equal(t, want.servers, servers, connect)
		require.Equal(t, want.root, root, connect)
	}
}

func TestPropertiesFillIn(t *testing.T) {
	_, err := New(DefaultOptions(), election.Settings{})
	require.ErrorContains(t, err, "no servers: set election.zookeeper.connect, or zookeeper.connect among the broker's properties")
	properties := map[string]string{"zookeeper.connect": "h1:1/kafka", "zookeeper.session.timeout.ms": "6000", "zookeeper.set.acl": "true"}
	_, err = New(DefaultOptions(), election.Settings{Properties: properties})
	require.ErrorContains(t, err, "want a user")
	made, err := New(Options{User: "u", Password: "p"}, election.Settings{Properties: properties})
	require.NoError(t, err)
	o := made.(*coordination).o
	require.Equal(t, 6*time.Second, o.SessionTimeout)
	require.Equal(t, 6*time.Second, o.ConnectionTimeout, "Kafka's default is the session timeout")
	require.True(t, o.SetACL)
	require.Equal(t, "/kafka", made.(*coordination).root)
	made, err = New(Options{Connect: "h2"}, election.Settings{Properties: map[string]string{"zookeeper.connect": "h1"}})
	require.NoError(t, err)
	require.Equal(t, []string{"h2:2181"}, made.(*coordination).servers)
	require.Equal(t, 18*time.Second, made.(*coordination).o.SessionTimeout)
	for name, value := range map[string]string{"zookeeper.session.timeout.ms": "soon", "zookeeper.connection.timeout.ms": "-5", "zookeeper.connect": "h:x"} {
		properties := map[string]string{"zookeeper.connect": "h", name: value}
		_, err := New(DefaultOptions(), election.Settings{Properties: properties})
		require.Error(t, err, name)
	}
}

func TestTLSFiles(t *testing.T) {
	none, err := Options{}.tlsConfig()
	require.NoError(t, err)
	require.Nil(t, none)
	file := filepath.Join(t.TempDir(), "f.pem")
	require.NoError(t, os.WriteFile(file, []byte("no pem"), 0o600))
	for want, o := range map[string]Options{
		"tls_ca: open":                   {TLS: true, TLSCA: file + ".none"},
		"has no certificate":             {TLS: true, TLSCA: file},
		"tls_cert: tls: failed to find":  {TLS: true, TLSCert: file, TLSKey: file},
		"tls_cert: open " + file + ".no": {TLS: true, TLSCert: file + ".none", TLSKey: file},
	} {
		_, err := o.tlsConfig()
		require.ErrorContains(t, err, want)
	}
}
