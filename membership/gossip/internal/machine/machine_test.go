package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// cluster applies commands as raft does: as text, with rising indexes.
type cluster struct {
	t     require.TestingT
	m     *Machine
	index uint64
}

func (c *cluster) apply(command Command) (Result, []election.Change) {
	text, err := json.Marshal(command)
	require.NoError(c.t, err)
	again, err := DecodeCommand(text)
	require.NoError(c.t, err, string(text))
	c.index++
	return c.m.Apply(c.index, again)
}

func (c *cluster) open(server string) uint64 {
	r, _ := c.apply(Command{OpenSession: &OpenSession{server}})
	require.NoError(c.t, r.Err)
	return uint64(r.Number)
}

func (c *cluster) campaign(session uint64, nonce string) Result {
	r, _ := c.apply(Command{Campaign: &Campaign{Holding{session, nonce}, int32(session)}})
	return r
}

func broker(id int32) Broker {
	return Broker{ID: id, Endpoints: []Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 9000 + id}}}
}

func (c *cluster) register(session uint64, nonce string, id int32) Result {
	r, _ := c.apply(Command{Register: &Register{Holding{session, nonce}, broker(id)}})
	return r
}

func TestSessions(t *testing.T) {
	c := &cluster{t: t, m: New()}
	a, b := c.open("a"), c.open("b")
	first := c.campaign(a, "1")
	require.Equal(t, int64(1), first.Number)
	require.Equal(t, first, c.campaign(a, "1"), "who doesn't know whether it was elected asks again")
	require.ErrorIs(t, c.campaign(a, "2").Err, ErrSeatTaken)
	require.ErrorIs(t, c.campaign(b, "1").Err, ErrSeatTaken)
	require.Equal(t, int64(1), c.register(a, "r", 1).Number)
	require.Equal(t, int64(1), c.register(a, "r", 1).Number)
	require.ErrorIs(t, c.register(b, "r", 1).Err, election.ErrBrokerExists)
	require.Equal(t, int64(2), c.register(b, "r", 2).Number)

	// A session that ends takes along all that it holds, in one step.
	_, changes := c.apply(Command{CloseSessions: []uint64{a, 999}})
	require.Equal(t, []election.Change{{Kind: election.BrokersChanged}}, changes)
	controller, epoch := c.m.Controller()
	require.Equal(t, election.NoBroker, controller)
	require.Equal(t, int32(1), epoch)
	require.Len(t, c.m.Brokers(), 1)
	require.ErrorIs(t, c.campaign(a, "1").Err, ErrNoSession)
	require.ErrorIs(t, c.register(a, "r", 1).Err, ErrNoSession)
	r, _ := c.apply(Command{Epoch: 1, Nothing: true})
	require.ErrorIs(t, r.Err, election.ErrStaleController)

	// Another session of the same server ends the one before it, whoever opened that.
	require.Equal(t, int64(2), c.campaign(b, "2").Number)
	again := c.open("b")
	require.False(t, c.m.HasSession(b))
	require.Empty(t, c.m.Brokers())
	require.Equal(t, int64(3), c.campaign(again, "1").Number)
}

// TestTakenBack lets what was taken back arrive after that.
func TestTakenBack(t *testing.T) {
	c := &cluster{t: t, m: New()}
	s := c.open("a")
	c.apply(Command{Resign: &Holding{s, "1"}})
	c.apply(Command{Leave: &Holding{s, "2"}})
	require.ErrorIs(t, c.campaign(s, "1").Err, ErrWithdrawn)
	require.ErrorIs(t, c.register(s, "2", 1).Err, ErrWithdrawn)
	require.NoError(t, c.campaign(s, "3").Err)
	require.NoError(t, c.register(s, "4", 1).Err)
	c.apply(Command{Resign: &Holding{s, "3"}})
	c.apply(Command{Leave: &Holding{s, "4"}})
	require.NoError(t, c.campaign(s, "5").Err)
	require.Empty(t, c.m.Brokers())
	c.apply(Command{CloseSessions: []uint64{s}})
	require.Empty(t, c.m.withdrawn, "a session that is over leaves nothing behind")
	c.apply(Command{Resign: &Holding{s, "6"}})
	require.Empty(t, c.m.withdrawn)
}

