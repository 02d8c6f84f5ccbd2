package gossip

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
)

func TestOptionsThatMakeNoSense(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for want, change := range map[string]func(*Options){
		"no HOST:PORT":                    func(o *Options) { o.Join = []string{"somewhere"} },
		"no port from 1":                  func(o *Options) { o.Join = []string{"somewhere:0"} },
		"has no host":                     func(o *Options) { o.Join = []string{":1"} },
		"want 0 to 64":                    func(o *Options) { o.BootstrapExpect = -1 },
		"alone this broker never sees 3":  func(o *Options) { o.BootstrapExpect = 3 },
		"want an odd number":              func(o *Options) { o.Voters = 4 },
		"up to 9":                         func(o *Options) { o.Voters = 11 },
		"bind: ":                          func(o *Options) { o.Bind = "x:y" },
		"all addresses":                   func(o *Options) { o.Advertise = "0.0.0.0:1" },
		"up to 64 letters":                func(o *Options) { o.Cluster = "a b" },
		"key 1 isn't":                     func(o *Options) { o.EncryptionKeys = []string{"c2hvcnQ="} },
		"key 2 is there twice":            func(o *Options) { o.EncryptionKeys = []string{key, key} },
		"nothing else about TLS":          func(o *Options) { o.TLSCA = "x" },
		"want tls_cert, tls_key and":      func(o *Options) { o.TLS = true },
		"want local, lan or wan":          func(o *Options) { o.Profile = "man" },
		"want 0, or 10ms to 1h":           func(o *Options) { o.ProbeInterval = time.Millisecond },
		"there could be two raft leaders": func(o *Options) { o.LeaseTimeout = time.Second },
		"at least heartbeat_timeout":      func(o *Options) { o.HeartbeatTimeout = 2 * time.Second },
		"at most probe_interval":          func(o *Options) { o.ProbeTimeout = 2 * time.Second },
		"at least probe_interval":         func(o *Options) { o.SuspicionTimeout = 100 * time.Millisecond },
		"want at least 64":                func(o *Options) { o.SnapshotThreshold = 1 },
	} {
		t.Run(want, func(t *testing.T) {
			o := DefaultOptions()
			require.NoError(t, o.Validate())
			change(&o)
			require.ErrorContains(t, o.Validate(), want)
			assert.NotContains(t, o.Validate().Error(), key, "keys are secret")
		})
	}
}

func TestEveryProfileIsValid(t *testing.T) {
	for _, name := range []string{"local", "lan", "wan"} {
		o := DefaultOptions()
		o.Profile = name
		require.NoError(t, o.Validate(), name)
		assert.NotZero(t, o.timings().Sync)
	}
}

// TestSessionsOutliveRaftsLeader holds that there is time for another raft leader before brokers that live doubt their sessions, though what they sent
// last was sent a quarter of a session before the death.
func TestSessionsOutliveRaftsLeader(t *testing.T) {
	for _, name := range []string{"local", "lan", "wan"} {
		o, ok := profile(name)
		require.True(t, ok)
		left := consensus.Timings{Session: o.Session}.Doubt() - o.Session/4
		assert.Greater(t, left, o.Heartbeat*8/5, "%s: the second voter stands after 1.5 heartbeat timeouts, when the first is dead, too, and votes and the first answer take time", name)
	}
}

func TestTimesAreTheProfilesUnlessSet(t *testing.T) {
	o := DefaultOptions()
	lan := o.timings()
	o.Profile, o.SessionTimeout = "wan", time.Minute
	wan := o.timings()
	assert.Equal(t, time.Minute, wan.Session)
	assert.Equal(t, 2*time.Second, lan.Session)
	assert.Greater(t, wan.Heartbeat, lan.Heartbeat)
}

func TestPlan(t *testing.T) {
	join := []string{"10.0.0.1:19092", "10.0.0.2:19092", "10.0.0.3:19092"}
	tests := map[string]struct {
		options    func(*Options)
		properties map[string]string
		want       plan
	}{
		"defaults": {
			properties: map[string]string{"broker.id": "1"},
			want:       plan{Name: "1", Bind: "127.0.0.1:19092", Advertise: "127.0.0.1:19092", Expect: 1, DataDir: "/data/1.coordination"},
		},
		"an id that is still to be given": {
			want: plan{Name: "new", Bind: "127.0.0.1:19092", Advertise: "127.0.0.1:19092", Expect: 1, DataDir: "/data/1.coordination"},
		},
		"all addresses, and one of those to join": {
			options:    func(o *Options) { o.Join, o.DataDir = join, "/raft" },
			properties: map[string]string{"broker.id": "1", "listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://10.0.0.1:29092"},
			want:       plan{Name: "1", Bind: ":19092", Advertise: "10.0.0.1:19092", Join: join, Expect: 3, DataDir: "/raft"},
		},
		"a later broker": {
			options:    func(o *Options) { o.Join = join },
			properties: map[string]string{"broker.id": "4", "listeners": "PLAINTEXT://10.0.0.4:60000"},
			want:       plan{Name: "4", Bind: "10.0.0.4:50000", Advertise: "10.0.0.4:50000", Join: join, Expect: 0, DataDir: "/data/1.coordination"},
		},
		"any port": {
			options:    func(o *Options) { o.Join, o.BootstrapExpect = join, 5 },
			properties: map[string]string{"broker.id": "5", "listeners": "PLAINTEXT://127.0.0.1:0"},
			want:       plan{Name: "5", Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", Join: join, Expect: 5, DataDir: "/data/1.coordination"},
		},
		"bind and advertise": {
			options:    func(o *Options) { o.Bind, o.Advertise = "0.0.0.0:7000", "broker-1.example:7001" },
			properties: map[string]string{"broker.id": "1"},
			want:       plan{Name: "1", Bind: "0.0.0.0:7000", Advertise: "broker-1.example:7001", Expect: 1, DataDir: "/data/1.coordination"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			if tt.options != nil {
				tt.options(&o)
			}
			got, err := o.plan(tt.properties, "/data/1/")
			require.NoError(t, err)
			tt.want.Timings, tt.want.Voters, tt.want.Keys = o.timings(), 3, [][]byte{}
			assert.Equal(t, tt.want, got)
		})
	}
	_, err := DefaultOptions().plan(map[string]string{"listeners": strings.Repeat("x", 10)}, "/data/1")
	require.Error(t, err)
}
