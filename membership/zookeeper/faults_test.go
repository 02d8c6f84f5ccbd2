package zookeeper

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// What happens to a member while ZooKeeper or the way to it fails.

func inTime(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// begin starts a member, and stops it at the end.
func begin(t testing.TB, o Options, dir string) *coordination {
	t.Helper()
	made, err := New(o, election.Settings{DataDir: dir})
	require.NoError(t, err)
	require.NoError(t, made.Start(inTime(t)))
	t.Cleanup(func() { require.NoError(t, made.Stop(context.Background())) })
	return made.(*coordination)
}

func testBroker(id, port int32) election.Broker {
	return election.Broker{ID: id, Endpoints: []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: port}}}
}

func closes(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		require.Fail(t, what)
	}
}

func isOpen(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return false
	default:
		return true
	}
}

func elect(t testing.TB, c election.Coordination, id int32) election.Term {
	t.Helper()
	term, err := c.Election().Campaign(inTime(t), id)
	require.NoError(t, err)
	return term
}

func register(t testing.TB, c election.Coordination, b election.Broker) election.Registration {
	t.Helper()
	r, err := c.Membership().Register(inTime(t), b)
	require.NoError(t, err)
	return r
}

func newTopicOf(t testing.TB, c election.Coordination, epoch int32, name string, partitions int) {
	t.Helper()
	in := election.NewTopic{Name: name, ID: election.TopicID{0: 1, 15: 7}, Partitions: make([]election.Assignment, partitions)}
	for i := range in.Partitions {
		in.Partitions[i].Replicas = []int32{1, 2}
	}
	errs, err := c.Metadata().CreateTopics(inTime(t), epoch, []election.NewTopic{in})
	require.NoError(t, err)
	require.NoError(t, errs[0])
}

// until waits for a change on a watch.
func until(t testing.TB, w election.Watch, want func(election.Change) bool) {
	t.Helper()
	ctx := inTime(t)
	for {
		changes, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ch := range changes {
			if want(ch) {
				return
			}
		}
	}
}

func isEverything(ch election.Change) bool { return ch.Kind == election.EverythingChanged }

func isTopic(name string) func(election.Change) bool {
	return func(ch election.Change) bool { return ch == election.Change{Kind: election.TopicChanged, Topic: name} }
}

// behindProxy is a place of its own, reached through a proxy.
func behindProxy(t *testing.T, timeout time.Duration) (Options, *proxy) {
	o := newCluster(t).o
	p := newProxy(t, shared.Connect())
	o.SessionTimeout = timeout
	o.Connect = p.addr() + o.Connect[len(shared.Connect()):]
	return o, p
}

// direct is the same place without the proxy.
func direct(o Options, p *proxy) Options {
	o.Connect = shared.Connect() + o.Connect[len(p.addr()):]
	return o
}

