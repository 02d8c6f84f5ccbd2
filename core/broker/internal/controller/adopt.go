package controller

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/election"
)

// AdoptTopics makes topics known that a broker has logs of though the cluster knows of no topic at all: its log directory was
// written by a broker of Apache Kafka, or what the cluster agreed on was lost. Each topic keeps its id; its partitions are
// led by that broker under a leader epoch above those in the logs. A partition without a log there stays without replicas,
// since what it had is elsewhere. Each topic has a result.
//
// Only a broker that is alone may: otherwise its logs may be what others have deleted.
type AdoptTopics struct {
	Broker  int32
	Topics  []FoundTopic
	Results []error
}

// FoundTopic is a topic of which there are logs.
type FoundTopic struct {
	Name   string
	ID     election.TopicID // zero: the logs don't say
	Logs   []FoundLog
	Config map[string]string
}

// FoundLog is one log of a topic.
type FoundLog struct {
	Partition   int32
	LatestEpoch int32 // the last leader epoch in it, -1 for none
}

func (*AdoptTopics) event() {}

func (m *Machine) adoptTopics(c *AdoptTopics) []Effect {
	c.Results = make([]error, len(c.Topics))
	alone := len(m.topics) == 0 && len(m.brokers) == 1 && m.alive(c.Broker)
	var w WriteTopics
	m.epochs = map[tp]int32{}
	for i := range c.Topics {
		in := &c.Topics[i]
		if !alone {
			c.Results[i] = refuse(kerr.InvalidRequest, "The cluster has topics or brokers of its own.")
			continue
		}
		if c.Results[i] = CheckTopicName(in.Name); c.Results[i] != nil {
			continue
		}
		t := election.NewTopic{Name: in.Name, ID: in.ID, Config: in.Config}
		for _, l := range in.Logs {
			if l.Partition < 0 || l.Partition >= maxPartitions {
				c.Results[i] = refuse(kerr.InvalidPartitions, "Partition %d of %s cannot be.", l.Partition, in.Name)
				break
			}
			for int(l.Partition) >= len(t.Partitions) {
				t.Partitions = append(t.Partitions, election.Assignment{})
			}
			t.Partitions[l.Partition].Replicas = []int32{c.Broker}
			m.epochs[tp{in.Name, l.Partition}] = l.LatestEpoch + 1
		}
		if c.Results[i] != nil {
			continue
		}
		if t.ID == (election.TopicID{}) {
			t.ID = m.rules.NewID()
		}
		w.Topics = append(w.Topics, t)
		w.slots = append(w.slots, &c.Results[i])
	}
	if len(w.Topics) == 0 {
		return nil
	}
	return []Effect{w}
}
