package gossip

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// town is a cluster of brokers that find each other by gossip, each with a directory of its own.
type town struct {
	t       *testing.T
	dir     string
	options func(*Options)
	brokers map[int]*coordination
}

func newTown(t *testing.T) *town {
	return &town{t: t, dir: t.TempDir(), brokers: map[int]*coordination{}}
}

// make builds a broker's coordination that joins others.
func (w *town) make(broker int, join []string, expect int) *coordination {
	w.t.Helper()
	o := DefaultOptions()
	o.Profile, o.Join, o.BootstrapExpect, o.Bind = "local", join, expect, "127.0.0.1:0"
	// Quick where that costs nothing, patient where a busy machine could be taken for a dead one.
	o.SessionTimeout, o.HeartbeatTimeout, o.ElectionTimeout, o.LeaseTimeout = 8*time.Second, time.Second, time.Second, time.Second
	o.ProbeInterval, o.ProbeTimeout, o.SuspicionTimeout, o.ReclaimTime = time.Second, 500*time.Millisecond, time.Second, 200*time.Millisecond
	if w.options != nil {
		w.options(&o)
	}
	c, err := New(o, election.Settings{Settings: plugin.Settings{Logger: logger(w.t)}, DataDir: filepath.Join(w.dir, strconv.Itoa(broker)),
		Properties: map[string]string{"broker.id": strconv.Itoa(broker)}})
	require.NoError(w.t, err)
	c.(*coordination).server.(*host).segmentSize = 1 << 20
	return c.(*coordination)
}

// start starts a broker, which joins those that run.
func (w *town) start(broker, expect int) *coordination {
	w.t.Helper()
	c := w.make(broker, w.addresses(), expect)
	require.NoError(w.t, c.Start(w.t.Context()))
	w.brokers[broker] = c
	w.t.Cleanup(func() { require.NoError(w.t, c.Stop(context.Background())) })
	return c
}

// found starts brokers that form a cluster. They need to know each other's ports before they are bound, so each joins those before it.
func (w *town) found(n int) {
	w.t.Helper()
	// Port 1 is nobody's: a broker that expects others needs somebody to join.
	for broker := 1; broker <= n; broker++ {
		join := w.addresses()
		if len(join) == 0 && n > 1 {
			join = []string{"127.0.0.1:1"}
		}
		c := w.make(broker, join, n)
		require.NoError(w.t, c.Start(w.t.Context()))
		w.brokers[broker] = c
		w.t.Cleanup(func() { require.NoError(w.t, c.Stop(context.Background())) })
	}
	w.works()
}

func (w *town) addresses() (list []string) {
	for _, c := range w.brokers {
		list = append(list, c.server.(*host).address)
	}
	slices.Sort(list)
	return list
}

// works waits until every broker can read and write.
func (w *town) works() {
	w.t.Helper()
	ids := map[string]bool{}
	for broker, c := range w.brokers {
		w.eventually(fmt.Sprintf("broker %d asks for the cluster's id", broker), func() bool {
			id, err := c.Membership().ClusterID(w.t.Context(), "")
			if err == nil {
				ids[id] = true
			}
			return err == nil
		})
	}
	require.Len(w.t, ids, 1, "there is one cluster")
}

func (w *town) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, patience, 20*time.Millisecond, what)
}

// kill ends a broker without a word to anybody.
func (w *town) kill(broker int) {
	w.t.Helper()
	h := w.brokers[broker].server.(*host)
	h.company.(*peers).pool.Load().Kill()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(w.t, w.brokers[broker].Stop(ctx))
	delete(w.brokers, broker)
}

// admin gives orders through any broker.
func (w *town) admin() *Admin {
	w.t.Helper()
	o := DefaultOptions()
	if w.options != nil {
		w.options(&o)
	}
	a, err := NewAdmin(o)
	require.NoError(w.t, err)
	w.t.Cleanup(a.Close)
	return a
}

