package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// written is how many of the dead broker's partitions take records.
const written = 10

// failOver is a broker, not the controller, that leads all partitions of a topic and is ended in one way or another.
type failOver struct {
	of     *cluster
	topic  string
	victim *target.Member
	client *kgo.Client // of the others
}

// clusterFailOvers ends leaders.
func (c *Comparison) clusterFailOvers(ctx context.Context, clusters []*cluster) error {
	if !c.wantsClusters(clusterShutdown, clusterFailOver, clusterElections) {
		return nil
	}
	var all []*failOver
	for _, x := range clusters {
		f, err := newFailOver(ctx, x)
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		defer f.client.Close()
		all = append(all, f)
	}
	for range c.Rounds {
		for _, f := range all {
			if c.wantsClusters(clusterShutdown) {
				if err := f.shutdown(ctx, c.Env.Say); err != nil {
					return fmt.Errorf("%s, %s: %w", f.of.name, clusterShutdown, err)
				}
			}
			if c.wantsClusters(clusterFailOver, clusterElections) {
				if err := f.kill(ctx, c.Env.Say); err != nil {
					return fmt.Errorf("%s, %s: %w", f.of.name, clusterFailOver, err)
				}
			}
		}
	}
	return nil
}

// newFailOver makes the topic. Its partitions have the last broker as their preferred leader; the first one is controller.
func newFailOver(ctx context.Context, x *cluster) (*failOver, error) {
	members := x.running.Members
	victim := members[len(members)-1]
	client, err := kgo.NewClient(kgo.SeedBrokers(x.addrs()[:len(members)-1]...), kgo.RetryTimeout(time.Minute))
	if err != nil {
		return nil, err
	}
	f := &failOver{of: x, topic: "fail-over", victim: victim, client: client}
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = f.topic, -1, -1
	for p := range int32(many) {
		others := []int32{int32(members[p%2].ID), int32(members[1-p%2].ID)}
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = p, append([]int32{int32(victim.ID)}, others...)
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis, request.Topics = 60_000, []kmsg.CreateTopicsRequestTopic{topic}
	response, err := request.RequestWith(ctx, client)
	if err == nil && len(response.Topics) == 1 {
		err = kerr.ErrorForCode(response.Topics[0].ErrorCode)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("create topic %s: %w", f.topic, err)
	}
	return f, nil
}

// restore brings the victim back, to lead all partitions with all replicas in sync.
func (f *failOver) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := f.victim.Start(ctx); err != nil {
		return err
	}
	inSync := func(p *kmsg.MetadataResponseTopicPartition) bool {
		return p.Leader >= 0 && len(p.ISR) == clusterBrokers
	}
	if _, err := f.await(ctx, inSync); err != nil {
		return err
	}
	if _, err := kadm.NewClient(f.client).ElectLeaders(ctx, kadm.ElectPreferredReplica, f.all()); err != nil {
		return err
	}
	_, err := f.await(ctx, func(p *kmsg.MetadataResponseTopicPartition) bool {
		return inSync(p) && p.Leader == int32(f.victim.ID)
	})
	return errors.Join(err, pause(ctx, 3*time.Second)) // what follows is over then
}

func (f *failOver) all() kadm.TopicsSet {
	var s kadm.TopicsSet
	for p := range int32(many) {
		s.Add(f.topic, p)
	}
	return s
}

// await asks the second broker, which neither decides nor dies, until all partitions are as wanted, and says when they were.
func (f *failOver) await(ctx context.Context, ok func(*kmsg.MetadataResponseTopicPartition) bool) (time.Time, error) {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(f.topic)
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{topic}
	asked := f.client.Broker(f.of.running.Members[1].ID)
	for {
		n := 0
		answer, err := asked.Request(ctx, request)
		now := time.Now()
		if err == nil {
			m := answer.(*kmsg.MetadataResponse)
			for i := range m.Topics {
				for j := range m.Topics[i].Partitions {
					if ok(&m.Topics[i].Partitions[j]) {
						n++
					}
				}
			}
		}
		if n == many {
			return now, nil
		}
		if ended := pause(ctx, 20*time.Millisecond); ended != nil {
			return now, fmt.Errorf("%d of %d partitions are as wanted: %w", n, many, errors.Join(ended, err))
		}
	}
}

