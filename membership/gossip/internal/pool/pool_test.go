package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
)

func TestMain(m *testing.M) {
	// A probe that is under way when a pool stops ends within its interval: memberlist can't be told.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// logged is what a server logs.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// server is a pool with all that belongs to it.
type server struct {
	*Pool
	port *port.Port
	id   *member.Identity
	log  *logged
	dead bool
}

type setup struct {
	name    string
	label   string
	cluster member.ClusterID
	keys    [][]byte
	join    []*server
	dir     string // of another server, to be the same
}

func start(t *testing.T, s setup) *server {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	if s.label == "" {
		s.label = "test"
	}
	id, err := member.OpenIdentity(s.dir, s.name)
	require.NoError(t, err)
	if s.cluster != "" {
		require.NoError(t, id.Adopt(s.cluster))
	}
	var ring *memberlist.Keyring
	keys := func() [][]byte { return nil }
	if len(s.keys) > 0 {
		ring, err = memberlist.NewKeyring(s.keys, s.keys[0])
		require.NoError(t, err)
		keys = ring.GetKeys
	}
	v := &server{id: id, log: &logged{}}
	logger := slog.New(slog.NewTextHandler(v.log, &slog.HandlerOptions{Level: slog.LevelInfo})).With("of", s.name)
	v.port, err = port.Listen(port.Config{Dialer: port.Dialer{Name: s.label, Identity: id, Keys: keys}, Bind: "127.0.0.1:0", Logger: logger})
	require.NoError(t, err)
	address, ip, err := Advertise(t.Context(), "127.0.0.1:0", v.port.Addr())
	require.NoError(t, err)
	var join []string
	for _, other := range s.join {
		join = append(join, other.port.Addr().String())
	}
	v.Pool, err = Start(Config{Name: NodeName(s.name, id.Server()), Label: s.label, Port: v.port, Identity: id, Advertise: address, IP: ip, Join: join, Keyring: ring, Logger: logger,
		Timings: Timings{Probe: 200 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond, Suspicion: 400 * time.Millisecond, Gossip: 20 * time.Millisecond,
			Sync: 2 * time.Second, Reclaim: 300 * time.Millisecond}})
	require.NoError(t, err)
	t.Cleanup(v.kill)
	return v
}

func (v *server) kill() {
	if !v.dead {
		v.dead = true
		v.port.Close()
		v.Kill()
	}
}

func (v *server) leave(t *testing.T) {
	require.NoError(t, v.Stop(context.Background()))
	v.port.Close()
	v.dead = true
}

// sees says what a server knows of another.
func (v *server) sees(name string) (n Node, ok bool) {
	for _, n := range v.Nodes() {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, time.Minute, 10*time.Millisecond, what)
}

func meet(t *testing.T, all ...*server) {
	t.Helper()
	for _, v := range all {
		for _, other := range all {
			if v != other {
				eventually(t, "they find each other", func() bool {
					n, ok := v.sees(other.c.Name)
					return ok && !n.Gone && n.Server == other.id.Server()
				})
			}
		}
	}
}

func TestServersFindEachOther(t *testing.T) {
	a := start(t, setup{name: "1"})
	b := start(t, setup{name: "2", join: []*server{a}})
	c := start(t, setup{name: "new", join: []*server{b}})
	meet(t, a, b, c)
	assert.Equal(t, b.port.Addr().String(), a.Locate(b.id.Server()))
	assert.Empty(t, a.Locate(member.NewServerID("2")))

	cluster := member.NewClusterID()
	require.NoError(t, b.id.Adopt(cluster))
	b.SetStore(true)
	eventually(t, "what it says of itself arrives", func() bool {
		n, _ := c.sees("2")
		return n.Store && n.Cluster == cluster
	})
	assert.Equal(t, map[string]Opinion{"1": Alive, "2": Alive, c.c.Name: Alive}, a.Survey())

	b.leave(t)
	for _, v := range []*server{a, c} {
		eventually(t, "it has left", func() bool { n, _ := v.sees("2"); return n.Gone })
		eventually(t, "and that is known", func() bool { return v.Survey()["2"] == Left })
	}
	c.kill()
	eventually(t, "a dead one is suspected, then dead", func() bool { return a.Survey()[c.c.Name] == Dead })
	n, _ := a.sees(c.c.Name)
	assert.True(t, n.Gone)
	assert.Empty(t, a.Locate(c.id.Server()))
}

// TestReturn is case A25: a server comes back under its name at another address.
func TestReturn(t *testing.T) {
	for _, how := range []string{"killed, at once", "killed, when it is known to be dead", "after it has left"} {
		t.Run(how, func(t *testing.T) {
			a := start(t, setup{name: "1"})
			b := start(t, setup{name: "2", join: []*server{a}})
			c := start(t, setup{name: "3", join: []*server{a}})
			meet(t, a, b, c)
			switch how {
			case "after it has left":
				c.leave(t)
			default:
				c.kill()
			}
			if how != "killed, at once" {
				eventually(t, "it is gone", func() bool { n, _ := a.sees("3"); return n.Gone })
			}
			again := start(t, setup{name: "3", dir: c.id.Dir(), join: []*server{a, b}})
			for _, v := range []*server{a, b} {
				eventually(t, "the new address is known", func() bool {
					n, _ := v.sees("3")
					return !n.Gone && n.Address == again.port.Addr().String()
				})
			}
			meet(t, a, b, again)
			assert.NoError(t, again.Err())
		})
	}
}

func TestSecondServerOfOneNameIsRefusedAndToldSo(t *testing.T) {
	for what, dir := range map[string]bool{"another server": false, "a copied directory": true} {
		t.Run(what, func(t *testing.T) {
			a := start(t, setup{name: "1"})
			b := start(t, setup{name: "2", join: []*server{a}})
			meet(t, a, b)
			s := setup{name: "2", join: []*server{a, b}}
			if dir {
				s.dir = t.TempDir()
				text, err := os.ReadFile(b.id.Dir() + "/" + member.IdentityFile)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(s.dir+"/"+member.IdentityFile, text, 0o644))
			}
			second := start(t, s)
			eventually(t, "it gives up", func() bool { return second.Err() != nil })
			require.ErrorIs(t, second.Err(), ErrNameTaken)
			require.ErrorContains(t, second.Err(), b.port.Addr().String())
			assert.Contains(t, second.log.String(), "takes no part in its cluster")
			n, _ := a.sees("2")
			assert.Equal(t, b.port.Addr().String(), n.Address, "the first is left alone")
			assert.False(t, n.Gone)
			assert.NoError(t, b.Err())
		})
	}
}