// rows gives what each server is in raft, by broker: "1:leader 2:voter 3:follower"; several leaders aren't told apart from voters.
func (w *town) rows(s Status) string {
	var list []string
	for _, m := range s.Members {
		raft := m.Raft
		if raft == "leader" {
			raft = "voter"
		}
		list = append(list, m.Broker+":"+raft)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// becomes waits until all brokers see the same members.
func (w *town) becomes(want string) {
	w.t.Helper()
	a := w.admin()
	for broker, c := range w.brokers {
		var got string
		require.Eventually(w.t, func() bool {
			s, err := a.Status(w.t.Context(), c.server.(*host).address)
			if err != nil {
				return false
			}
			got = w.rows(s)
			return got == want
		}, patience, 50*time.Millisecond, "broker %d sees %v, want %s", broker, &got, want)
	}
}

func (w *town) order(f func(context.Context, []string, string) (Order, error), which string) (Order, error) {
	w.t.Helper()
	var o Order
	var err error
	// Orders are refused, too, while somebody's log lags or nobody leads for a moment.
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		o, err = f(w.t.Context(), w.addresses(), which)
		if err == nil || strings.Contains(err.Error(), "refused") && !strings.Contains(err.Error(), "caught up") && !strings.Contains(err.Error(), "answer") {
			break
		}
	}
	return o, err
}

func TestThreeBrokersFormACluster(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(3)
	w.becomes("1:voter 2:voter 3:voter")
	s, err := w.admin().Status(t.Context(), w.brokers[2].server.(*host).address)
	require.NoError(t, err)
	assert.Equal(t, "2", s.Broker)
	assert.Empty(t, s.Waits)
	assert.Empty(t, s.Problem)
	assert.Equal(t, 3, s.Voters)
	assert.Equal(t, 1, s.Tolerates)
	for _, m := range s.Members {
		assert.Equal(t, "alive", m.Gossip)
	}
	require.Nil(t, newCoordination(w.brokers[1].server, w.brokers[1].timings, nil).Measures(), "before it is started")
	w.eventually("all measure the same cluster, with one leader", func() bool {
		leaders, same := 0.0, true
		for _, c := range w.brokers {
			measures := map[string]float64{}
			for _, m := range c.Measures() {
				measures[m.Name+m.Label] = m.Value
			}
			leaders += measures["raft_leader"]
			same = same && measures["raft_voters"] == 3 && measures["raft_failures_tolerated"] == 1 && measures["gossip_brokersalive"] == 3 &&
				measures["gossip_brokerssuspect"] == 0 && measures["raft_term"] > 0 && measures["raft_commit_index"] > 0
		}
		return same && leaders == 1
	})
}

// TestGrowAndShrink goes from one broker to three to five voters and back.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(1)
	a := w.admin()
	_, err := a.Remove(t.Context(), w.addresses(), "1")
	require.ErrorContains(t, err, "the only voter")
	for broker := 2; broker <= 5; broker++ {
		w.start(broker, 0)
	}
	w.becomes("1:voter 2:follower 3:follower 4:follower 5:follower")
	for broker := 2; broker <= 5; broker++ {
		o, err := w.order(a.Promote, strconv.Itoa(broker))
		require.NoError(t, err)
		assert.Equal(t, broker, o.Voters)
	}
	w.becomes("1:voter 2:voter 3:voter 4:voter 5:voter")
	_, err = a.Promote(t.Context(), w.addresses(), "3")
	require.ErrorContains(t, err, "votes already")
	_, err = a.Promote(t.Context(), w.addresses(), "9")
	require.ErrorContains(t, err, "no server of raft's configuration")
	for _, broker := range []int{1, 5} { // broker 1 may lead
		_, err := w.order(a.Remove, strconv.Itoa(broker))
		require.NoError(t, err)
	}
	w.becomes("1:follower 2:voter 3:voter 4:voter 5:follower")
	_, err = w.order(a.Remove, "5")
	require.ErrorContains(t, err, "stop its broker first")
	w.works()
}

// TestReplaceVoter loses a voter with its disk: the broker comes back as another server, which is given the vote of the former.
func TestReplaceVoter(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(3)
	a := w.admin()
	former := w.brokers[3].server.(*host).id()
	w.kill(3)
	w.start(4, 0)
	w.becomes("1:voter 2:voter 3:voter 4:follower")
	_, err := a.Remove(t.Context(), w.addresses(), "2")
	require.ErrorContains(t, err, "nothing could be decided", "it could cost the quorum")
	w.dir = t.TempDir() // the disk is gone
	w.start(3, 0)
	w.becomes("1:voter 2:voter 3:follower 3:voter 4:follower")
	_, err = w.order(a.Remove, "3")
	require.ErrorContains(t, err, "say which")
	o, err := w.order(a.Remove, former)
	require.NoError(t, err)
	assert.Equal(t, "is forgotten", o.Outcome)
	_, err = w.order(a.Promote, "3")
	require.NoError(t, err)
	w.becomes("1:voter 2:voter 3:voter 4:follower")
	w.works()
}

// TestReturnAtAnotherAddress is case A25 of a whole broker: raft finds it, too.
func TestReturnAtAnotherAddress(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "left"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newTown(t)
			w.found(3)
			before := w.brokers[2].server.(*host).address
			if how == "killed" {
				w.kill(2)
			} else {
				require.NoError(t, w.brokers[2].Stop(t.Context()))
				delete(w.brokers, 2)
			}
			// The port may be given out again at once, to this broker even: it takes another one by force.
			hold, err := net.Listen("tcp", before)
			if err == nil {
				defer hold.Close()
			}
			c := w.start(2, 0)
			now := c.server.(*host).address
			require.NotEqual(t, before, now)
			w.becomes("1:voter 2:voter 3:voter")
			w.works()
			w.eventually("raft's configuration has the new address", func() bool {
				servers, _ := c.node.Servers()
				for _, s := range servers {
					if s.ID == c.server.(*host).id() {
						return s.Address == now
					}
				}
				return false
			})
		})
	}
}

