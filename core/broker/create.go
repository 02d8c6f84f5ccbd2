package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/election"
)

// createPatience bounds how long a broker waits for the controller to create a topic that a client is interested in. The
// client is told to ask again, and finds the topic then.
const createPatience = 5 * time.Second

// createTopics creates topics because somebody is interested in them: here when this broker is controller, or else by asking
// the controller. Counts that aren't given are this broker's.
func (b *Broker) createTopics(ctx context.Context, topics []controller.NewTopic) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, createPatience)
	defer cancel()
	if !b.solitary() {
		// In a cluster a topic has the replicas that it is to have, or waits until enough brokers live, as with Kafka.
		topics = slices.Clone(topics)
		for i := range topics {
			topics[i].AtMostAlive = false
		}
	}
	results := make([]error, len(topics))
	command := &controller.CreateTopics{Topics: topics}
	err := b.controller.Do(ctx, command)
	if err == nil {
		for i := range results {
			results[i] = command.Results[i].Err
		}
		return results, nil
	}
	if !errors.Is(err, controller.ErrNotController) {
		return nil, err
	}
	resp, err := b.creating.Do(ctx, b.createRequest(topics))
	if err != nil {
		return nil, fmt.Errorf("ask the controller to create topics: %w", err)
	}
	answers := map[string]error{}
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		answers[t.Topic] = kerr.ErrorForCode(t.ErrorCode)
	}
	for i := range results {
		var ok bool
		if results[i], ok = answers[topics[i].Name]; !ok {
			results[i] = errors.New("the controller's answer lacks the topic")
		}
	}
	return results, nil
}

// solitary reports whether the cluster never has another broker.
func (b *Broker) solitary() bool {
	_, ok := b.coordination.(election.Solitary)
	return ok
}

// createRequest asks for topics as this broker's properties have them.
func (b *Broker) createRequest(topics []controller.NewTopic) *kmsg.CreateTopicsRequest {
	rules := b.rules()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	req.TimeoutMillis = int32(createPatience / time.Millisecond)
	for i := range topics {
		in := &topics[i]
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = in.Name, in.Partitions, in.ReplicationFactor
		if t.NumPartitions < 0 {
			t.NumPartitions = rules.Partitions
		}
		if t.ReplicationFactor < 0 {
			t.ReplicationFactor = rules.ReplicationFactor
		}
		for name, value := range in.Config {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = name, kmsg.StringPtr(value)
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// ensureTopic creates an internal topic unless it exists. When it returns nil, this broker knows its leaders.
func (b *Broker) ensureTopic(ctx context.Context, topic string) error {
	results, err := b.createTopics(ctx, []controller.NewTopic{controller.InternalTopic(topic, b.configs.Layers())})
	if err == nil && results[0] != nil && !errors.Is(results[0], kerr.TopicAlreadyExists) {
		err = results[0]
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, createPatience)
	defer cancel()
	_, err = b.cache.Await(ctx, func(s *metadata.Snapshot) bool { return led(s, topic) })
	return err
}

// led reports whether a topic is known, and leaders of all its partitions.
func led(s *metadata.Snapshot, topic string) bool {
	t, ok := s.Topic(topic)
	if !ok || len(t.Partitions) == 0 {
		return false
	}
	for i := range t.Partitions {
		if t.Partitions[i].Leader < 0 {
			return false
		}
	}
	return true
}