func TestServersOfOtherKinds(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	cluster := member.NewClusterID()
	tests := map[string]struct {
		of, other setup
		want      string // in the log of the first
	}{
		"another cluster's name": {setup{}, setup{label: "else"}, `cluster \"else\"`},
		"another raft cluster":   {setup{cluster: cluster}, setup{cluster: member.NewClusterID()}, "belongs to the raft cluster"},
		"another key":            {setup{keys: [][]byte{key(1)}}, setup{keys: [][]byte{key(2)}}, "none of the encryption keys"},
		"no key":                 {setup{keys: [][]byte{key(1)}}, setup{}, "none of the encryption keys"},
		"a key of its own":       {setup{}, setup{keys: [][]byte{key(1)}}, "this broker has none"},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			tt.of.name, tt.other.name = "1", "2"
			a := start(t, tt.of)
			tt.other.join = []*server{a}
			b := start(t, tt.other)
			eventually(t, "it is refused and named", func() bool { return strings.Contains(a.log.String(), tt.want) })
			_, known := a.sees("2")
			assert.False(t, known)
			_, known = b.sees("1")
			assert.False(t, known)
		})
	}
}

func TestKeysRotate(t *testing.T) {
	old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 16)
	a := start(t, setup{name: "1", keys: [][]byte{old, fresh}})
	b := start(t, setup{name: "2", keys: [][]byte{fresh, old}, join: []*server{a}})
	c := start(t, setup{name: "3", keys: [][]byte{fresh}, join: []*server{b}})
	eventually(t, "b and c speak with the fresh key", func() bool { _, ok := c.sees("2"); return ok })
	meet(t, a, b)
}