func TestCommandsThatAreNone(t *testing.T) {
	for _, text := range []string{``, `{}`, `[]`, `null`, `{"later":1}`, `{"nothing":true,"new_broker_id":true}`, `{"nothing":true} x`,
		`{"identify":"a"`, `{"create_topics":[{"name":1}]}`} {
		_, err := DecodeCommand([]byte(text))
		require.ErrorIs(t, err, ErrCommand, text)
	}
}

// draw makes a random command, which may make no sense.
func draw(t *rapid.T, c *cluster) Command {
	session := rapid.Uint64Range(1, 40).Draw(t, "session")
	h := Holding{session, rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "nonce")}
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	epoch := rapid.Int32Range(max(0, c.m.kept.ControllerEpoch-1), c.m.kept.ControllerEpoch).Draw(t, "epoch")
	switch rapid.IntRange(0, 14).Draw(t, "command") {
	case 0, 1:
		return Command{OpenSession: &OpenSession{rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "server")}}
	case 2:
		return Command{CloseSessions: []uint64{session}}
	case 3, 4:
		return Command{Campaign: &Campaign{h, rapid.Int32Range(1, 3).Draw(t, "broker")}}
	case 5:
		return Command{Resign: &h}
	case 6, 7:
		return Command{Register: &Register{h, broker(rapid.Int32Range(-1, 3).Draw(t, "broker"))}}
	case 8:
		return Command{Leave: &h}
	case 9:
		return Command{DirFailed: &DirFailed{rapid.Int32Range(-1, 2).Draw(t, "broker")}}
	case 10:
		return Command{Epoch: epoch, Done: []Request{{rapid.Int32Range(0, 2).Draw(t, "broker"), "1"}}}
	case 11:
		return Command{Epoch: epoch, CreateTopics: []NewTopic{{TopicOp: *state.NewTopicOp(name, election.TopicID{1}, make([]election.Assignment, 2)), Config: map[string]string{"k": "v"}}}}
	case 12:
		return Command{Epoch: epoch, UpdatePartitions: []state.StateOp{{Topic: name, PartitionEpoch: rapid.Int32Range(-1, 1).Draw(t, "at")}}}
	case 13:
		return Command{Epoch: epoch, MarkDeleted: []string{name}}
	}
	return Command{Epoch: epoch, RemoveTopics: []string{name}}
}

// TestHistories plays random commands: epochs only rise, what is held belongs to sessions that exist, and a server that begins with a snapshot
// taken at any time comes to the same.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{t: t, m: New()}
		var late *cluster
		controllers, brokers := int32(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			command := draw(t, c)
			r, changes := c.apply(command)
			if late != nil {
				lr, lchanges := late.apply(command)
				require.Equal(t, text(t, r), text(t, lr))
				require.Equal(t, changes, lchanges)
			} else if rapid.IntRange(0, 10).Draw(t, "snapshot") == 0 {
				late = &cluster{t: t, m: reread(t, c), index: c.index}
			}
			if command.Register != nil && r.Err == nil {
				brokers = max(brokers, r.Number)
			}
			require.GreaterOrEqual(t, c.m.kept.ControllerEpoch, controllers)
			require.GreaterOrEqual(t, c.m.kept.BrokerEpoch, brokers)
			controllers = c.m.kept.ControllerEpoch
			if seat := c.m.controller; seat != nil {
				require.True(t, c.m.HasSession(seat.Session))
				require.Equal(t, controllers, seat.epoch)
			}
			for _, b := range c.m.brokers {
				require.True(t, c.m.HasSession(b.Session))
			}
			for h := range c.m.withdrawn {
				require.True(t, c.m.HasSession(h.Session))
			}
		}
		require.Equal(t, written(t, c), written(t, &cluster{t: t, m: reread(t, c), index: c.index}))
	})
}

