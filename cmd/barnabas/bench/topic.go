package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// patience bounds what is done before and after the load.
	patience = 30 * time.Second
	// unknownFor is how long somebody else's topic may be unknown: one that was created just now is not known everywhere yet.
	unknownFor = 2 * time.Second
	// again is how soon it is seen that what was asked for is there: by default a client that was sent to the wrong leader looks for
	// another after 5 s only, which would be most of what creating a topic is measured to take.
	again = 50 * time.Millisecond
)

// newClient makes a client for what is done before and after the load. The caller closes it.
func newClient(addr string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(patience), kgo.ClientID(clientID), kgo.MetadataMinAge(again),
		kgo.RetryBackoffFn(func(int) time.Duration { return again }), kgo.RequestRetries(int(patience/again)))
}

// administrator administers topics, and asks single brokers.
type administrator struct {
	*kadm.Client
	brokers *kgo.Client // the same
}

// admin runs f with a client for administration.
func admin(ctx context.Context, addr string, f func(context.Context, administrator) error) error {
	client, err := newClient(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f(ctx, administrator{kadm.NewClient(client), client})
}

// CreateTopic creates a topic, and waits until it can be used. That there is one of the name already is an error.
func CreateTopic(ctx context.Context, addr, topic string, partitions int32, replicas int16) error {
	return CreateTopicWith(ctx, addr, topic, partitions, replicas, nil)
}

// CreateTopicWith is CreateTopic with a configuration for the topic.
func CreateTopicWith(ctx context.Context, addr, topic string, partitions int32, replicas int16, properties map[string]string) error {
	configs := map[string]*string{}
	for name, value := range properties {
		configs[name] = &value
	}
	return admin(ctx, addr, func(ctx context.Context, a administrator) error {
		_, err := a.CreateTopic(ctx, partitions, replicas, configs, topic)
		if err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
		_, err = leaders(ctx, a, topic, patience)
		return err
	})
}

// DeleteTopic deletes a topic; that there is none is no error.
func DeleteTopic(ctx context.Context, addr, topic string) error {
	return admin(ctx, addr, func(ctx context.Context, a administrator) error {
		_, err := a.DeleteTopic(ctx, topic)
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("delete topic %s: %w", topic, err)
		}
		return nil
	})
}

// share is what one connection serves: some partitions of one leader.
type share struct {
	addr       string
	partitions []int32
}

// shares spreads the partitions of a topic over connections, each to their leader. With more connections than partitions,
// partitions have several. 0 connections are one for each leader.
func shares(ctx context.Context, addr, topic string, connections int) ([]share, error) {
	var byLeader map[string][]int32
	err := admin(ctx, addr, func(ctx context.Context, a administrator) (err error) {
		byLeader, err = leaders(ctx, a, topic, unknownFor)
		return err
	})
	if err != nil {
		return nil, err
	}
	return spread(byLeader, connections)
}

// exclusiveShares is shares for consumers, of which each partition has exactly one.
func exclusiveShares(ctx context.Context, addr, topic string, connections int) ([]share, error) {
	all, err := shares(ctx, addr, topic, connections)
	if err != nil {
		return nil, err
	}
	seen := map[int32]bool{}
	for _, s := range all {
		for _, p := range s.partitions {
			if seen[p] {
				return nil, fmt.Errorf("%d consumers are too many for the topic's partitions: some would get nothing", connections)
			}
			seen[p] = true
		}
	}
	return all, nil
}

// leaders gives the partitions of a topic by the address of their leader, once all have one that knows it. A topic may be
// unknown for so long, and without leaders as long as ctx allows.
func leaders(ctx context.Context, a administrator, topic string, unknown time.Duration) (map[string][]int32, error) {
	begin := time.Now()
	for {
		byLeader, err := leadersNow(ctx, a, topic)
		if err == nil {
			return byLeader, nil
		}
		err = fmt.Errorf("topic %s: %w", topic, err)
		if errors.Is(err, errUnknown) && time.Since(begin) >= unknown {
			return nil, err
		}
		if pause(ctx, again) != nil {
			return nil, err
		}
	}
}

// errUnknown says that whoever was asked doesn't know the topic.
var errUnknown = errors.New("nobody knows it")