func TestFreshServerDoesntJoinTwoClusters(t *testing.T) {
	a := start(t, setup{name: "1", cluster: member.NewClusterID()})
	b := start(t, setup{name: "2", cluster: member.NewClusterID()})
	c := start(t, setup{name: "3", join: []*server{a, b}})
	eventually(t, "it sees both", func() bool { return len(c.Nodes()) == 2 })
	require.NoError(t, c.id.Adopt(a.id.Cluster()))
	c.SetStore(true)
	eventually(t, "the one that it belongs to knows", func() bool { n, _ := a.sees("3"); return n.Store })
	_, sees := c.sees("2")
	assert.False(t, sees, "the other isn't seen any more")
	_, sees = a.sees("2")
	assert.False(t, sees)
	_, sees = b.sees("1")
	assert.False(t, sees)
}

func TestLaterVersionIsRefused(t *testing.T) {
	a := start(t, setup{name: "1"})
	n := &memberlist.Node{Name: "2", Addr: net.IPv4(127, 0, 0, 1), Port: 1, Meta: []byte(`{"format":2,"else":true}`)}
	require.ErrorIs(t, a.NotifyAlive(n), ErrNewer)
	assert.Contains(t, a.log.String(), "later version")
}

func TestHostileServers(t *testing.T) {
	a := start(t, setup{name: "1"})
	good := Meta{Format: 1, Server: member.NewServerID("2"), Address: "127.0.0.1:9"}
	for what, change := range map[string]func(*memberlist.Node, *Meta){
		"name with a path":     func(n *memberlist.Node, _ *Meta) { n.Name = "../2" },
		"no name":              func(n *memberlist.Node, _ *Meta) { n.Name = "" },
		"negative name":        func(n *memberlist.Node, _ *Meta) { n.Name = "-1" },
		"long name":            func(n *memberlist.Node, _ *Meta) { n.Name = strings.Repeat("1", 300) },
		"short address":        func(n *memberlist.Node, _ *Meta) { n.Addr = []byte{1, 2} },
		"unspecified address":  func(n *memberlist.Node, _ *Meta) { n.Addr = net.IPv4zero },
		"server that is none":  func(_ *memberlist.Node, m *Meta) { m.Server = "2" },
		"cluster that is none": func(_ *memberlist.Node, m *Meta) { m.Cluster = "x" },
		"no coordination port": func(_ *memberlist.Node, m *Meta) { m.Address = "x" },
		"format 0":             func(_ *memberlist.Node, m *Meta) { m.Format = 0 },
	} {
		t.Run(what, func(t *testing.T) {
			m := good
			n := &memberlist.Node{Name: "2", Addr: net.IPv4(127, 0, 0, 1), Port: 9}
			change(n, &m)
			n.Meta, _ = json.Marshal(m)
			assert.Error(t, a.NotifyAlive(n))
		})
	}
	assert.Error(t, a.NotifyAlive(&memberlist.Node{Name: "2", Addr: net.IPv4(127, 0, 0, 1), Port: 9, Meta: []byte("garbage")}))
	text, _ := json.Marshal(good)
	assert.NoError(t, a.NotifyAlive(&memberlist.Node{Name: "2", Addr: net.IPv4(127, 0, 0, 1), Port: 9, Meta: text}))
}

func TestGarbageDoesNoHarm(t *testing.T) {
	a := start(t, setup{name: "1"})
	b := start(t, setup{name: "2", join: []*server{a}})
	meet(t, a, b)
	conn, err := net.Dial("udp", a.port.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	dice := rand.New(rand.NewPCG(1, 2))
	header := []byte{labelMessage, 4, 't', 'e', 's', 't'}
	for i := range 2000 {
		garbage := make([]byte, dice.IntN(1400))
		for j := range garbage {
			garbage[j] = byte(dice.Uint32())
		}
		if i%2 == 0 { // as if it were of this cluster
			garbage = append(append(bytes.Clone(header), byte(dice.IntN(14))), garbage...)
		}
		conn.Write(garbage)
	}
	c := start(t, setup{name: "3", join: []*server{a}})
	meet(t, a, b, c)
	assert.Len(t, a.Nodes(), 2, "garbage makes no servers")
}

func TestStopOfALonelyServer(t *testing.T) {
	a := start(t, setup{name: "1"})
	a.leave(t)
	require.NoError(t, a.Stop(context.Background()))
}

func TestAdvertise(t *testing.T) {
	bound := &net.TCPAddr{IP: net.IPv4zero, Port: 1234}
	for address, want := range map[string]string{"127.0.0.1:0": "127.0.0.1:1234", "127.0.0.1:5": "127.0.0.1:5"} {
		got, ip, err := Advertise(t.Context(), address, bound)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, "127.0.0.1", ip.String())
	}
	got, ip, err := Advertise(t.Context(), ":0", bound)
	require.NoError(t, err)
	assert.NotNil(t, ip)
	assert.True(t, strings.HasSuffix(got, ":1234") && !strings.HasPrefix(got, ":"), got)
}