// KAFKA-1387: after an expiry the node is there again, under another session and epoch.
func TestASessionThatExpires(t *testing.T) {
	o, p := behindProxy(t, 30*time.Second)
	c := begin(t, o, t.TempDir())
	term, r := elect(t, c, 1), register(t, c, testBroker(1, 9092))
	newTopicOf(t, c, term.Epoch(), "a", 1)
	w, err := c.Metadata().Watch(inTime(t), election.TopicChanged)
	require.NoError(t, err)
	defer w.Close()
	before := c.current().id()

	p.expire()
	closes(t, term.Lost(), "the term outlives its session")
	closes(t, r.Lost(), "the registration outlives its session")
	_, err = c.Metadata().CreateTopics(inTime(t), term.Epoch(), nil)
	require.ErrorIs(t, err, election.ErrStaleController)
	require.NoError(t, term.Resign(inTime(t)))
	require.NoError(t, r.Leave(inTime(t)))

	until(t, w, isEverything)
	again := register(t, c, testBroker(1, 9092))
	require.Greater(t, again.Epoch(), r.Epoch())
	next := elect(t, c, 1)
	require.Greater(t, next.Epoch(), term.Epoch())
	n, err := c.current().get(inTime(t), brokerPath(1))
	require.NoError(t, err)
	require.Equal(t, c.current().id(), n.stat.EphemeralOwner)
	require.NotEqual(t, before, n.stat.EphemeralOwner)
	require.True(t, c.ours(c.current(), before), "what ZooKeeper hasn't deleted yet would keep the broker out (KAFKA-7165)")
	newTopicOf(t, c, next.Epoch(), "b", 1)
	until(t, w, isTopic("b"))
	errs, err := c.Metadata().MarkDeleted(inTime(t), next.Epoch(), []string{"a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	until(t, w, isTopic("a"))
}

// The line is cut for longer than the session lasts. The member must know by its own clock that its term is over before
// another one can be elected, and comes back by itself.
func TestALineThatIsCut(t *testing.T) {
	t.Parallel()
	o, p := behindProxy(t, 2*time.Second)
	c := begin(t, o, t.TempDir())
	other := begin(t, direct(o, p), t.TempDir())
	term, r := elect(t, c, 1), register(t, c, testBroker(1, 9092))
	w, err := c.Membership().Watch(inTime(t))
	require.NoError(t, err)
	defer w.Close()

	p.sever()
	next, err := other.Election().Campaign(inTime(t), 2)
	require.NoError(t, err)
	require.False(t, isOpen(term.Lost()), "two controllers at a time")
	require.Greater(t, next.Epoch(), term.Epoch())
	closes(t, r.Lost(), "a registration that nobody sees any more")
	brief, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Metadata().Topics(brief)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	p.heal()
	until(t, w, isEverything)
	again := register(t, c, testBroker(1, 9092))
	require.Greater(t, again.Epoch(), r.Epoch())
	require.NoError(t, next.Resign(inTime(t)))
	require.Greater(t, elect(t, c, 1).Epoch(), next.Epoch())
}

// A session that is in doubt here and alive there gives back what it holds before another one asks for it.
func TestASessionInDoubtIsGivenBack(t *testing.T) {
	o, p := behindProxy(t, 20*time.Second)
	c := begin(t, o, t.TempDir())
	term, r := elect(t, c, 1), register(t, c, testBroker(1, 9092))
	s := c.current()
	p.sever()
	s.net.heard.Store(-int64(time.Hour)) // as if this process had slept for an hour, and hears now what was said before
	s.net.late()
	closes(t, term.Lost(), "a term in doubt")
	closes(t, r.Lost(), "a registration in doubt")
	p.drop()
	p.heal()
	start := time.Now()
	again := register(t, c, testBroker(1, 9092))
	require.Greater(t, again.Epoch(), r.Epoch())
	require.Greater(t, elect(t, c, 1).Epoch(), term.Epoch())
	require.Less(t, time.Since(start), 15*time.Second, "it waited for the session to expire")
}

func TestAConnectionThatBreaks(t *testing.T) {
	o, p := behindProxy(t, 30*time.Second)
	c := begin(t, o, t.TempDir())
	other := begin(t, direct(o, p), t.TempDir())
	term, r := elect(t, c, 1), register(t, c, testBroker(1, 9092))
	md, err := c.Metadata().Watch(inTime(t))
	require.NoError(t, err)
	defer md.Close()
	members, err := c.Membership().Watch(inTime(t))
	require.NoError(t, err)
	defer members.Close()
	for range 3 {
		p.drop()
		until(t, md, isEverything)
		until(t, members, isEverything)
	}
	require.True(t, isOpen(term.Lost()))
	require.True(t, isOpen(r.Lost()))
	newTopicOf(t, c, term.Epoch(), "a", 1)
	until(t, md, isTopic("a"))
	r2 := register(t, other, testBroker(2, 9093))
	until(t, members, func(ch election.Change) bool { return ch.Kind == election.BrokersChanged })
	all, err := c.Membership().Brokers(inTime(t))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.NoError(t, r2.Leave(inTime(t)))

	// While the line is down things change; what was missed is found.
	p.sever()
	p.drop()
	register(t, other, testBroker(3, 9094))
	p.heal()
	until(t, members, func(ch election.Change) bool { return isEverything(ch) || ch.Kind == election.BrokersChanged })
	all, err = c.Membership().Brokers(inTime(t))
	require.NoError(t, err)
	require.Len(t, all, 2)
}

// KAFKA-7165, and a second broker with the same id.
func TestABrokerThatComesBackAfterACrash(t *testing.T) {
	t.Parallel()
	o, p := behindProxy(t, 5*time.Second)
	dir := t.TempDir()
	crash := func(dir string, b election.Broker) election.Registration {
		c := begin(t, o, dir)
		r := register(t, c, b)
		elect(t, c, b.ID)
		p.sever()
		require.NoError(t, c.Stop(context.Background()), "without a word to ZooKeeper")
		p.drop()
		p.heal()
		return r
	}
	died := crash(dir, testBroker(1, 9092))

	// A twin elsewhere is refused at once.
	twin := begin(t, o, t.TempDir())
	_, err := twin.Membership().Register(inTime(t), testBroker(1, 9099))
	require.ErrorIs(t, err, election.ErrBrokerExists)
	require.ErrorContains(t, err, "broker 1 is registered by session 0x")
	require.ErrorContains(t, err, "at another address")
	_, err = twin.Membership().Register(inTime(t), testBroker(2, 9092))
	require.ErrorIs(t, err, election.ErrBrokerExists)
	require.ErrorContains(t, err, "broker 1, which is alive, advertises 127.0.0.1:9092 too")

	// The same broker needn't wait: it knows the session. Nor does it wait to be controller again.
	back := begin(t, o, dir)
	r := register(t, back, testBroker(1, 9092))
	require.Greater(t, r.Epoch(), died.Epoch())
	require.NoError(t, elect(t, back, 1).Resign(inTime(t)))
	require.NoError(t, back.Stop(context.Background()))

	// With another address it can't be sure, and waits for the old session's end.
	dir = t.TempDir()
	died = crash(dir, testBroker(1, 9092))
	back = begin(t, o, dir)
	r = register(t, back, testBroker(1, 9095))
	require.Greater(t, r.Epoch(), died.Epoch())
	require.NoError(t, back.Stop(context.Background()))

	// So does one without the file.
	died = crash(t.TempDir(), testBroker(1, 9092))
	back = begin(t, o, t.TempDir())
	r = register(t, back, testBroker(1, 9092))
	require.Greater(t, r.Epoch(), died.Epoch())

	// And one that lives on is left alone, though somebody says that he is the same.
	o.SessionTimeout = time.Second
	liar := begin(t, o, t.TempDir())
	_, err = liar.Membership().Register(inTime(t), testBroker(1, 9092))
	require.ErrorIs(t, err, election.ErrBrokerExists)
	require.ErrorContains(t, err, "it goes on living")
	require.True(t, isOpen(r.Lost()))
}

func TestARegistrationThatSomebodyDeletes(t *testing.T) {
	c := begin(t, newCluster(t).o, "")
	r := register(t, c, testBroker(1, 9092))
	require.NoError(t, c.current().delete(inTime(t), brokerPath(1), -1))
	closes(t, r.Lost(), "a registration that isn't there")
	register(t, c, testBroker(1, 9092))
}

func TestAControllerThatIsDeposed(t *testing.T) {
	o := newCluster(t).o
	c, other := begin(t, o, ""), begin(t, o, "")
	term := elect(t, c, 1)
	// As operators move the controller: they delete its node.
	require.NoError(t, other.current().delete(inTime(t), controllerPath, -1))
	closes(t, term.Lost(), "a term that isn't any more")
	next := elect(t, other, 2)
	_, err := c.Metadata().CreateTopics(inTime(t), term.Epoch(), nil)
	require.ErrorIs(t, err, election.ErrStaleController)
	// Or write another's name into it.
	_, err = c.current().set(inTime(t), controllerPath, []byte(`{"version":1,"brokerid":5,"timestamp":"1"}`), -1)
	require.NoError(t, err)
	closes(t, next.Lost(), "a term that somebody else has")
	require.Greater(t, elect(t, other, 2).Epoch(), next.Epoch(), "its own node, which nobody else would take away")
}

// A write that was on its way when a successor was elected: the check in its transaction refuses it.
func TestAZombieControllerWritesNothing(t *testing.T) {
	o := newCluster(t).o
	c, other := begin(t, o, ""), begin(t, o, "")
	old := elect(t, c, 1).(*term)
	zombie := &term{c: c, broker: 1, epoch: old.epoch, version: old.version, czxid: old.czxid, session: old.session, watch: newGroup(), lost: make(chan struct{})}
	require.NoError(t, old.Resign(inTime(t)))
	newTopicOf(t, other, elect(t, other, 2).Epoch(), "a", 1)
	c.seat <- struct{}{}
	c.mu.Lock()
	c.term = zombie
	c.mu.Unlock()
	_, err := c.Metadata().UpdatePartitions(inTime(t), zombie.epoch, []election.PartitionUpdate{{Topic: "a", State: election.PartitionState{PartitionEpoch: -1}}})
	require.ErrorIs(t, err, election.ErrStaleController)
	require.False(t, isOpen(zombie.lost))
	topics, err := c.Metadata().Topics(inTime(t))
	require.NoError(t, err)
	require.Nil(t, topics[0].Partitions[0].State)
}

func TestAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	e := zktest.New(t, 1)
	s := e.Servers()[0]
	c := begin(t, Options{Connect: e.Connect(), SessionTimeout: 40 * time.Second, ConnectionTimeout: patience}, t.TempDir())
	term, r := elect(t, c, 1), register(t, c, testBroker(1, 9092))
	w, err := c.Metadata().Watch(inTime(t))
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, s.Kill())
	reading := make(chan error, 1)
	go func() { _, err := c.Metadata().Topics(inTime(t)); reading <- err }()
	require.NoError(t, s.Start(inTime(t)))
	require.NoError(t, <-reading, "a read waits until there is a server again")
	until(t, w, isEverything)
	newTopicOf(t, c, term.Epoch(), "a", 1)
	until(t, w, isTopic("a"))
	require.True(t, isOpen(r.Lost()))
	require.NoError(t, e.Stop())
	require.NoError(t, c.Stop(context.Background()), "without a server")
}

