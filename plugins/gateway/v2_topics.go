package gateway

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicV2 is a topic as version 2 shows it.
type topicV2 struct {
	Name       string            `json:"name"`
	Configs    map[string]string `json:"configs" doc:"the effective configuration"`
	Partitions []partitionV2     `json:"partitions" nullable:"false"`
}

type partitionV2 struct {
	Partition int32       `json:"partition"`
	Leader    int32       `json:"leader" doc:"the broker that leads; -1 when none does"`
	Replicas  []replicaV2 `json:"replicas" nullable:"false"`
}

type replicaV2 struct {
	Broker int32 `json:"broker"`
	Leader bool  `json:"leader"`
	InSync bool  `json:"in_sync"`
}

type offsetsV2 struct {
	Beginning int64 `json:"beginning_offset" doc:"the first offset that is still there"`
	End       int64 `json:"end_offset" doc:"the offset that the next record will have"`
}

type brokersV2 struct {
	Brokers []int32 `json:"brokers" nullable:"false" doc:"ids"`
}

func (g *Gateway) topicsV2() []operation {
	return []operation{
		{version: 2, method: "GET", path: "/topics", id: "listTopicsV2", summary: "List topics", status: 200, answer: []string{}, handle: g.listTopicsV2},
		{version: 2, method: "GET", path: "/topics/{topic_name}", id: "getTopicV2", summary: "Describe a topic", status: 200, answer: topicV2{}, fails: []int{400, 404}, handle: g.getTopicV2},
		{version: 2, method: "GET", path: "/topics/{topic_name}/partitions", id: "listPartitionsV2", summary: "List a topic's partitions", status: 200, answer: []partitionV2{}, fails: []int{404}, handle: g.listPartitionsV2},
		{version: 2, method: "GET", path: "/topics/{topic_name}/partitions/{partition_id}", id: "getPartitionV2", summary: "Describe a partition", status: 200, answer: partitionV2{}, fails: []int{404}, handle: g.getPartitionV2},
		{version: 2, method: "GET", path: "/topics/{topic_name}/partitions/{partition_id}/offsets", id: "getPartitionOffsetsV2", summary: "A partition's first and next offset", status: 200, answer: offsetsV2{}, fails: []int{404}, handle: g.getOffsetsV2},
		{version: 2, method: "GET", path: "/brokers", id: "listBrokersV2", summary: "List brokers", status: 200, answer: brokersV2{}, handle: g.listBrokersV2},
	}
}

func (g *Gateway) listTopicsV2(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	topics, err := g.describe(ctx, nil)
	if err != nil {
		return nil, err
	}
	topics.FilterInternal()
	return append([]string{}, topics.Names()...), nil
}

// topic finds one topic, or says that there is none.
func (g *Gateway) topic(ctx context.Context, name string) (kadm.TopicDetail, error) {
	if !legal(name) {
		return kadm.TopicDetail{}, kerr.UnknownTopicOrPartition
	}
	topics, err := g.describe(ctx, []string{name})
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	return topics[name], topics[name].Err
}

// describe asks the broker for some topics, nil for all. The library would answer from what it was told a moment ago, without
// a topic that was created since.
func (g *Gateway) describe(ctx context.Context, names []string) (kadm.TopicDetails, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, g.client)
	if err != nil {
		return nil, err
	}
	out := kadm.TopicDetails{}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		detail := kadm.TopicDetail{Topic: *t.Topic, IsInternal: t.IsInternal, Partitions: kadm.PartitionDetails{}, Err: kerr.ErrorForCode(t.ErrorCode)}
		for _, p := range t.Partitions {
			detail.Partitions[p.Partition] = kadm.PartitionDetail{Topic: *t.Topic, Partition: p.Partition, Leader: p.Leader, Replicas: p.Replicas, ISR: p.ISR}
		}
		out[*t.Topic] = detail
	}
	return out, nil
}

// topicPartition finds one partition.
func (g *Gateway) topicPartition(ctx context.Context, topic string, partition int32) (kadm.PartitionDetail, error) {
	t, err := g.topic(ctx, topic)
	if err != nil {
		return kadm.PartitionDetail{}, err
	}
	p, ok := t.Partitions[partition]
	if !ok {
		return p, noPartition()
	}
	return p, nil
}

func (g *Gateway) getTopicV2(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	t, err := g.topic(ctx, c.param("topic_name"))
	if err != nil {
		return nil, err
	}
	configs, err := g.admin.DescribeTopicConfigs(ctx, t.Topic)
	if err != nil {
		return nil, err
	}
	out := topicV2{Name: t.Topic, Configs: map[string]string{}, Partitions: partitionsV2(t)}
	for _, resource := range configs {
		if resource.Err != nil {
			return nil, resource.Err
		}
		for _, config := range resource.Configs {
			out.Configs[config.Key] = config.MaybeValue()
		}
	}
	return out, nil
}

func partitionsV2(t kadm.TopicDetail) []partitionV2 {
	out := make([]partitionV2, 0, len(t.Partitions))
	for _, p := range t.Partitions.Sorted() {
		out = append(out, toPartitionV2(p))
	}
	return out
}

func toPartitionV2(p kadm.PartitionDetail) partitionV2 {
	out := partitionV2{Partition: p.Partition, Leader: p.Leader, Replicas: make([]replicaV2, 0, len(p.Replicas))}
	for _, broker := range p.Replicas {
		out.Replicas = append(out.Replicas, replicaV2{Broker: broker, Leader: broker == p.Leader, InSync: slices.Contains(p.ISR, broker)})
	}
	return out
}

func (g *Gateway) listPartitionsV2(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	t, err := g.topic(ctx, c.param("topic_name"))
	if err != nil {
		return nil, err
	}
	return partitionsV2(t), nil
}

func (g *Gateway) getPartitionV2(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	n, err := c.partition()
	if err != nil {
		return nil, err
	}
	p, err := g.topicPartition(ctx, c.param("topic_name"), n)
	if err != nil {
		return nil, err
	}
	return toPartitionV2(p), nil
}

func (g *Gateway) getOffsetsV2(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	n, err := c.partition()
	if err != nil {
		return nil, err
	}
	topic := c.param("topic_name")
	if _, err := g.topicPartition(ctx, topic, n); err != nil {
		return nil, err
	}
	begin, err := g.offset(ctx, g.admin.ListStartOffsets, topic, n)
	if err != nil {
		return nil, err
	}
	end, err := g.offset(ctx, g.admin.ListEndOffsets, topic, n)
	if err != nil {
		return nil, err
	}
	return offsetsV2{Beginning: begin, End: end}, nil
}

// offset asks for one end of a partition.
func (g *Gateway) offset(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string, partition int32) (int64, error) {
	listed, err := list(ctx, topic)
	if err != nil {
		return 0, err
	}
	found, ok := listed.Lookup(topic, partition)
	if !ok {
		return 0, noPartition()
	}
	return found.Offset, found.Err
}

func (g *Gateway) listBrokersV2(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	brokers, err := g.admin.ListBrokers(ctx)
	if err != nil {
		return nil, err
	}
	return brokersV2{Brokers: append([]int32{}, brokers.NodeIDs()...)}, nil
}

// clusterID is the cluster's id.
func (g *Gateway) clusterID(ctx context.Context) (string, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := req.RequestWith(ctx, g.client)
	if err != nil {
		return "", err
	}
	if resp.ClusterID == nil {
		return "", nil
	}
	return *resp.ClusterID, nil
}