func TestLogIsBounded(t *testing.T) {
	l := &logged{}
	w := newLogWriter(slog.New(slog.NewTextHandler(l, nil)))
	now := time.Unix(0, 0)
	w.now = func() time.Time { return now }
	for i := range 1000 {
		fmt.Fprintf(w, "[ERR] memberlist: Decrypt packet failed: %d\n", i)
	}
	assert.Equal(t, 1, strings.Count(l.String(), "\n"))
	for i := range 1000 {
		fmt.Fprintf(w, "[ERR] memberlist: %s\n", strconv.Itoa(i))
	}
	assert.LessOrEqual(t, len(w.last), maxKinds)
	now = now.Add(time.Minute)
	fmt.Fprintf(w, "2026/01/02 03:04:05 [ERR] memberlist: Decrypt packet failed: again\n")
	assert.Contains(t, l.String(), `"gossip: Decrypt packet failed: again"`)
}

func FuzzAcceptable(f *testing.F) {
	header := []byte{labelMessage, 4, 't', 'e', 's', 't'}
	f.Add(append(bytes.Clone(header), pingMessage, 1))
	f.Add(append(bytes.Clone(header), compoundMessage, 2, 0, 1, 0, 1, aliveMessage, deadMessage))
	f.Add(append(bytes.Clone(header), compoundMessage, 255))
	f.Add(append(bytes.Clone(header), checkedMessage, 0, 0, 0, 0))
	f.Add(header)
	f.Fuzz(func(t *testing.T, b []byte) {
		if acceptable(b, "test", false) && !bytes.HasPrefix(b, header) {
			t.Fatal("without the label")
		}
		acceptable(b, "test", true)
	})
}

func TestAcceptable(t *testing.T) {
	header := []byte{labelMessage, 4, 't', 'e', 's', 't'}
	packet := func(b ...byte) []byte { return append(bytes.Clone(header), b...) }
	assert.True(t, acceptable(packet(aliveMessage, 1, 2), "test", false))
	assert.True(t, acceptable(packet(compoundMessage, 2, 0, 1, 0, 2, pingMessage, aliveMessage, 9), "test", false))
	assert.False(t, acceptable(packet(compoundMessage, 1, 0, 2, compoundMessage, 0), "test", false), "a compound in a compound")
	assert.False(t, acceptable(packet(9, 1, 2), "test", false), "compressed")
	assert.False(t, acceptable(packet(8, 1, 2), "test", false), "a user's message")
	assert.False(t, acceptable(packet(compoundMessage, 1, 0, 9, pingMessage), "test", false), "a part that is cut off")
	assert.False(t, acceptable(packet(checkedMessage, 1, 2, 3, 4, pingMessage), "test", false), "a wrong checksum")
	assert.False(t, acceptable([]byte{pingMessage, 1}, "test", false), "no label")
	assert.False(t, acceptable(packet(), "test", true))
	assert.True(t, acceptable(packet(1), "test", true))
}

func FuzzDecodeMeta(f *testing.F) {
	text, _ := json.Marshal(Meta{Format: 1, Server: member.NewServerID("2"), Address: "127.0.0.1:9"})
	f.Add(text)
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err == nil && (!m.Server.Valid() || !m.Cluster.Valid() || m.Format != Format) {
			t.Fatalf("%+v", m)
		}
	})
}