func TestAnEnsemble(t *testing.T) {
	t.Parallel()
	e := zktest.New(t, 3)
	leader, err := e.Leader(inTime(t))
	require.NoError(t, err)
	followers := ""
	for _, s := range e.Servers() {
		if s != leader {
			followers += "," + s.Addr
		}
	}
	c := begin(t, Options{Connect: followers[1:], SessionTimeout: 6 * time.Second, ConnectionTimeout: patience}, t.TempDir())
	term := elect(t, c, 1)
	used := func() *zktest.Server {
		for _, s := range e.Servers() {
			if s.Addr == c.current().conn.Server() {
				return s
			}
		}
		return nil
	}
	silent := used()
	require.NoError(t, silent.Pause())
	ctx := inTime(t)
	for term = eventually(t, c, term); used() == silent; term = eventually(t, c, term) { // what it wrote may have come before the pause
		require.NoError(t, ctx.Err(), "it asks a server that says nothing")
	}
	newTopicOf(t, c, term.Epoch(), "a", 1)
	require.NoError(t, silent.Resume())

	require.NoError(t, leader.Kill())
	term = eventually(t, c, term)
	newTopicOf(t, c, term.Epoch(), "b", 1)
	topics, err := c.Metadata().Topics(inTime(t))
	require.NoError(t, err)
	require.Len(t, topics, 2)
}

