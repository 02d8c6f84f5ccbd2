package zookeeper

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key, a.file = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign makes a certificate and a file with it and its key.
func (a *authority) sign(name string, tmpl *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	tmpl.SerialNumber, tmpl.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := tmpl, key
	if a.cert != nil {
		parent, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, by)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	var b bytes.Buffer
	require.NoError(a.t, pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	require.NoError(a.t, pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
	file := filepath.Join(a.dir, name+".pem")
	require.NoError(a.t, os.WriteFile(file, b.Bytes(), 0o600))
	return cert, key, file
}

func (a *authority) certificate(name string, usage x509.ExtKeyUsage) string {
	_, _, file := a.sign(name, &x509.Certificate{DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}})
	return file
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	secure := l.Addr().(*net.TCPAddr)
	require.NoError(t, l.Close())
	e, err := zktest.Start(inTime(t), zktest.Options{Dir: t.TempDir(), Config: []string{
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		fmt.Sprintf("secureClientPort=%d\nsecureClientPortAddress=127.0.0.1", secure.Port),
		"ssl.clientAuth=need\nssl.hostnameVerification=false",
		"ssl.keyStore.type=PEM\nssl.keyStore.location=" + a.certificate("server", x509.ExtKeyUsageServerAuth),
		"ssl.trustStore.type=PEM\nssl.trustStore.location=" + a.file,
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Stop()) }()

	mine := a.certificate("broker", x509.ExtKeyUsageClientAuth)
	o := Options{Connect: secure.String() + "/kafka", SessionTimeout: 10 * time.Second, ConnectionTimeout: patience,
		TLS: true, TLSCA: a.file, TLSCert: mine, TLSKey: mine}
	c := begin(t, o, "")
	require.Equal(t, int32(1), elect(t, c, 1).Epoch())

	for want, change := range map[string]func(*Options){
		"certificate signed by unknown authority": func(o *Options) { o.TLSCA = stranger.file },
		"not other":                  func(o *Options) { o.TLSServerName = "other" },
		"none of " + secure.String(): func(o *Options) { o.TLSCert, o.TLSKey = "", "" },
	} {
		wrong := o
		wrong.ConnectionTimeout = 2 * time.Second
		change(&wrong)
		made, err := New(wrong, election.Settings{})
		require.NoError(t, err)
		err = made.Start(context.Background())
		require.ErrorIs(t, err, election.ErrUnavailable)
		require.ErrorContains(t, err, want)
	}
}
