package broker

import (
	"context"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
)

// adopt takes over the topics that the log directories hold, when the cluster knows of none and never has another broker: the
// directories come from Apache Kafka, or the coordination's own records are lost. How the topics were configured isn't in the
// directories, so nothing of them is deleted by time or size until somebody says otherwise.
func (b *Broker) adopt(ctx context.Context) error {
	if topics, _ := b.cache.Snapshot().Counts(); topics > 0 || !b.solitary() || !b.controller.Active() {
		return nil
	}
	found := map[string]*controller.FoundTopic{}
	producers := int64(0) // above all ids that producers had
	for l := range b.logs.All() {
		for _, p := range l.Producers() {
			if p.ProducerID < 1<<62 { // clients may make ids up; those no coordination has reached
				producers = max(producers, p.ProducerID+1)
			}
		}
		t := found[l.Topic()]
		if t == nil {
			t = &controller.FoundTopic{Name: l.Topic(), Config: map[string]string{"retention.ms": "-1", "retention.bytes": "-1"}}
			if controller.Internal(t.Name) {
				t.Config = controller.InternalTopic(t.Name, b.configs.Layers()).Config
				if _, ok := t.Config["min.insync.replicas"]; ok {
					t.Config["min.insync.replicas"] = "1"
				}
			}
			found[l.Topic()] = t
		}
		if id, ok := l.TopicID(); ok {
			t.ID = id
		}
		t.Logs = append(t.Logs, controller.FoundLog{Partition: l.Partition(), LatestEpoch: l.LatestEpoch()})
	}
	if len(found) == 0 {
		return nil
	}
	// A new producer under an old one's id would be taken for that one: what it writes would be answered as a duplicate.
	if _, err := b.coordination.Metadata().ProducerIDs(ctx, b.id, producers); err != nil {
		return err
	}
	c := &controller.AdoptTopics{Broker: b.id}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		c.Topics = append(c.Topics, *found[name])
	}
	if err := b.controller.Do(ctx, c); err != nil {
		return err
	}
	for i, err := range c.Results {
		name := c.Topics[i].Name
		if err != nil {
			b.log.Error("a topic in the log directories could not be taken over", "topic", name, "err", err)
			continue
		}
		b.configChanged(name) // its logs were opened under the defaults
		b.log.Warn("took over a topic that the cluster did not know; how it was configured is lost, so its records are kept until you configure it",
			"topic", name, "partitions", len(c.Topics[i].Logs))
	}
	return nil
}
