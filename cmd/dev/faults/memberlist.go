package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults/network"
)

// memberlistSession is how long the brokers' sessions with the leader of raft last without a word: the default.
const memberlistSession = 2 * time.Second

// memberlist is a cluster's coordination through its brokers: they gossip, and the voters among them keep what raft keeps.
type memberlist struct {
	network *network.Network
	brokers func() []*Broker
	first   int // how many brokers begin the cluster

	mu    sync.Mutex
	ports map[netip.AddrPort]string // the brokers' coordination ports, from which their datagrams come
}

func newMemberlist(n *network.Network, brokers func() []*Broker, first int) *memberlist {
	return &memberlist{network: n, brokers: brokers, first: first, ports: map[netip.AddrPort]string{}}
}

// ends is where a broker's coordination is reached.
type ends struct {
	bind string // where it listens
	gate *network.Gate
}

// coordinationName is what the network calls a broker's side of the coordination.
func coordinationName(b *Broker) string { return fmt.Sprintf("coordination of broker %d", b.ID) }

func (m *memberlist) wire(b *Broker) (err error) {
	if b.ends.bind, err = freeAddr(); err != nil {
		return err
	}
	own, err := netip.ParseAddrPort(b.ends.bind)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.ports[own] = b.name()
	m.mu.Unlock()
	b.election = func() string { return m.section(b) }
	b.ends.gate, err = m.network.GateBoth(coordinationName(b), b.ends.bind, m.sender)
	return err
}

// sender says who sent a datagram.
func (m *memberlist) sender(from netip.AddrPort) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ports[from]
}

// section is what goes into a broker's configuration, once all brokers are wired: the first ones form the cluster, and a later
// one waits for it to let it in.
func (m *memberlist) section(b *Broker) string {
	var join []string
	for _, other := range m.brokers() {
		if other.ID <= m.first {
			join = append(join, fmt.Sprintf("%q", other.ends.gate.Addr()))
		}
	}
	return fmt.Sprintf("memberlist:\n    bind: %q\n    advertise: %q\n    join: [%s]\n", b.ends.bind, b.ends.gate.Addr(), strings.Join(join, ", "))
}

func (m *memberlist) session() time.Duration { return memberlistSession }

// silence lets nothing more of the coordination come from one broker to another, whoever connected.
func (m *memberlist) silence(from, to *Broker) {
	m.network.CutOneWay(from.name(), coordinationName(to))
	m.network.CutOneWay(coordinationName(from), to.name())
}

func (m *memberlist) cut(b *Broker) {
	for _, other := range m.brokers() {
		if other != b {
			m.silence(b, other)
			m.silence(other, b)
		}
	}
}

func (m *memberlist) delay(draw func() time.Duration) {
	for _, a := range m.brokers() {
		for _, b := range m.brokers() {
			if a != b {
				by := draw()
				m.network.Delay(a.name(), coordinationName(b), by)
				m.network.Delay(coordinationName(a), b.name(), by)
			}
		}
	}
}

func (m *memberlist) killLeader(ctx context.Context, f *Field) (again func(context.Context) error, err error) {
	b, err := m.leader(ctx)
	if err != nil {
		return nil, err
	}
	f.Say("the leader of raft, %s, is killed", b.name())
	b.Kill()
	return b.Start, nil
}

func (m *memberlist) stall(f *Field) (resume func() error, err error) {
	f.Say("the brokers' coordination is cut, each from all others")
	for _, b := range m.brokers() {
		m.cut(b)
	}
	return func() error { f.Network.Heal(); return nil }, nil
}

func (m *memberlist) mend(context.Context) error { return nil }

// leader is the broker that leads raft, as the brokers that run say.
func (m *memberlist) leader(ctx context.Context) (*Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var last error
		for _, b := range m.brokers() {
			if !b.Running() || b.paused {
				continue
			}
			status, err := b.status(ctx)
			if last = err; err != nil {
				continue
			}
			for _, leader := range m.brokers() {
				if leader.ID == status.Leader && leader.Running() {
					return leader, nil
				}
			}
			last = fmt.Errorf("%s says that broker %d leads", b.name(), status.Leader)
		}
		if !pause(ctx, 200*time.Millisecond) {
			return nil, fmt.Errorf("nobody leads raft: %w", errors.Join(ctx.Err(), last))
		}
	}
}

// coordinationStatus is what `barnabas coordination status` says, as far as it matters here.
type coordinationStatus struct {
	Leader int `json:"leader"`
}

// status asks a broker.
func (b *Broker) status(ctx context.Context) (s coordinationStatus, err error) {
	text, err := b.coordination(ctx, "status", "--output", "json")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// coordination runs one of the commands that speak to a broker's coordination.
func (b *Broker) coordination(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.bin, append(append([]string{"coordination"}, args...), "-c", b.conf())...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("coordination %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(bad.String()))
	}
	return out.Bytes(), nil
}
