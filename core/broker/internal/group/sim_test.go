package group

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

func testConfig() Config {
	return Config{MinSession: 6 * time.Second, MaxSession: 30 * time.Minute, MaxSize: math.MaxInt32, MaxMetadata: 4096,
		CommitTimeout: 5 * time.Second, Retention: 7 * 24 * time.Hour}
}

// sim is a group with a clock and a store that are moved by hand.
type sim struct {
	require.TestingT
	cfg     Config
	g       *Group
	now     time.Time
	last    Ticket
	answers map[Ticket]Answer
	writes  []Write // asked for, not yet done
	stored  []offsets.Entry
	hold    bool // keeps writes waiting until store is called
	seq     int
}

func newSim(t require.TestingT) *sim {
	s := &sim{TestingT: t, cfg: testConfig(), now: time.UnixMilli(1_700_000_000_000), answers: map[Ticket]Answer{}}
	s.g = NewGroup("g", &s.cfg, s.now)
	return s
}

func (s *sim) do(fx Effects) {
	for _, a := range fx.Answers {
		if _, twice := s.answers[a.Ticket]; twice || a.Ticket == 0 || a.Ticket > s.last {
			s.Errorf("ticket %d answered twice, or never given", a.Ticket)
		}
		s.answers[a.Ticket] = a
	}
	s.writes = append(s.writes, fx.Writes...)
	if !s.hold {
		s.store(nil)
	}
}

// store does all writes that wait, with one outcome.
func (s *sim) store(err error) {
	for len(s.writes) > 0 {
		w := s.writes[0]
		s.writes = s.writes[1:]
		if err == nil {
			s.stored = append(s.stored, w.Entries...)
		}
		s.do(s.g.Written(s.now, w, err))
	}
}

// pass lets time pass, waking the group whenever it wants.
func (s *sim) pass(d time.Duration) {
	until := s.now.Add(d)
	for {
		next := s.g.Next()
		if next.IsZero() || next.After(until) {
			break
		}
		if next.After(s.now) {
			s.now = next
		}
		s.do(s.g.Tick(s.now))
	}
	s.now = until
}

// client is a member as it sees itself.
type client struct {
	s        *sim
	id       string
	instance *string
	gen      int32
	version  int // of JoinGroup
	session  time.Duration
	rebal    time.Duration
	protos   []Protocol
	join     Ticket
	sync     Ticket
}

func (s *sim) client() *client {
	return &client{s: s, gen: -1, version: 9, session: 6 * time.Second, rebal: time.Minute, protos: subscribe("range", "t")}
}

func (s *sim) static(instance string) *client {
	c := s.client()
	c.instance = &instance
	return c
}

// subscribe is a consumer's protocol with its metadata for topics.
func subscribe(protocol string, topics ...string) []Protocol {
	b := []byte{0, 1, 0, 0, 0, byte(len(topics))}
	for _, t := range topics {
		b = append(append(b, 0, byte(len(t))), t...)
	}
	return []Protocol{{Name: protocol, Metadata: b}}
}

func (s *sim) ticket() Ticket { s.last++; return s.last }

func (c *client) request() Join {
	c.s.seq++
	r := Join{MemberID: c.id, InstanceID: c.instance, NewID: fmt.Sprintf("client-%d", c.s.seq), RequireID: c.version >= 4 && c.instance == nil,
		CanSkip: c.version >= 9, ClientID: "client", ClientHost: "/127.0.0.1", Rebalance: c.rebal, Session: c.session,
		ProtocolType: "consumer", Protocols: c.protos}
	if c.version == 0 {
		r.Rebalance = r.Session
	}
	return r
}

// tryJoin sends a join and returns the answer, nil when it waits.
func (c *client) tryJoin() *JoinAnswer {
	c.join = c.s.ticket()
	c.s.do(c.s.g.Join(c.s.now, c.join, c.request()))
	return c.joinAnswer()
}

// joinAnswer is the answer to the last join, whose generation the member takes over.
func (c *client) joinAnswer() *JoinAnswer {
	a, ok := c.s.answers[c.join]
	if !ok {
		return nil
	}
	if a.Join.Err == nil {
		c.gen = a.Join.Generation
	}
	if a.Join.MemberID != "" {
		c.id = a.Join.MemberID
	}
	return a.Join
}

// begin joins, twice when the id is wanted, and returns the answer or nil.
func (c *client) begin() *JoinAnswer {
	a := c.tryJoin()
	if a != nil && a.Err == ErrMemberIDRequired {
		a = c.tryJoin()
	}
	return a
}

func (c *client) who() Member { return Member{ID: c.id, InstanceID: c.instance, Generation: c.gen} }

func (c *client) trySync(assign ...*client) *SyncAnswer {
	c.sync = c.s.ticket()
	r := Sync{Member: c.who(), Assignments: map[string][]byte{}}
	for _, a := range assign {
		r.Assignments[a.id] = []byte("for " + a.id)
	}
	c.s.do(c.s.g.Sync(c.s.now, c.sync, r))
	return c.syncAnswer()
}

func (c *client) syncAnswer() *SyncAnswer {
	if a, ok := c.s.answers[c.sync]; ok {
		return a.Sync
	}
	return nil
}

func (c *client) heartbeat() error {
	fx, err := c.s.g.Heartbeat(c.s.now, c.who())
	c.s.do(fx)
	return err
}

func (c *client) leave() error {
	errs, fx, err := c.s.g.Leave(c.s.now, []Leaving{{MemberID: c.id, InstanceID: c.instance}})
	c.s.do(fx)
	if err != nil {
		return err
	}
	return errs[0]
}

// commit commits an offset for partition 0 of a topic.
func (c *client) commit(topic string, offset int64) error { return c.s.commit(c.who(), topic, offset) }

func (s *sim) commit(who Member, topic string, offset int64) error {
	t := s.ticket()
	fx, err := s.g.Commit(s.now, t, Commit{Member: who, Offsets: map[TopicPartition]offsets.Offset{{topic, 0}: {Offset: offset,
		LeaderEpoch: offsets.None, CommitTimestamp: s.now.UnixMilli(), ExpireTimestamp: offsets.None}}})
	s.do(fx)
	if err != nil {
		s.answers[t] = Answer{Ticket: t, Err: err} // refused commits have no answer but this
		return err
	}
	a, ok := s.answers[t]
	if !ok {
		return errWaiting
	}
	return a.Err
}

var errWaiting = fmt.Errorf("waits")

var nobody = Member{Generation: -1}

// offset is the committed offset of partition 0 of a topic.
func (s *sim) offset(topic string) int64 {
	return s.g.Fetch([]TopicPartition{{topic, 0}}, false)[0].Offset.Offset
}

// stable makes a group of n synced members; the first leads.
func stable(t testing.TB, s *sim, n int) []*client {
	var all []*client
	for range n {
		c := s.client()
		all = append(all, c)
		if len(all) == 1 {
			require.NoError(t, c.begin().Err)
			continue
		}
		require.Nil(t, c.begin())
		for _, o := range all[:len(all)-1] {
			o.tryJoin()
		}
		for _, o := range all {
			require.NoError(t, o.joinAnswer().Err)
		}
	}
	for _, c := range all[1:] {
		require.Nil(t, c.trySync())
	}
	require.NoError(t, all[0].trySync(all...).Err)
	for _, c := range all {
		require.NoError(t, c.syncAnswer().Err)
		require.Equal(t, "for "+c.id, string(c.syncAnswer().Assignment))
	}
	require.Equal(t, Stable, s.g.State())
	return all
}