// eventually waits until a controller can write, and returns its term. It may have to be elected again: an ensemble that chooses
// its leader can be longer about it than a session lasts.
func eventually(t *testing.T, c *coordination, term election.Term) election.Term {
	t.Helper()
	for {
		if !isOpen(term.Lost()) {
			term = elect(t, c, 1)
		}
		_, err := c.Metadata().SetConfigs(inTime(t), term.Epoch(), []election.Config{{Entity: election.Entity{Kind: election.BrokerEntity, Name: "99"}}})
		if err == nil {
			return term
		}
		if isOpen(term.Lost()) {
			require.ErrorIs(t, err, election.ErrUnavailable)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestStartsThatFail(t *testing.T) {
	p := newProxy(t, shared.Connect())
	p.sever()
	for connect, want := range map[string]string{
		"127.0.0.1:1":           "none of 127.0.0.1:1 answered within 300ms",
		"127.0.0.1:1/kafka":     "connection refused",
		p.addr():                "answered within 300ms",
		"nohost.invalid:2181/a": "nohost.invalid",
	} {
		made, err := New(Options{Connect: connect, SessionTimeout: time.Second, ConnectionTimeout: 300 * time.Millisecond}, election.Settings{})
		require.NoError(t, err)
		err = made.Start(context.Background())
		require.ErrorIs(t, err, election.ErrUnavailable, connect)
		require.ErrorContains(t, err, want)
		require.NoError(t, made.Stop(context.Background()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	made, err := New(Options{Connect: shared.Connect()}, election.Settings{})
	require.NoError(t, err)
	require.ErrorIs(t, made.Start(ctx), context.Canceled)
	_, err = New(Options{Connect: shared.Connect(), TLS: true, TLSCA: filepath.Join(t.TempDir(), "none")}, election.Settings{})
	require.NoError(t, err, "nothing happens before Start")
}

func TestDigestAndACLs(t *testing.T) {
	o := newCluster(t).o
	o.User, o.Password, o.SetACL = "barnabas", "word", true
	c := begin(t, o, "")
	term := elect(t, c, 1)
	newTopicOf(t, c, term.Epoch(), "a", 1)
	register(t, c, testBroker(1, 9092))
	errs, err := c.Metadata().SetConfigs(inTime(t), term.Epoch(), []election.Config{{Entity: election.Entity{Kind: election.BrokerEntity, Name: "1"}, Values: map[string]string{"k": "v"}}})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	acl := func(path string) []zk.ACL {
		all, _, err := c.current().conn.GetACL(c.current().path(path))
		require.NoError(t, err)
		return all
	}
	own := zk.DigestACL(zk.PermAll, "barnabas", "word")
	for _, path := range []string{topicPath("a"), controllerPath, controllerEpochPath, brokerPath(1), topicConfig("a")} {
		require.ElementsMatch(t, append(own, zk.WorldACL(zk.PermRead)...), acl(path), path)
	}
	require.Equal(t, own, acl("/config/brokers/1"))

	stranger := o
	stranger.User, stranger.Password, stranger.SetACL = "", "", false
	other, err := New(stranger, election.Settings{})
	require.NoError(t, err)
	require.NoError(t, other.Start(inTime(t)), "all is there already")
	defer func() { require.NoError(t, other.Stop(context.Background())) }()
	topics, err := other.Metadata().Topics(inTime(t))
	require.NoError(t, err)
	require.Len(t, topics, 1, "everybody may read")
	_, err = other.Membership().NewBrokerID(inTime(t))
	require.ErrorIs(t, err, election.ErrUnavailable)
	require.ErrorContains(t, err, "ZooKeeper refuses it to this user")
}
