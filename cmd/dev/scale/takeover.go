package scale

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// takeover kills the controller of a cluster that has many partitions.
func takeover(ctx context.Context, f *field) error {
	c, err := f.opener.OpenCluster(ctx, target.ClusterOptions{What: target.Barnabas, Coordination: f.broker, Brokers: 3,
		Properties: map[string]string{"log.segment.delete.delay.ms": "500"}})
	if err != nil {
		return err
	}
	defer c.Close()
	t := &succession{f: f, cluster: c}
	if t.client, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(c.Addrs(), ",")...), kgo.RetryTimeout(time.Minute), kgo.ClientID(clientID)); err != nil {
		return err
	}
	defer t.client.Close()
	steps := []func(context.Context) error{t.create, t.kill}
	if c.ZooKeeper != "" {
		steps = []func(context.Context) error{t.create, t.resign, t.kill}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, c.Output())
		}
	}
	return nil
}

// succession is a cluster whose controller ends in one way or another.
type succession struct {
	f       *field
	cluster *target.Cluster
	client  *kgo.Client
	asked   int // id of the broker that is asked how things are: not the controller
}

// replicas of each partition
const replicas = 3

func (t *succession) create(ctx context.Context) error {
	if _, err := t.controller(ctx); err != nil {
		return err
	}
	begin := time.Now()
	for have := 0; have < t.f.Partitions; have += atOnce {
		n := min(atOnce, t.f.Partitions-have)
		name := fmt.Sprintf("%s-%02d", many, have/atOnce)
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := kadm.NewClient(t.client).CreateTopic(ctx, int32(n), replicas, nil, name)
		cancel()
		if err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	if err := t.all(ctx, 2*time.Minute, func(p *kmsg.MetadataResponseTopicPartition) bool { return p.Leader > 0 && len(p.ISR) == replicas }); err != nil {
		return err
	}
	t.f.atMost(float64(t.f.Partitions)/250, time.Since(begin).Seconds(), "s: %d partitions with %d replicas created", t.f.Partitions, replicas)
	return nil
}

// all waits until the second broker says of all partitions what they ought to be.
func (t *succession) all(ctx context.Context, within time.Duration, ok func(*kmsg.MetadataResponseTopicPartition) bool) error {
	request := kmsg.NewPtrMetadataRequest()
	fit := 0
	err := await(ctx, within, "all partitions as they should be", func() (bool, error) {
		answer, err := t.client.Broker(t.asked).RetriableRequest(ctx, request)
		if err != nil {
			return false, err
		}
		fit = 0
		for _, topic := range answer.(*kmsg.MetadataResponse).Topics {
			if topic.Topic == nil || !strings.HasPrefix(*topic.Topic, many) {
				continue
			}
			for i := range topic.Partitions {
				if ok(&topic.Partitions[i]) {
					fit++
				}
			}
		}
		return fit == t.f.Partitions, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %d of %d", err, fit, t.f.Partitions)
	}
	return nil
}

// resign takes the controller's office away, as an administrator may, and waits until another one decides: one that has read all
// there is.
func (t *succession) resign(ctx context.Context) error {
	conn, root, err := t.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := pause(ctx, 2*time.Second); err != nil {
		return err
	}
	begin := time.Now()
	if err := conn.Delete(root+"/controller", -1); err != nil {
		return err
	}
	if err := t.decided(ctx, "after-resigning"); err != nil {
		return err
	}
	t.f.atMost(3, time.Since(begin).Seconds(), "s: from the controller's resignation to a topic that the next one has created")
	return nil
}

// decided creates a topic, and waits until a broker knows its leader. Who is controller is asked each time: clients remember it for
// a while.
func (t *succession) decided(ctx context.Context, topic string) error {
	return await(ctx, time.Minute, "a topic is created", func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		metadata := kmsg.NewPtrMetadataRequest()
		wanted := kmsg.NewMetadataRequestTopic()
		wanted.Topic = &topic
		metadata.Topics = append(metadata.Topics, wanted)
		answer, err := t.client.Broker(t.asked).Request(ctx, metadata)
		if err != nil {
			return false, fmt.Errorf("ask broker %d: %w", t.asked, err)
		}
		m := answer.(*kmsg.MetadataResponse)
		if len(m.Topics) == 1 && len(m.Topics[0].Partitions) == 1 && m.Topics[0].Partitions[0].Leader > 0 {
			return true, nil
		}
		create := kmsg.NewPtrCreateTopicsRequest()
		made := kmsg.NewCreateTopicsRequestTopic()
		made.Topic, made.NumPartitions, made.ReplicationFactor = topic, 1, 1
		create.Topics, create.TimeoutMillis = append(create.Topics, made), 5000
		_, _ = t.client.Broker(int(m.ControllerID)).Request(ctx, create) // there may be no controller, or the topic already
		return false, nil
	})
}

// controller finds out which broker is controller, and has another one asked from now on.
func (t *succession) controller(ctx context.Context) (*target.Member, error) {
	var id int32
	err := await(ctx, time.Minute, "there is a controller", func() (bool, error) {
		m, err := kadm.NewClient(t.client).BrokerMetadata(ctx)
		id = m.Controller
		return id > 0, err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range t.cluster.Members {
		if m.ID != int(id) {
			t.asked = m.ID
		}
	}
	return t.cluster.Members[id-1], nil
}

// kill kills the controller, which leads a third of all partitions.
func (t *succession) kill(ctx context.Context) error {
	victim, err := t.controller(ctx)
	if err != nil {
		return err
	}
	led := 0
	err = t.all(ctx, time.Minute, func(p *kmsg.MetadataResponseTopicPartition) bool {
		if p.Leader == int32(victim.ID) {
			led++
		}
		return len(p.ISR) == replicas
	})
	if err != nil {
		return err
	}
	t.f.atLeast(float64(t.f.Partitions)/4, float64(led), "partitions that the controller leads when it is killed")
	expired, end, err := t.expiry(victim.ID)
	if err != nil {
		return err
	}
	defer end()
	begin := time.Now()
	victim.Kill()
	bound, what := 6.0, "kill -9 of the controller, which has to be found out,"
	if expired != nil {
		bound, what = 3, "the killed controller's expiry"
		select {
		case <-expired:
			begin = time.Now()
		case <-time.After(time.Minute):
			return fmt.Errorf("the session of broker %d doesn't expire", victim.ID)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err = t.all(ctx, time.Minute, func(p *kmsg.MetadataResponseTopicPartition) bool {
		return p.Leader > 0 && p.Leader != int32(victim.ID) && p.ErrorCode == 0
	})
	if err != nil {
		return err
	}
	t.f.atMost(bound, time.Since(begin).Seconds(), "s: from %s to new leaders of all its partitions", what)
	begin = time.Now()
	if err := t.decided(ctx, "after-the-kill"); err != nil {
		return err
	}
	t.f.atMost(3, time.Since(begin).Seconds(), "s: from then to a topic that the new controller has created")
	return nil
}

// expiry tells when ZooKeeper removes a broker's node, where there is one. end closes the connection to it.
func (t *succession) expiry(id int) (gone <-chan zk.Event, end func(), err error) {
	if t.cluster.ZooKeeper == "" {
		return nil, func() {}, nil
	}
	conn, root, err := t.connect()
	if err != nil {
		return nil, nil, err
	}
	_, _, gone, err = conn.ExistsW(fmt.Sprintf("%s/brokers/ids/%d", root, id))
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return gone, conn.Close, nil
}

// connect connects to ZooKeeper; root is where the cluster's nodes are.
func (t *succession) connect() (conn *zk.Conn, root string, err error) {
	server, root, _ := strings.Cut(t.cluster.ZooKeeper, "/")
	conn, _, err = zk.Connect([]string{server}, 10*time.Second, zk.WithLogInfo(false))
	return conn, "/" + root, err
}