// sending writes to the victim's partitions until end is called, which gives the acknowledgements.
func (f *failOver) sending(ctx context.Context) (end func() ([]ack, error)) {
	p := pacer{addrs: f.of.addrs(), topic: f.topic, partitions: written, rate: 20 * written}
	ctx, stop := context.WithCancel(ctx)
	var acks []ack
	var err error
	done := make(chan struct{})
	go func() { // ends with ctx, and a minute later at most
		defer close(done)
		acks, err = p.run(ctx, time.Hour)
	}()
	return func() ([]ack, error) {
		stop()
		<-done
		return acks, err
	}
}

// shutdown stops the victim as an operator does.
func (f *failOver) shutdown(ctx context.Context, say func(string, ...any)) error {
	if err := f.restore(ctx); err != nil {
		return err
	}
	begin, end := time.Now(), f.sending(ctx)
	err := pause(ctx, 3*time.Second)
	if err == nil {
		err = errors.Join(f.victim.Stop(), pause(ctx, 2*time.Second))
	}
	acks, sendErr := end()
	if err = errors.Join(err, sendErr); err != nil {
		return err
	}
	// The first moments are the client's, which makes its connections.
	longest := silence(slices.DeleteFunc(acks, func(a ack) bool { return a.at.Before(begin.Add(time.Second)) }))
	if longest == 0 {
		return errors.New("nothing was acknowledged")
	}
	f.of.note(clusterShutdown, longest.Seconds())
	say("%-18s %-18s %7.2f s of silence", clusterShutdown, f.of.name, longest.Seconds())
	return nil
}

// kill ends the victim with SIGKILL. What counts begins when ZooKeeper has its session expire.
func (f *failOver) kill(ctx context.Context, say func(string, ...any)) error {
	if err := f.restore(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	gone, closeWatch, err := f.watch()
	if err != nil {
		return err
	}
	defer closeWatch()
	end := f.sending(ctx)
	killed, expired, elected, err := f.killed(ctx, gone)
	if err == nil {
		err = pause(ctx, 5*time.Second) // writes go on by then, or they are late enough
	}
	acks, sendErr := end()
	if err = errors.Join(err, sendErr); err != nil {
		return err
	}
	on := goesOn(acks, killed, written)
	if on.IsZero() {
		return errors.New("writes did not go on")
	}
	f.of.note(clusterFailOver, max(on.Sub(expired), 0).Seconds())
	f.of.note(clusterElections, elected.Sub(expired).Seconds())
	say("%-18s %-18s expired %.2f s after its death; %.2f s later writes go on, %.2f s later all have leaders", clusterFailOver, f.of.name,
		expired.Sub(killed).Seconds(), on.Sub(expired).Seconds(), elected.Sub(expired).Seconds())
	return nil
}

// killed kills the victim, and says when it was, when its session expired, and when all its partitions had new leaders.
func (f *failOver) killed(ctx context.Context, gone <-chan zk.Event) (killed, expired, elected time.Time, err error) {
	if err = pause(ctx, 2*time.Second); err != nil {
		return
	}
	killed = time.Now()
	f.victim.Kill()
	select {
	case e := <-gone:
		expired = time.Now()
		if e.Type != zk.EventNodeDeleted {
			err = fmt.Errorf("watching the broker's session: %v %v", e.Type, e.Err)
			return
		}
	case <-ctx.Done():
		err = ctx.Err()
		return
	}
	elected, err = f.await(ctx, func(p *kmsg.MetadataResponseTopicPartition) bool {
		return p.Leader >= 0 && p.Leader != int32(f.victim.ID)
	})
	return
}

// watch tells when ZooKeeper removes the victim's node. end closes the connection to it.
func (f *failOver) watch() (gone <-chan zk.Event, end func(), err error) {
	server, root, _ := strings.Cut(f.of.running.ZooKeeper, "/")
	conn, _, err := zk.Connect([]string{server}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	node := fmt.Sprintf("/%s/brokers/ids/%d", root, f.victim.ID)
	there, _, gone, err := conn.ExistsW(node)
	if err == nil && !there {
		err = fmt.Errorf("ZooKeeper has no %s", node)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return gone, conn.Close, nil
}