func text(t require.TestingT, r Result) string {
	b, err := json.Marshal(r)
	require.NoError(t, err)
	return string(b)
}

func written(t require.TestingT, c *cluster) string {
	var b bytes.Buffer
	n, err := c.m.Snapshot(c.index).WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, int(n), b.Len())
	return b.String()
}

func reread(t require.TestingT, c *cluster) *Machine {
	m, index, err := ReadSnapshot(strings.NewReader(written(t, c)))
	require.NoError(t, err)
	require.Equal(t, c.index, index)
	return m
}

// full has something of everything.
func full(t testing.TB) *cluster {
	c := &cluster{t: t, m: New()}
	s := c.open("a")
	c.campaign(s, "1")
	c.register(s, "2", 1)
	for _, command := range []Command{
		{Identify: "c"}, {NewBrokerID: true}, {ProducerIDs: &ProducerIDs{1, 0}}, {DirFailed: &DirFailed{1}}, {Leave: &Holding{s, "gone"}},
		{Epoch: 1, CreateTopics: []NewTopic{{TopicOp: *state.NewTopicOp("a", election.TopicID{1}, make([]election.Assignment, 2)), Config: map[string]string{"k": "v"}}}},
		{Epoch: 1, UpdatePartitions: []state.StateOp{{Topic: "a", ISR: []int32{1}, PartitionEpoch: -1}}},
		{Epoch: 1, MarkDeleted: []string{"a"}},
	} {
		r, _ := c.apply(command)
		require.NoError(t, r.Err)
		require.NoError(t, errors.Join(r.Items...))
	}
	return c
}

// TestSnapshotFormat pins what the files of the store hold.
func TestSnapshotFormat(t *testing.T) {
	require.Equal(t, `{"header":{"format":"barnabas-memberlist","version":1,"index":11}}
{"op":{"cluster_id":"c"}}
{"op":{"controller_epoch":1}}
{"op":{"broker_epoch":1}}
{"op":{"last_broker_id":1001}}
{"op":{"next_producer_id":1000}}
{"op":{"config_version":1}}
{"op":{"topic":{"name":"a","id":"AQAAAAAAAAAAAAAAAAAAAA","partitions":[{"replicas":null},{"replicas":null}]}}}
{"op":{"state":{"topic":"a","partition":0,"leader":0,"leader_epoch":0,"isr":[1],"controller_epoch":0,"partition_epoch":0}}}
{"op":{"deleting":"a"}}
{"op":{"config":{"kind":"topic","name":"a","values":{"k":"v"},"version":1}}}
{"session":{"id":1,"server":"a"}}
{"controller":{"session":1,"nonce":"1","broker":1,"epoch":1}}
{"broker":{"session":1,"nonce":"2","broker":{"id":1,"epoch":1,"endpoints":[{"listener":"PLAINTEXT","protocol":"PLAINTEXT","host":"h","port":9001}]}}}
{"request":{"broker":1,"id":"1"}}
{"withdrawn":{"session":1,"nonce":"gone"}}
{"reported":1}
{"lines":17}
`, written(t, full(t)))
}

// TestDamagedSnapshots cuts a snapshot at every byte, and changes its lines.
func TestDamagedSnapshots(t *testing.T) {
	whole := written(t, full(t))
	for cut := range len(whole) - 1 {
		_, _, err := ReadSnapshot(strings.NewReader(whole[:cut]))
		require.ErrorIs(t, err, ErrSnapshot, "cut at %d", cut)
	}
	for from, to := range map[string]string{
		`"version":1,"index"`: `"version":2,"index"`, `barnabas-memberlist`: `something`, `{"lines":17}`: `{"lines":16}`,
		`{"session":{"id":1`: `{"session":{"id":2`, `"broker":1,"epoch":1}}`: `"broker":1,"epoch":2}}`, `"port":9001`: `"port":0`,
		`{"reported":1}`: `{}`, `{"op":{"broker_epoch":1}}`: `{"op":{}}`, `{"request"`: `{"later"`,
	} {
		require.Contains(t, whole, from)
		_, _, err := ReadSnapshot(strings.NewReader(strings.Replace(whole, from, to, 1)))
		require.ErrorIs(t, err, ErrSnapshot, to)
	}
}

