package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newClient is a client that soon gives up brokers that don't answer.
func newClient(addrs ...string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.DialTimeout(2*time.Second), kgo.RequestTimeoutOverhead(3*time.Second), kgo.MetadataMinAge(50*time.Millisecond))
}

// await waits until what the cluster says is as wanted, whichever broker says it.
func (c *Cluster) await(ctx context.Context, within time.Duration, what string, ok func(kadm.Metadata) bool, topics ...string) error {
	return poll(ctx, within, what, func(ctx context.Context) (done bool, said string, err error) {
		m, err := c.admin.Metadata(ctx, topics...)
		return err == nil && ok(m), describe(m), err
	})
}

// agreed waits until what each broker says is as wanted. One that was cut off may say for a while that all is well, as it was, while the others
// have taken it for dead: it alone doesn't count, and neither do they.
func (c *Cluster) agreed(ctx context.Context, within time.Duration, what string, ok func(kadm.Metadata) bool, topics ...string) error {
	return poll(ctx, within, what+", as each broker says", func(ctx context.Context) (done bool, said string, err error) {
		for _, b := range c.Brokers {
			m, err := b.metadata(ctx, topics...)
			if err != nil {
				return false, "", fmt.Errorf("%s: %w", b.name(), err)
			}
			if !ok(m) {
				return false, b.name() + " says: " + describe(m), nil
			}
		}
		return true, "", nil
	})
}

// poll asks until it is done. Its error has what was said last.
func poll(ctx context.Context, within time.Duration, what string, ask func(context.Context) (done bool, said string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	last := "nothing was answered"
	for {
		done, said, err := ask(ctx)
		switch {
		case done:
			return nil
		case err == nil:
			last = said
		case ctx.Err() == nil:
			last = err.Error()
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("after %s it still isn't so that %s: %s", within, what, last)
		}
	}
}

// metadata is what this broker says of the cluster, and of topics.
func (b *Broker) metadata(ctx context.Context, topics ...string) (m kadm.Metadata, err error) {
	if b.client == nil {
		if b.client, err = newClient(b.Addr()); err != nil {
			return m, err
		}
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would be all
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	r, err := req.RequestWith(ctx, b.client.SeedBrokers()[0])
	if err != nil {
		return m, err
	}
	m.Controller, m.Topics = r.ControllerID, kadm.TopicDetails{}
	for _, peer := range r.Brokers {
		m.Brokers = append(m.Brokers, kadm.BrokerDetail{NodeID: peer.NodeID, Host: peer.Host, Port: peer.Port, Rack: peer.Rack})
	}
	for _, t := range r.Topics {
		if t.Topic == nil {
			continue
		}
		topic := kadm.TopicDetail{Topic: *t.Topic, Partitions: kadm.PartitionDetails{}, Err: kerr.ErrorForCode(t.ErrorCode)}
		for _, p := range t.Partitions {
			topic.Partitions[p.Partition] = kadm.PartitionDetail{
				Topic: *t.Topic, Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR, Err: kerr.ErrorForCode(p.ErrorCode),
			}
		}
		m.Topics[topic.Topic] = topic
	}
	return m, nil
}

// forget ends the connections to the broker.
func (b *Broker) forget() {
	if b.client != nil {
		b.client.Close()
		b.client = nil
	}
}

// describe says what metadata says.
func describe(m kadm.Metadata) string {
	var b strings.Builder
	fmt.Fprintf(&b, "controller %d, brokers %v", m.Controller, m.Brokers.NodeIDs())
	for _, t := range m.Topics.Sorted() {
		if t.Err != nil {
			fmt.Fprintf(&b, "; %s: %v", t.Topic, t.Err)
		}
		for _, p := range t.Partitions.Sorted() {
			fmt.Fprintf(&b, "; %s-%d: leader %d of %v, in sync %v", t.Topic, p.Partition, p.Leader, p.Replicas, p.ISR)
		}
	}
	return b.String()
}
