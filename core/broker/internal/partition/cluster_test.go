package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

// fault is a mistake that is planted into the cluster, for the tests that see it found.
type fault int

const (
	none                fault = iota
	acksAtOnce                // a leader acknowledges what only it has
	cutsToHighWatermark       // a new follower cuts its log where it believes the high watermark is (before KIP-101)
	neverDiverges             // a leader doesn't look whether a follower's log has parted from its own
	anyAnswer                 // a follower appends what it asked another leader for
	anyController             // a broker listens to a controller that has a successor
	electsAnybody             // the controller elects who isn't in sync
)

// reporter is what the cluster needs of *testing.T and *rapid.T, and of the one that expects a failure.
type reporter interface {
	require.TestingT
	Helper()
}

var errDied = errors.New("the controller's process died")

// cluster is all there is.
type cluster struct {
	t       reporter
	planted fault
	mem     *electiontest.Memory
	nodes   map[int32]*node
	order   []int32
	ids     []ID
	minISR  int
	now     time.Time
	cut     map[[2]int32]bool // from -> to
	values  int

	office  *office // the newest controller's; nil when there is none
	zombies []*office
	dieAt   int // writes until the controller's process dies
	after   bool
	members bool // the controller hasn't looked who is alive since that changed
	steady  bool // no controller or session has ended

	// what must hold
	leaders   map[string]int32 // by partition and leader epoch
	committed map[ID][]entry
	acked     map[ID][]produced
	highest   map[string]int64 // high watermark of a leader in an epoch
	lost      map[ID]bool      // its only replica in sync lost its disk
}

// office is one term of a controller, with what it has to tell the brokers yet.
type office struct {
	c       *cluster
	node    *node
	session *controller.Session
	term    election.Term
	queues  map[int32]*queue
	alive   map[int32]bool // by the last UpdateMetadata that was pushed
}

// queue is what one registration of a broker is to be told.
type queue struct {
	epoch    int64
	requests []kmsg.Request
}

func newCluster(t reporter, planted fault, nodes, minISR int) *cluster {
	c := &cluster{t: t, planted: planted, mem: electiontest.NewMemory(), nodes: map[int32]*node{}, minISR: minISR, now: time.Unix(1000, 0),
		cut: map[[2]int32]bool{}, leaders: map[string]int32{}, committed: map[ID][]entry{}, acked: map[ID][]produced{}, highest: map[string]int64{}, lost: map[ID]bool{}, steady: true}
	c.mem.Before = func(string) error { return c.write(false) }
	c.mem.After = func(string) error { return c.write(true) }
	for id := int32(1); id <= int32(nodes); id++ {
		c.nodes[id] = &node{c: c, id: id, disk: map[ID]*trail{}}
		c.order = append(c.order, id)
		c.start(id)
	}
	return c
}

// write counts the controller's writes, and kills it before or after one.
func (c *cluster) write(done bool) error {
	if c.dieAt == 0 || done != c.after {
		return nil
	}
	if c.dieAt--; c.dieAt == 0 {
		return errDied
	}
	return nil
}

// reaches says whether two nodes can talk: both work, and there is a way in both directions.
func (c *cluster) reaches(a, b *node) bool {
	return a.working() && b.working() && !c.cut[[2]int32{a.id, b.id}] && !c.cut[[2]int32{b.id, a.id}]
}

// start starts a node's process. What it held in the coordination is over by then.
func (c *cluster) start(id int32) {
	n := c.nodes[id]
	if n.up {
		return
	}
	if n.member != nil {
		c.expire(id)
	}
	n.member = c.mem.Member()
	require.NoError(c.t, n.member.Start(context.Background()))
	n.up, n.held, n.stopping, n.controllerEpoch, n.replicas = true, false, false, -1, map[ID]*replica{}
	n.cache = metadata.NewCache(n.epoch)
	for _, l := range n.disk {
		l.hw = min(l.saved, l.end())
	}
	c.register(n)
}

func (c *cluster) register(n *node) {
	r, err := n.member.Membership().Register(context.Background(), election.Broker{ID: n.id,
		Endpoints: []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "host", Port: 1000 + n.id}}})
	require.NoError(c.t, err)
	n.registration = r
	c.members = true
}

// kill ends a node's process. Its session lasts on.
func (c *cluster) kill(id int32) {
	n := c.nodes[id]
	n.up, n.replicas, c.steady = false, nil, false
	c.zombies = slices.DeleteFunc(c.zombies, func(o *office) bool { return o.node == n })
	if c.office != nil && c.office.node == n {
		c.office = nil // its term lasts until the session has expired
	}
}

// expire ends a node's session. The node doesn't know yet.
func (c *cluster) expire(id int32) {
	c.mem.Expire(c.nodes[id].member)
	c.members, c.steady = true, false
	if c.office != nil && c.office.node.id == id {
		c.zombies = append(c.zombies, c.office)
		c.office = nil
	}
}

// notice makes a node see that its session has expired: it drops what it had to tell as controller, and registers anew.
func (c *cluster) notice(id int32) {
	n := c.nodes[id]
	if !n.working() {
		return
	}
	select {
	case <-n.registration.Lost():
	default:
		return
	}
	c.zombies = slices.DeleteFunc(c.zombies, func(o *office) bool { return o.node == n })
	c.register(n)
}