func TestAllStopAndStartAgain(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(3)
	id, err := w.brokers[1].Membership().ClusterID(t.Context(), "")
	require.NoError(t, err)
	for broker := range w.brokers {
		w.kill(broker)
	}
	w.found(3)
	again, err := w.brokers[2].Membership().ClusterID(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, id, again)
	w.becomes("1:voter 2:voter 3:voter")
}

// TestStartsBeforeTheOthers: a broker of a cluster that was stopped waits until there is a majority again, longer than one that knows the cluster
// waits for a leader.
func TestStartsBeforeTheOthers(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.options = func(o *Options) {
		o.HeartbeatTimeout, o.ElectionTimeout, o.LeaseTimeout = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	}
	w.found(3)
	id, err := w.brokers[1].Membership().ClusterID(t.Context(), "")
	require.NoError(t, err)
	for broker := range w.brokers {
		w.kill(broker)
	}
	first := w.start(1, 0)
	type answer struct {
		id  string
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		id, err := first.Membership().ClusterID(context.Background(), "")
		answered <- answer{id, err}
	}()
	select {
	case a := <-answered:
		require.Fail(t, "it doesn't wait for others", "%+v", a)
	case <-time.After(first.timings.Patience() + 500*time.Millisecond):
	}
	w.start(2, 0)
	require.Equal(t, answer{id, nil}, <-answered)
}

func TestSecondBrokerOfOneNameIsRefused(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(1)
	other := newTown(t)
	c := other.make(1, w.addresses(), 0)
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	h := c.server.(*host)
	var s Status
	w.eventually("it says so", func() bool {
		var err error
		s, err = w.admin().Status(t.Context(), h.address)
		return err == nil && s.Problem != ""
	})
	assert.Contains(t, s.Problem, "another living broker has this name")
	assert.Contains(t, s.Waits, "another living broker has this name")
	_, err := c.Membership().ClusterID(t.Context(), "")
	require.ErrorIs(t, err, election.ErrUnavailable, "it doesn't wait for a cluster that won't have it")
	assert.ErrorContains(t, err, "another living broker has this name")
	w.becomes("1:voter")
}

func TestForeignClustersDontMix(t *testing.T) {
	t.Parallel()
	a, b := newTown(t), newTown(t)
	a.found(1)
	h := func(w *town, broker int) *host { return w.brokers[broker].server.(*host) }
	// A broker of another cluster that is pointed to this one by mistake.
	b.found(1)
	require.NotEqual(t, h(a, 1).identity.Cluster(), h(b, 1).identity.Cluster())
	b.kill(1)
	lost := b.make(1, a.addresses(), 0)
	require.NoError(t, lost.Start(t.Context()))
	b.brokers[1] = lost
	t.Cleanup(func() { require.NoError(t, lost.Stop(context.Background())) })
	b.works()
	a.becomes("1:voter")
	b.becomes("1:voter")
}

func TestWrongKeyIsRefused(t *testing.T) {
	t.Parallel()
	key := func(b string) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, 32))) }
	w := newTown(t)
	w.options = func(o *Options) { o.EncryptionKeys = []string{key("a")} }
	w.found(1)
	w.becomes("1:voter")
	at := w.addresses()
	w.options = func(o *Options) { o.EncryptionKeys = []string{key("b")} }
	_, err := w.admin().Status(t.Context(), at[0])
	require.ErrorContains(t, err, "none of the encryption keys")
	_, err = w.admin().Remove(t.Context(), at, "1")
	require.ErrorContains(t, err, "none of the encryption keys")
}

func TestPromisesAndProposals(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	waiting := w.make(1, []string{"127.0.0.1:1"}, 3)
	require.NoError(t, waiting.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, waiting.Stop(context.Background())) })
	h := waiting.server.(*host)
	ask := func(method string, in, out any) error {
		return w.admin().client.Call(t.Context(), "", h.address, method, in, out)
	}
	one, two, by := member.NewClusterID(), member.NewClusterID(), member.NewServerID("7")
	var stands bool
	require.NoError(t, ask(methodStands, one, &stands))
	assert.False(t, stands)
	require.NoError(t, ask(methodPromise, promise{one, by}, nil))
	require.NoError(t, ask(methodPromise, promise{one, by}, nil), "again is nothing new")
	require.ErrorContains(t, ask(methodPromise, promise{two, by}, nil), "another raft cluster")
	require.Error(t, ask(methodPromise, promise{"x", by}, nil))
	require.Error(t, ask(methodPromise, "garbage", nil))
	assert.Equal(t, one, h.identity.Cluster())
	w.eventually("it says what it waits for", func() bool {
		s, err := w.admin().Status(t.Context(), h.address)
		return err == nil && strings.Contains(s.Waits, "promised itself")
	})
}
