package broker_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

// why is an explanation as somebody gets it who asks a broker.
type why struct {
	About    string
	Broker   int32
	Summary  string
	Findings []struct{ Code, Text string }
	Ask      []struct{ Broker int32 }
	State    json.RawMessage
	Events   []struct{ Kind, Text string }
}

// says finds the text of a finding, "" when there is none of that code.
func (w why) says(code string) string {
	for _, f := range w.Findings {
		if f.Code == code {
			return f.Text
		}
	}
	return ""
}

// get asks the admin server of a broker.
func get(t *testing.T, at string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(at)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// explain asks a broker why, about a subject of a kind.
func explain(t *testing.T, b *brokertest.Broker, kind, name string) (w why) {
	t.Helper()
	status, body := get(t, b.Admin()+"/explain/"+kind+"?name="+url.QueryEscape(name))
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &w))
	return w
}

// explained waits for an explanation that is as wanted, and gives it.
func explained(t *testing.T, b *brokertest.Broker, kind, name string, ok func(why) bool) (w why) {
	t.Helper()
	require.Eventually(t, func() bool {
		w = explain(t, b, kind, name)
		return ok(w)
	}, patience, 20*time.Millisecond)
	return w
}

// membership is a member of a group that does only what the test says.
type membership struct {
	t      *testing.T
	client *kgo.Client
	group  string
	id     string
	// timeouts, in milliseconds
	session, rebalance int32
	generation         int32
}

func newMember(t *testing.T, b *brokertest.Broker, group, clientID string, session, rebalance int32) *membership {
	return &membership{t: t, client: client(t, b.Addr(), kgo.ClientID(clientID)), group: group, session: session, rebalance: rebalance}
}

// join joins, in the background, and gives what tells when it is answered.
func (m *membership) join(ctx context.Context) <-chan error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = m.group, "consumer", m.session, m.rebalance
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", []byte{0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}
	req.Protocols = append(req.Protocols, protocol)
	done := make(chan error, 1)
	go func() {
		for {
			req.MemberID = m.id
			resp, err := req.RequestWith(ctx, m.client)
			if err == nil {
				err = kerr.ErrorForCode(resp.ErrorCode)
				m.id, m.generation = resp.MemberID, resp.Generation
			}
			if err != kerr.MemberIDRequired { //nolint:errorlint // never wrapped
				done <- err
				return
			}
		}
	}()
	return done
}

// sync brings or asks for the assignment, and says whether it was given.
func (m *membership) sync() bool {
	m.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	assignment := kmsg.NewSyncGroupRequestGroupAssignment()
	assignment.MemberID, assignment.MemberAssignment = m.id, []byte{1}
	req.GroupAssignment = append(req.GroupAssignment, assignment)
	resp, err := req.RequestWith(m.t.Context(), m.client)
	require.NoError(m.t, err)
	return resp.ErrorCode == 0
}

// settle joins, and again, until the member has an assignment, as clients do. joined is a join that was begun already, or nil.
func (m *membership) settle(joined <-chan error) {
	m.t.Helper()
	for {
		if joined == nil {
			joined = m.join(m.t.Context())
		}
		select {
		case err := <-joined:
			if err == nil && m.sync() {
				return
			}
			if err == kerr.UnknownMemberID { //nolint:errorlint // never wrapped
				m.id = ""
			}
			joined = nil
		case <-time.After(patience):
			m.t.Fatal("a join isn't answered")
		}
	}
}

// awaitJoin waits for the answer to a join.
func awaitJoin(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("a join isn't answered")
	}
}