// elect makes a node controller, if nobody is.
func (c *cluster) elect(id int32) {
	n := c.nodes[id]
	if !n.working() || c.office != nil {
		return
	}
	if who, _, err := n.member.Election().Controller(context.Background()); err != nil || who != election.NoBroker {
		return // the session of the last one lasts
	}
	term, err := n.member.Election().Campaign(context.Background(), id)
	require.NoError(c.t, err)
	o := &office{c: c, node: n, term: term, queues: map[int32]*queue{}, alive: map[int32]bool{}}
	o.session = controller.NewSession(controller.Options{Election: n.member.Election(), Membership: n.member.Membership(), Metadata: n.member.Metadata(),
		Requests: n.member.Requests(), Pusher: o, Rules: controller.Rules{BrokerID: id, InterBroker: "PLAINTEXT", Partitions: 1, ReplicationFactor: 1, DeleteTopics: true,
			Unclean:     func(string) bool { return c.planted == electsAnybody },
			CheckConfig: func(map[string]string) error { return nil },
			Draw:        func(int) int { return 0 },
			NewID:       func() election.TopicID { c.values++; return election.TopicID{1, byte(c.values), byte(c.values >> 8)} }}}, term)
	c.office, c.members = o, false
	c.done(o.session.Begin(context.Background()))
}

// done takes the outcome of what a controller did.
func (c *cluster) done(err error) bool {
	if err == nil {
		return true
	}
	if errors.Is(err, errDied) {
		c.kill(c.office.node.id)
		return false
	}
	require.ErrorIs(c.t, err, election.ErrStaleController)
	return false
}

// command has the controller do something.
func (c *cluster) command(ev controller.Event) bool {
	if c.office == nil || !c.office.node.working() {
		return false
	}
	return c.done(c.office.session.Handle(context.Background(), ev))
}

// look has the controller look at what the coordination reports as changed.
func (c *cluster) look(everything bool) {
	if c.office == nil || !c.office.node.working() || !c.members && !everything {
		return
	}
	ch := election.Change{Kind: election.BrokersChanged}
	if everything {
		ch.Kind = election.EverythingChanged
	}
	c.members = false
	if !c.done(c.office.session.Changed(context.Background(), []election.Change{ch})) {
		c.members = true
	}
}

// ask brings a request to the controller, and returns its answer; nil when there is none.
func (c *cluster) ask(from *node, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	o := c.office
	if o == nil || from != o.node && !c.reaches(from, o.node) || !o.node.working() {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
	if !c.command(&controller.AlterPartition{Request: req, Response: resp}) {
		return nil
	}
	return resp
}

// Push takes what the controller has to tell a broker, as peers.Pusher does: its own broker is told at once, others in order.
func (o *office) Push(broker int32, epoch int64, req kmsg.Request) kmsg.Response {
	sent := kmsg.RequestForKey(req.Key())
	sent.SetVersion(req.GetVersion())
	require.NoError(o.c.t, sent.ReadFrom(req.AppendTo(nil)))
	if update, ok := sent.(*kmsg.UpdateMetadataRequest); ok {
		clear(o.alive)
		for _, b := range update.LiveBrokers {
			o.alive[b.ID] = true
		}
		maps.DeleteFunc(o.queues, func(id int32, _ *queue) bool { return !o.alive[id] })
	}
	if broker == o.node.id {
		return o.node.handle(sent)
	}
	q := o.queues[broker]
	if q == nil || q.epoch < epoch {
		q = &queue{epoch: epoch}
		o.queues[broker] = q
	}
	if q.epoch == epoch {
		q.requests = append(q.requests, sent)
	}
	return nil
}

// Drop is for those who run in the background.
func (o *office) Drop() {}

// deliver brings the next request of a controller to a broker. When its answer is lost, it is brought again.
func (o *office) deliver(broker int32, answered bool) {
	q, n := o.queues[broker], o.c.nodes[broker]
	if q == nil || len(q.requests) == 0 || !o.c.reaches(o.node, n) {
		return
	}
	req := q.requests[0]
	resp := n.handle(req)
	if !answered {
		return
	}
	q.requests = q.requests[1:]
	if o == o.c.office {
		o.c.command(controller.Delivered{Broker: broker, Epoch: q.epoch, Request: req, Response: resp})
	}
}

// create creates a topic with one partition.
func (c *cluster) create(name string, replicas []int32) {
	cmd := &controller.CreateTopics{Topics: []controller.NewTopic{{Name: name, Partitions: -1, ReplicationFactor: -1,
		Manual: []controller.ManualPartition{{Partition: 0, Replicas: replicas}}}}}
	id := ID{name, 0}
	if c.command(cmd) && cmd.Results[0].Err == nil && !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}

// states are the partitions as they are decided.
func (c *cluster) states() map[ID]election.Partition {
	reader := c.mem.Member()
	require.NoError(c.t, reader.Start(context.Background()))
	topics, err := reader.Metadata().Topics(context.Background())
	require.NoError(c.t, err)
	require.NoError(c.t, reader.Stop(context.Background()))
	all := map[ID]election.Partition{}
	for _, t := range topics {
		for i, p := range t.Partitions {
			all[ID{t.Name, int32(i)}] = p
		}
	}
	return all
}

func (c *cluster) String() string {
	s := ""
	for id, p := range c.states() {
		s += fmt.Sprintf("%v: %+v", id, p.Assignment)
		if p.State != nil {
			s += fmt.Sprintf(" %+v", *p.State)
		}
		s += fmt.Sprintf("\n  committed %v\n", c.committed[id])
		for _, n := range c.order {
			node := c.nodes[n]
			if l := node.disk[id]; l != nil {
				s += fmt.Sprintf("  %d up=%v held=%v %v %v", n, node.up, node.held, l, l.epochs)
				if r := node.replicas[id]; r != nil {
					s += fmt.Sprintf(" role=%d %+v hw=%d proposal=%v sent=%v answer=%+v", r.state.role, r.state.Assignment, r.state.hw, r.state.proposal, r.proposed, r.answer)
				}
				s += "\n"
			}
		}
	}
	return s
}
