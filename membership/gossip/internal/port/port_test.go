package port

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func identity(t *testing.T, name string, cluster member.ClusterID) *member.Identity {
	t.Helper()
	id, err := member.OpenIdentity(t.TempDir(), name)
	require.NoError(t, err)
	if cluster != "" {
		require.NoError(t, id.Adopt(cluster))
	}
	return id
}

func keys(k ...string) func() [][]byte {
	var list [][]byte
	for _, key := range k {
		list = append(list, []byte(key))
	}
	return func() [][]byte { return list }
}

func listen(t *testing.T, c Config) *Port {
	t.Helper()
	if c.Name == "" {
		c.Name = "test"
	}
	if c.Keys == nil {
		c.Keys = keys()
	}
	c.Bind, c.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	p, err := Listen(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// echo serves a kind by sending back what comes, and tells who spoke.
func echo(t *testing.T, p *Port, kind Kind) <-chan member.ServerID {
	from := make(chan member.ServerID, 10)
	done := make(chan struct{})
	l := p.Listener(kind)
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			from <- conn.(*Conn).From()
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return from
}

func say(t *testing.T, conn net.Conn) {
	t.Helper()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	_, err := io.WriteString(conn, "hello")
	require.NoError(t, err)
	got := make([]byte, 5)
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
}

func TestPort(t *testing.T) {
	cluster, foreign := member.NewClusterID(), member.NewClusterID()
	server := identity(t, "1", cluster)
	p := listen(t, Config{Dialer: Dialer{Identity: server, Keys: keys("new key", "old key")}})
	froms := map[Kind]<-chan member.ServerID{}
	for _, kind := range kinds() {
		froms[kind] = echo(t, p, kind)
	}
	client := identity(t, "2", cluster)
	tests := []struct {
		what   string
		d      Dialer
		kind   Kind
		to     member.ServerID
		refuse string
	}{
		{what: "raft", d: Dialer{Identity: client, Keys: keys("new key")}, kind: Raft, to: server.Server()},
		{what: "whoever answers", d: Dialer{Identity: client, Keys: keys("new key")}, kind: Requests},
		{what: "an older key", d: Dialer{Identity: client, Keys: keys("old key", "new key")}, kind: Gossip},
		{what: "a command", d: Dialer{Keys: keys("new key")}, kind: Commands},
		{what: "gossip before there is raft", d: Dialer{Identity: identity(t, "3", ""), Keys: keys("new key")}, kind: Gossip},
		{what: "itself", d: Dialer{Identity: server, Keys: keys("new key")}, kind: Requests},

		{what: "wrong key", d: Dialer{Identity: client, Keys: keys("wrong")}, kind: Raft, refuse: "none of the encryption keys"},
		{what: "no key", d: Dialer{Identity: client, Keys: keys()}, kind: Gossip, refuse: "none of the encryption keys"},
		{what: "another name", d: Dialer{Identity: client, Keys: keys("new key"), Name: "other"}, kind: Gossip, refuse: `belongs to the cluster \"other\"`},
		{what: "foreign raft", d: Dialer{Identity: identity(t, "2", foreign), Keys: keys("new key")}, kind: Raft, refuse: "belongs to the raft cluster " + string(foreign)},
		{what: "foreign gossip", d: Dialer{Identity: identity(t, "2", foreign), Keys: keys("new key")}, kind: Gossip, refuse: "belongs to the raft cluster " + string(foreign)},
		{what: "another server", d: Dialer{Identity: client, Keys: keys("new key")}, kind: Raft, to: member.NewServerID("1"), refuse: "this broker is " + string(server.Server())},
		{what: "raft of nobody", d: Dialer{Keys: keys("new key")}, kind: Raft, refuse: "which server"},
		{what: "raft without a cluster", d: Dialer{Identity: identity(t, "2", ""), Keys: keys("new key")}, kind: Raft, to: server.Server(), refuse: "no raft cluster yet"},
		{what: "a copied directory", d: Dialer{Identity: server, Keys: keys("new key")}, kind: Gossip, refuse: "copied"},
		{what: "an unknown kind", d: Dialer{Identity: client, Keys: keys("new key")}, kind: "else", refuse: "knows no connections"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if tt.d.Name == "" {
				tt.d.Name = "test"
			}
			conn, err := tt.d.Dial(t.Context(), tt.kind, tt.to, p.Addr().String())
			if tt.refuse != "" {
				require.ErrorIs(t, err, ErrRefused)
				require.ErrorContains(t, err, tt.refuse)
				return
			}
			require.NoError(t, err)
			say(t, conn)
			want := member.ServerID("")
			if tt.d.Identity != nil {
				want = tt.d.Identity.Server()
			}
			assert.Equal(t, want, <-froms[tt.kind])
		})
	}
	assert.Equal(t, cluster, server.Cluster())
}

func TestPortOfClusterWithoutKeysRefusesThem(t *testing.T) {
	p := listen(t, Config{Dialer: Dialer{Identity: identity(t, "1", "")}})
	d := Dialer{Name: "test", Identity: identity(t, "2", ""), Keys: keys("a key")}
	_, err := d.Dial(t.Context(), Gossip, "", p.Addr().String())
	require.ErrorContains(t, err, "this broker has none")
}

func TestDialerRefusesServerWithoutItsKey(t *testing.T) {
	// A server that lets everybody in, without being able to prove anything.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.ReadFull(conn, make([]byte, len(opening)))
		writeFrame(conn, hello{Nonce: make([]byte, nonceSize)}, nil, "", nil)
		var r request
		readFrame(conn, &r)
		writeFrame(conn, answer{}, []byte("another key"), "answer", r.Nonce)
	}()
	d := Dialer{Name: "test", Keys: keys("a key")}
	_, err = d.Dial(t.Context(), Commands, "", l.Addr().String())
	require.ErrorContains(t, err, "prove")
	<-done
}