// TestExplainGroup causes rebalances, each in its own way, and asks who did it.
func TestExplainGroup(t *testing.T) {
	b := testbroker.Start(t, brokertest.Storage(storagesendfile.NewFactory()), brokertest.Admin(), brokertest.Property("group.min.session.timeout.ms", "100"))
	w := explain(t, b, "group", "nobody")
	require.Contains(t, w.Summary, "no group exists yet")

	// One member joins, and is alone.
	slow := newMember(t, b, "g", "slow", 60_000, 1000)
	slow.settle(nil)
	w = explained(t, b, "group", "g", func(w why) bool { return strings.Contains(w.Summary, "stable") })
	require.Contains(t, w.Summary, "with 1 member")
	require.Contains(t, w.says("rebalance"), "rebalance began: member "+slow.id)
	require.Contains(t, w.says("rebalance"), "joined")

	// Another comes; the first one, which needn't send heartbeats yet, doesn't join again in time.
	second := newMember(t, b, "g", "second", 60_000, 1000)
	second.settle(nil)
	w = explain(t, b, "group", "g")
	require.Contains(t, w.says("rebalance"), "member "+slow.id+" at 127.0.0.1 was put out: it did not join the rebalance within 1s")

	// A third one has a short session and dies; the second one joins again, and the group goes on.
	third := newMember(t, b, "g", "third", 500, 60_000)
	joined := third.join(t.Context())
	w = explained(t, b, "group", "g", func(w why) bool { return strings.Contains(w.Summary, "1 of 2 members joined") })
	require.Contains(t, w.says("waits-for-member"), "it waits for member "+second.id)
	again := second.join(t.Context())
	awaitJoin(t, joined)
	second.settle(again)
	explained(t, b, "group", "g", func(w why) bool { return slices.ContainsFunc(w.Findings, isSessionTimeout) })
	second.settle(nil)
	w = explained(t, b, "group", "g", func(w why) bool { return strings.Contains(w.Summary, "stable") })
	require.True(t, slices.ContainsFunc(w.Events, func(e struct{ Kind, Text string }) bool {
		return e.Kind == "member-out" && strings.HasPrefix(e.Text, "member "+third.id+" at 127.0.0.1 was put out: no heartbeat for") &&
			strings.Contains(e.Text, "session.timeout.ms is 500")
	}), w.Events)
	require.Contains(t, string(w.State), `"session_timeout_ms":`)

	// The last one leaves.
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "g"
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = second.id
	leave.Members = append(leave.Members, leaving)
	_, err := leave.RequestWith(t.Context(), second.client)
	require.NoError(t, err)
	w = explained(t, b, "group", "g", func(w why) bool { return strings.Contains(w.Summary, "no members") })
	require.Contains(t, w.says("rebalance"), "member "+second.id+" at 127.0.0.1 left")
	status, body := get(t, b.Admin()+"/journal?n=1000")
	require.Equal(t, http.StatusOK, status)
	for _, kind := range []string{"rebalance-began", "rebalance-ended", "assigned", "member-out", "shard-loaded", "registered"} {
		require.Contains(t, body, `"kind": "`+kind+`"`)
	}
}

func isSessionTimeout(f struct{ Code, Text string }) bool {
	return f.Code == "rebalance" && strings.Contains(f.Text, "was not heard of for its session timeout")
}

// place makes a topic of one partition with its replicas on certain brokers, the first of them its leader.
func place(t *testing.T, c *brokertest.Cluster, topic string, replicas ...int32) {
	t.Helper()
	controller, err := c.Controller(t.Context())
	require.NoError(t, err)
	req := kmsg.NewPtrCreateTopicsRequest()
	in := kmsg.NewCreateTopicsRequestTopic()
	in.Topic, in.NumPartitions, in.ReplicationFactor = topic, -1, -1
	in.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: replicas}}
	req.Topics = append(req.Topics, in)
	resp, err := req.RequestWith(t.Context(), client(t, c.Broker(controller).Addr()))
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
}