func leadersNow(ctx context.Context, a administrator, topic string) (map[string][]int32, error) {
	m, err := a.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	if err := m.Topics[topic].Err; errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	} else if err != nil {
		return nil, err
	}
	byLeader := map[string][]int32{}
	for _, p := range m.Topics[topic].Partitions {
		i := slices.IndexFunc(m.Brokers, func(b kadm.BrokerDetail) bool { return b.NodeID == p.Leader })
		if p.Err != nil || i < 0 {
			return nil, fmt.Errorf("partition %d has no leader: %w", p.Partition, cmp.Or(p.Err, error(kerr.LeaderNotAvailable)))
		}
		leader := net.JoinHostPort(m.Brokers[i].Host, strconv.Itoa(int(m.Brokers[i].Port)))
		byLeader[leader] = append(byLeader[leader], p.Partition)
	}
	if len(byLeader) == 0 {
		return nil, errUnknown
	}
	ends, err := a.ListEndOffsets(ctx, topic) // the leaders may not have heard of it yet
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	return byLeader, a.knownTo(ctx, m.Topics[topic])
}

// knownTo sees that each leader of a topic knows all of it: one of Apache Kafka's on ZooKeeper refuses records for a partition that
// it leads already until it has been told of it a second time.
func (a administrator) knownTo(ctx context.Context, d kadm.TopicDetail) error {
	asked := map[int32]bool{}
	for _, p := range d.Partitions {
		if asked[p.Leader] {
			continue
		}
		asked[p.Leader] = true
		req := kmsg.NewPtrMetadataRequest()
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &d.Topic
		req.Topics = append(req.Topics, t)
		m, err := req.RequestWith(ctx, a.brokers.Broker(int(p.Leader)))
		if err != nil {
			return err
		}
		if len(m.Topics) != 1 || m.Topics[0].ErrorCode != 0 || len(m.Topics[0].Partitions) != len(d.Partitions) {
			return fmt.Errorf("broker %d leads some of it and doesn't know it yet: %w", p.Leader, kerr.UnknownTopicOrPartition)
		}
	}
	return nil
}

func spread(byLeader map[string][]int32, connections int) ([]share, error) {
	if connections == 0 {
		connections = len(byLeader)
	}
	if connections < len(byLeader) {
		return nil, fmt.Errorf("the topic has %d leaders: at least as many connections are needed, not %d", len(byLeader), connections)
	}
	leaders := make([]string, 0, len(byLeader))
	for leader, partitions := range byLeader {
		leaders = append(leaders, leader)
		slices.Sort(partitions)
	}
	slices.Sort(leaders)
	all := make([]share, connections)
	for i := range all {
		leader := leaders[i%len(leaders)]
		partitions := byLeader[leader]
		mine, of := i/len(leaders), (connections-i%len(leaders)+len(leaders)-1)/len(leaders)
		all[i].addr = leader
		if of >= len(partitions) {
			all[i].partitions = []int32{partitions[mine%len(partitions)]}
			continue
		}
		for j := mine; j < len(partitions); j += of {
			all[i].partitions = append(all[i].partitions, partitions[j])
		}
	}
	return all, nil
}

// startOffsets gives where each partition of a topic begins. A topic without any record is an error.
func startOffsets(ctx context.Context, addr, topic string) (map[int32]int64, error) {
	starts := map[int32]int64{}
	err := admin(ctx, addr, func(ctx context.Context, a administrator) error {
		from, err := a.ListStartOffsets(ctx, topic)
		if err == nil {
			err = from.Error()
		}
		if err != nil {
			return err
		}
		to, err := a.ListEndOffsets(ctx, topic)
		if err == nil {
			err = to.Error()
		}
		empty := true
		from.Each(func(o kadm.ListedOffset) {
			starts[o.Partition] = o.Offset
			if end, ok := to.Lookup(topic, o.Partition); ok && end.Offset > o.Offset {
				empty = false
			}
		})
		if err == nil && empty {
			err = errors.New("it is empty: produce something first")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	return starts, nil
}

// endOffsets gives where each partition of a topic ends.
func endOffsets(ctx context.Context, addr, topic string) (map[int32]int64, error) {
	ends := map[int32]int64{}
	err := admin(ctx, addr, func(ctx context.Context, a administrator) error {
		to, err := a.ListEndOffsets(ctx, topic)
		if err == nil {
			err = to.Error()
		}
		to.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	return ends, nil
}