func TestFreshServerIsAdoptedByTheLeaderThatMeansIt(t *testing.T) {
	cluster := member.NewClusterID()
	fresh := identity(t, "2", "")
	p := listen(t, Config{Dialer: Dialer{Identity: fresh}})
	echo(t, p, Raft)
	d := Dialer{Name: "test", Identity: identity(t, "1", cluster), Keys: keys()}
	_, err := d.Dial(t.Context(), Raft, "", p.Addr().String())
	require.ErrorContains(t, err, "no raft cluster yet", "who means nobody in particular adopts nobody")
	_, err = d.Dial(t.Context(), Requests, fresh.Server(), p.Addr().String())
	require.ErrorContains(t, err, "no raft cluster yet")
	require.Empty(t, fresh.Cluster())
	conn, err := d.Dial(t.Context(), Raft, fresh.Server(), p.Addr().String())
	require.NoError(t, err)
	say(t, conn)
	assert.Equal(t, cluster, fresh.Cluster())
	other := Dialer{Name: "test", Identity: identity(t, "1", member.NewClusterID()), Keys: keys()}
	_, err = other.Dial(t.Context(), Raft, fresh.Server(), p.Addr().String())
	require.ErrorIs(t, err, ErrRefused)
}

func TestGarbageOnThePort(t *testing.T) {
	p := listen(t, Config{Dialer: Dialer{Identity: identity(t, "1", "")}})
	echo(t, p, Commands)
	long := append([]byte(opening+magic), 0xff, 0xff)
	for _, garbage := range [][]byte{nil, []byte("GET / HTTP/1.1\r\n\r\n"), {0x16, 0x03, 0x01, 0x00}, []byte(magic), []byte(opening + "BNC2\x00\x00"), long,
		[]byte(opening + magic + "\x00\x02{}" + string(make([]byte, macSize))), bytes.Repeat([]byte{0}, 1<<16)} {
		conn, err := net.Dial("tcp", p.Addr().String())
		require.NoError(t, err)
		conn.SetDeadline(time.Now().Add(time.Minute))
		conn.Write(garbage)
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn) // until the port has closed it
		conn.Close()
	}
	d := Dialer{Name: "test", Keys: keys()}
	conn, err := d.Dial(t.Context(), Commands, "", p.Addr().String())
	require.NoError(t, err)
	say(t, conn)
}

func TestCloseEndsHandshakesAndListeners(t *testing.T) {
	p := listen(t, Config{Dialer: Dialer{Identity: identity(t, "1", "")}})
	conn, err := net.Dial("tcp", p.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, opening)
	require.NoError(t, err)
	_, _, err = readFrame(conn, new(hello))
	require.NoError(t, err)
	require.NoError(t, p.Close())
	_, err = p.Listener(Raft).Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, p.Close(), "once more is nothing new")
}

func TestListenerThatIsClosedRefuses(t *testing.T) {
	p := listen(t, Config{Dialer: Dialer{Identity: identity(t, "1", "")}})
	require.NoError(t, p.Listener(Commands).Close())
	d := Dialer{Name: "test", Keys: keys()}
	_, err := d.Dial(t.Context(), Commands, "", p.Addr().String())
	require.ErrorContains(t, err, "takes no connections")
}

func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(errors.New("enough"))
	d := Dialer{Name: "test", Keys: keys()}
	_, err = d.Dial(ctx, Commands, "", l.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
}

// certificate makes one for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	clientTLS := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS13}
	p := listen(t, Config{Dialer: Dialer{Identity: identity(t, "1", "")}, ServerTLS: serverTLS})
	echo(t, p, Commands)
	plain := listen(t, Config{Dialer: Dialer{Identity: identity(t, "1", "")}})

	d := Dialer{Name: "test", Keys: keys(), TLS: clientTLS}
	conn, err := d.Dial(t.Context(), Commands, "", p.Addr().String())
	require.NoError(t, err)
	say(t, conn)
	_, err = d.Dial(t.Context(), Commands, "", plain.Addr().String())
	require.ErrorContains(t, err, "TLS", "a port without TLS")

	d.TLS = nil
	_, err = d.Dial(t.Context(), Commands, "", p.Addr().String())
	require.ErrorContains(t, err, "without TLS", "a client without TLS")
	d.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
	_, err = d.Dial(t.Context(), Commands, "", p.Addr().String())
	require.Error(t, err, "a client without a certificate")
	d.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	_, err = d.Dial(t.Context(), Commands, "", p.Addr().String())
	require.ErrorContains(t, err, "TLS", "a server that nobody vouches for")
}

func FuzzReadFrame(f *testing.F) {
	var good bytes.Buffer
	require.NoError(f, writeFrame(&good, request{Kind: Raft, Name: "test", Nonce: make([]byte, nonceSize)}, []byte("key"), "request", nil))
	f.Add(good.Bytes())
	f.Add([]byte(magic + "\xff\xff"))
	f.Add([]byte(magic + "\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r request
		body, sum, err := readFrame(bytes.NewReader(b), &r)
		if err == nil && (len(body) > maxBody || len(sum) != macSize) {
			t.Fatalf("a body of %d bytes, a MAC of %d", len(body), len(sum))
		}
	})
}