// TestExplainPartition makes a partition under-replicated, and lead by somebody else than its preferred replica, and asks why.
func TestExplainPartition(t *testing.T) {
	c := startCluster(t, 3, brokertest.Admin(), brokertest.Property("auto.leader.rebalance.enable", "false"), brokertest.Property("replica.lag.time.max.ms", "1000"),
		brokertest.Property("replica.fetch.wait.max.ms", "100"), brokertest.Property("controller.socket.timeout.ms", "30000"))
	admin := adminAt(t, c.Addrs())
	controller, err := c.Controller(t.Context())
	require.NoError(t, err)
	others := slices.DeleteFunc([]int32{1, 2, 3}, func(id int32) bool { return id == controller })
	stays, goes := others[0], others[1]
	place(t, c, "t", goes, stays, controller)
	place(t, c, "alone", goes)
	inSync(t, c, "t", 3)
	w := explained(t, c.Broker(goes), "partition", "t-0", func(w why) bool {
		// The leader knows how far its followers are.
		return strings.HasPrefix(w.Summary, "well") && strings.Count(string(w.State), `"since_last_fetch_ms"`) == 2
	})
	require.Contains(t, w.says("preferred-leads"), "it is the preferred replica")
	w = explain(t, c.Broker(stays), "partition", "t-0")
	require.Len(t, w.Ask, 2, "leader and controller know more")

	// The preferred leader stops: another one leads, and the controller knows why.
	c.Broker(goes).Stop()
	w = explained(t, c.Broker(controller), "partition", "t-0", func(w why) bool { return w.says("preferred-not-alive") != "" })
	require.Contains(t, w.Summary, "under-replicated: 2 of 3 replicas in sync")
	require.Contains(t, w.says("not-in-sync"), "it is not alive (for ")
	require.Contains(t, w.says("leader-changed"), "which led, is stopping and handed over")
	w = explained(t, c.Broker(controller), "partition", "alone-0", func(w why) bool {
		return strings.HasPrefix(w.Summary, "offline: nobody in sync is there to lead")
	})
	require.Contains(t, w.says("no-leader"), "is not alive")
	require.NotEmpty(t, w.says("unclean-forbidden"))
	status, body := get(t, c.Broker(controller).Admin()+"/healthz?verbose")
	require.Equal(t, http.StatusOK, status, "what is wrong elsewhere doesn't fail this broker")
	require.Contains(t, body, "1 partition of the cluster without a leader")

	// It comes back, and nothing gives it the leadership back.
	c.Broker(goes).Restart()
	inSync(t, c, "t", 3)
	w = explained(t, c.Broker(controller), "partition", "t-0", func(w why) bool { return w.says("preferred-waits") != "" })
	require.Contains(t, w.says("preferred-waits"), "auto.leader.rebalance.enable is off")
	elected, err := admin.ElectLeaders(t.Context(), kadm.ElectPreferredReplica, kadm.TopicsSet{"t": {0: {}}})
	require.NoError(t, err)
	require.NoError(t, elected["t"][0].Err)
	w = explained(t, c.Broker(controller), "partition", "t-0", func(w why) bool { return w.says("preferred-leads") != "" })
	require.Contains(t, w.says("leader-changed"), "it is the preferred replica, and took over from broker")

	// A session ends without a word: the controller says that the leader isn't alive.
	c.Expire(goes)
	explained(t, c.Broker(controller), "partition", "t-0", func(w why) bool { return strings.Contains(w.says("leader-changed"), "which led, is not alive") })
	explained(t, c.Broker(goes), "broker", "", func(w why) bool {
		return strings.HasPrefix(w.Summary, "ready") && slices.Contains(w.kinds(), "registration-lost")
	})

	for _, name := range []string{"nothing-0", "t-9"} {
		require.Contains(t, explain(t, c.Broker(controller), "partition", name).Summary, "no ", name)
	}
}

func (w why) kinds() (kinds []string) {
	for _, e := range w.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestHealth takes a broker through its life: starting, serving, and without a disk.
func TestHealth(t *testing.T) {
	b := testbroker.Start(t, brokertest.Storage(storagesendfile.NewFactory()), brokertest.Admin(), brokertest.Property("log.flush.offset.checkpoint.interval.ms", "50"))
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		status, body := get(t, b.Admin()+path)
		require.Equal(t, http.StatusOK, status, body)
		require.Equal(t, "ok\n", body)
	}
	status, body := get(t, b.Admin()+"/readyz?verbose")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "[+]process ok\n[+]started ok\n[+]registration ok\n[+]log-dirs ok\nok\n", body)
	require.Contains(t, explain(t, b, "broker", "").Summary, "ready, for ")
	for path, want := range map[string]string{
		"/explain/group": "want ?name=GROUP", "/explain/partition": "want ?name=TOPIC-PARTITION", "/explain/partition?name=t": `not \"t\"`,
		"/explain/partition?name=t-99999999999": "not", "/journal?n=-1": "want a number", "/journal?n=x": "want a number",
	} {
		status, body := get(t, b.Admin()+path)
		require.Equal(t, http.StatusBadRequest, status, path)
		require.Contains(t, body, want, path)
	}

	// Its only disk goes.
	admin := adminAt(t, b.Addr())
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	dir := b.Dir()
	require.NoError(t, os.Rename(dir, dir+"-gone"))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	t.Cleanup(func() {
		require.NoError(t, os.Remove(dir))
		require.NoError(t, os.Rename(dir+"-gone", dir))
	})
	failed := b.Failed()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _ = admin.CreateTopic(short, 1, 1, nil, "another") // needs a folder
	select {
	case <-failed:
	case <-time.After(patience):
		t.Fatal("a broker without a log directory goes on")
	}
	for _, path := range []string{"/livez", "/readyz"} {
		status, body := get(t, b.Admin()+path)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "[-]process the broker can't go on: all log directories have failed", path)
	}
	w := explain(t, b, "broker", "")
	require.Contains(t, w.Summary, "not ready: the broker can't go on")
	require.Contains(t, w.kinds(), "log-dir-failed")
	require.Contains(t, w.kinds(), "cannot-go-on")
}
