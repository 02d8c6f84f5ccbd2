package faults

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strconv"
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
	votes   int // how many of these vote; 0 is the broker's default

	mu    sync.Mutex
	ports map[netip.AddrPort]string // the brokers' coordination ports, from which their datagrams come
}

func newMemberlist(n *network.Network, brokers func() []*Broker, first, votes int) *memberlist {
	return &memberlist{network: n, brokers: brokers, first: first, votes: votes, ports: map[netip.AddrPort]string{}}
}

// ends is where a broker's coordination is reached.
type ends struct {
	bind string // where it listens
	gate *network.Gate
}

// coordinationName is what the network calls a broker's side of the coordination.
func coordinationName(b *Broker) string { return fmt.Sprintf("coordination of broker %d", b.ID) }

func (m *memberlist) wire(b *Broker) (err error) {
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
	section := fmt.Sprintf("memberlist:\n    bind: %q\n    advertise: %q\n    join: [%s]\n", b.ends.bind, b.ends.gate.Addr(), strings.Join(join, ", "))
	if m.votes > 0 {
		section += fmt.Sprintf("    voters: %d\n", m.votes)
	}
	return section
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

// leads is what a broker says of itself when it has become the leader of raft.
var leads = regexp.MustCompile(`this broker leads the coordination.*\bterm=(\d+)\b`)

// leader is the broker that leads raft: the one that runs and was elected last.
func (m *memberlist) leader(ctx context.Context) (leader *Broker, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		last := int64(-1)
		for _, b := range m.brokers() {
			term, err := lastTerm(b.log())
			if err != nil {
				return nil, err
			}
			if term > last {
				leader, last = b, term
			}
		}
		if leader != nil && last > 0 && leader.Running() && !leader.paused {
			return leader, nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return nil, fmt.Errorf("nobody says that it leads raft: %w", ctx.Err())
		}
	}
}

// lastTerm is the last term of raft that a broker led, as it has printed; 0 for none.
func lastTerm(log string) (term int64, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	for _, found := range leads.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseInt(string(found[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		term = max(term, n)
	}
	return term, nil
}

// raftOneWay lets nothing come from the leader of raft to one of its peers, or the other way round, and then the other one of both.
func raftOneWay(ctx context.Context, f *Field) error {
	m, err := f.voters()
	if err != nil {
		return err
	}
	for _, fromLeader := range []bool{true, false} {
		leader, err := m.leader(ctx)
		if err != nil {
			return err
		}
		from, to := leader, f.anyOf(f.others(leader))
		if !fromLeader {
			from, to = to, from
		}
		d := f.beyondSession()
		f.Say("nothing of the coordination comes from %s to %s for %s; %s leads raft", from.name(), to.name(), d, leader.name())
		m.silence(from, to)
		if !pause(ctx, d) {
			return ctx.Err()
		}
		if err := f.goesOn(ctx, patience); err != nil {
			return err
		}
		f.Network.Heal()
		if err := f.whole(ctx); err != nil {
			return err
		}
	}
	return nil
}

// raftLeader is the broker that leads raft.
func (f *Field) raftLeader(ctx context.Context) (*Broker, error) {
	m, err := f.voters()
	if err != nil {
		return nil, err
	}
	return m.leader(ctx)
}

// voters is the cluster's coordination, which must be that of its brokers.
func (f *Field) voters() (*memberlist, error) {
	m, ok := f.coordination.(*memberlist)
	if !ok {
		return nil, errors.New("this is about brokers that vote")
	}
	return m, nil
}