func TestImport(t *testing.T) {
	ops := []state.Op{{ClusterID: "c"}, {ControllerEpoch: 7}}
	c := &cluster{t: t, m: New()}
	r, _ := c.apply(Command{Import: append(ops, state.Op{ControllerEpoch: 6})})
	require.ErrorIs(t, r.Err, election.ErrInvalid)
	require.True(t, c.m.kept.IsEmpty(), "as a whole or not at all")
	r, changes := c.apply(Command{Import: ops})
	require.NoError(t, r.Err)
	require.Equal(t, []election.Change{{Kind: election.EverythingChanged}}, changes)
	require.Equal(t, int64(8), c.campaign(c.open("a"), "1").Number)
	r, _ = c.apply(Command{Import: ops})
	require.ErrorIs(t, r.Err, ErrNotEmpty)
}

// TestResultsTravel sees that errors are what they were on another server.
func TestResultsTravel(t *testing.T) {
	for _, sentinel := range codes() {
		out := Result{Err: sentinel, Items: []error{nil, sentinel}, Epochs: []int32{3, 0}, Number: 5, Count: 6, Text: "x"}
		var in Result
		require.NoError(t, json.Unmarshal([]byte(text(t, out)), &in))
		require.ErrorIs(t, in.Err, sentinel)
		require.ErrorIs(t, in.Items[1], sentinel)
		require.NoError(t, in.Items[0])
		in.Err, in.Items[1] = sentinel, sentinel
		require.Equal(t, out, in)
	}
	for _, bad := range []string{`{"items":-1}`, `{"items":100000000}`, `{"items":1,"failed":{"1":{"code":"x"}}}`, `{"items":1,"failed":{"0":null}}`, `{"epochs":[1]}`, `[]`} {
		var in Result
		require.Error(t, json.Unmarshal([]byte(bad), &in), bad)
	}
}

// FuzzDecodeCommand gives a machine any entry. It never panics, and what it leads to can be written and read.
func FuzzDecodeCommand(f *testing.F) {
	for _, text := range []string{`{"open_session":{"server":"a"}}`, `{"epoch":1,"create_topics":[{"name":"a","id":"AQAAAAAAAAAAAAAAAAAAAA","partitions":[{"replicas":[1]}]}]}`,
		`{"import":[{"cluster_id":"a"},{"last_broker_id":2147483647}]}`, `{"register":{"session":1,"nonce":"x","broker":{"id":1,"endpoints":[]}}}`,
		`{"epoch":1,"update_partitions":[{"topic":"a","partition":0,"partition_epoch":-1}]}`, `{"epoch":1,"set_configs":[{"kind":"","name":"","version":-1}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		command, err := DecodeCommand(text)
		if err != nil {
			require.ErrorIs(t, err, ErrCommand)
			return
		}
		c := full(t)
		c.index++
		c.m.Apply(c.index, command)
		reread(t, c)
	})
}

// FuzzReadSnapshot gives the reader any bytes. What it accepts comes back the same.
func FuzzReadSnapshot(f *testing.F) {
	f.Add([]byte(written(f, full(f))))
	f.Add([]byte("{\"header\":{\"format\":\"barnabas-memberlist\",\"version\":1}}\n{\"lines\":1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, index, err := ReadSnapshot(bytes.NewReader(data))
		if err != nil {
			require.ErrorIs(t, err, ErrSnapshot)
			return
		}
		c := &cluster{t: t, m: m, index: index}
		require.Equal(t, written(t, c), written(t, &cluster{t: t, m: reread(t, c), index: index}))
	})
}
