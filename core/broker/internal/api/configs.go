package api

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
)

// This file has what AlterConfigs and IncrementalAlterConfigs share.

// change is a change of one resource's settings: for a topic, or for the broker properties of a target. It gets what holds and
// what is set, and returns what is to be set.
type change struct {
	topic  func(now kafka.Layers, set kafka.Values) (kafka.Values, error)
	broker func(now kafka.Layers, target kafka.Target) (kafka.Layers, error)
}

// alter makes a change of a resource, or only checks it.
func (h *handlers) alter(ctx context.Context, kind kmsg.ConfigResourceType, name string, dry bool, c change) error {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		return h.alterTopic(ctx, name, dry, c)
	case kmsg.ConfigResourceTypeBroker:
		target, err := h.brokerTarget(name)
		if err != nil {
			return err
		}
		return h.alterBroker(ctx, target, dry, c)
	}
	return refuse(kerr.InvalidRequest, "Unsupported config resource type "+strconv.Itoa(int(kind)))
}

func (h *handlers) alterTopic(ctx context.Context, name string, dry bool, c change) error {
	if name == "" {
		return refuse(kerr.InvalidRequest, "Default topic resources are not allowed.")
	}
	if controller.CheckTopicName(name) != nil {
		return refuse(kerr.UnknownTopicOrPartition, "The topic '"+name+"' does not exist.")
	}
	if _, ok := h.Cluster.Metadata.Snapshot().Topic(name); !ok {
		return refuse(kerr.UnknownTopicOrPartition, "The topic '"+name+"' does not exist.")
	}
	if dry {
		_, err := c.topic(h.layers(), h.Cluster.Configs.Topic(name))
		return err
	}
	return h.keep(ctx, metadata.TopicEntity(name), c.topic)
}

func (h *handlers) alterBroker(ctx context.Context, target kafka.Target, dry bool, c change) error {
	check := func(now kafka.Layers, _ kafka.Values) (kafka.Values, error) {
		next, err := c.broker(now, target)
		if err != nil {
			// Kafka says INVALID_REQUEST to whatever is wrong with a broker's property.
			if code(err) == kerr.InvalidConfig.Code {
				err = refuse(kerr.InvalidRequest, err.Error())
			}
			return nil, err
		}
		if target == kafka.AllBrokers {
			return next.DynamicDefault, nil
		}
		return next.Dynamic, nil
	}
	if dry {
		_, err := check(h.layers(), nil)
		return err
	}
	return h.keep(ctx, metadata.BrokerEntity(target, h.Cluster.BrokerID), check)
}

// keep has a change kept by the coordination, under the epoch of whoever is controller, and in force here.
func (h *handlers) keep(ctx context.Context, e election.Entity, change func(kafka.Layers, kafka.Values) (kafka.Values, error)) error {
	_, epoch, err := h.Cluster.Coordination.Election().Controller(ctx)
	if err != nil {
		return err
	}
	return h.Cluster.Configs.Change(ctx, epoch, e, change)
}

// brokerTarget reads the name of a broker resource: this broker's id, or "" for all. Other brokers' are changed there.
func (h *handlers) brokerTarget(name string) (kafka.Target, error) {
	if name == "" {
		return kafka.AllBrokers, nil
	}
	return kafka.ThisBroker, h.checkBrokerName(name)
}

// checkBrokerName refuses names of brokers that aren't this one's.
func (h *handlers) checkBrokerName(name string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return refuse(kerr.InvalidRequest, "Broker id must be an integer, but it is: "+name)
	}
	if int32(id) != h.Cluster.BrokerID {
		return refuse(kerr.InvalidRequest, "Unexpected broker id, expected "+strconv.Itoa(int(h.Cluster.BrokerID))+", but received "+name)
	}
	return nil
}
