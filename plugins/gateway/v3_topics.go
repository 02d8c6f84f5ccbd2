package gateway

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

type clusterV3 struct {
	Kind           string     `json:"kind"`
	Metadata       metadataV3 `json:"metadata"`
	ClusterID      string     `json:"cluster_id"`
	Topics         relatedV3  `json:"topics"`
	ConsumerGroups relatedV3  `json:"consumer_groups"`
}

type topicV3 struct {
	Kind              string     `json:"kind"`
	Metadata          metadataV3 `json:"metadata"`
	ClusterID         string     `json:"cluster_id"`
	TopicName         string     `json:"topic_name"`
	IsInternal        bool       `json:"is_internal"`
	ReplicationFactor int        `json:"replication_factor"`
	PartitionsCount   int        `json:"partitions_count"`
	Partitions        relatedV3  `json:"partitions"`
}

type partitionV3 struct {
	Kind        string     `json:"kind"`
	Metadata    metadataV3 `json:"metadata"`
	ClusterID   string     `json:"cluster_id"`
	TopicName   string     `json:"topic_name"`
	PartitionID int32      `json:"partition_id"`
}

type createTopicV3 struct {
	TopicName         string          `json:"topic_name"`
	PartitionsCount   *int32          `json:"partitions_count,omitempty" minimum:"1" maximum:"2147483647" nullable:"true" doc:"the broker's num.partitions when absent"`
	ReplicationFactor *int16          `json:"replication_factor,omitempty" minimum:"1" maximum:"32767" nullable:"true" doc:"the broker's default.replication.factor when absent"`
	Configs           []topicConfigV3 `json:"configs,omitempty" nullable:"true"`
	ValidateOnly      *bool           `json:"validate_only,omitempty" nullable:"true" doc:"check, and create nothing"`
}

type topicConfigV3 struct {
	Name  string  `json:"name"`
	Value *string `json:"value,omitempty" nullable:"true"`
}

func (g *Gateway) topicsV3() []operation {
	const topics, topic = pathCluster + "/topics", pathCluster + "/topics/{topic_name}"
	return []operation{
		{version: 3, method: "GET", path: "/v3/clusters", id: "listClustersV3", summary: "List clusters: the one", status: 200, answer: listV3[clusterV3]{}, handle: g.listClusters},
		{version: 3, method: "GET", path: pathCluster, id: "getClusterV3", summary: "Describe the cluster", status: 200, answer: clusterV3{}, fails: []int{404}, handle: g.getCluster},
		{version: 3, method: "GET", path: topics, id: "listTopicsV3", summary: "List topics", status: 200, answer: listV3[topicV3]{}, fails: []int{404}, handle: g.listTopics},
		{version: 3, method: "POST", path: topics, id: "createTopicV3", shown: func(s *huma.Schema) { topicName(s.Properties["topic_name"]) }, summary: "Create a topic",
			takes: []string{mediaJSON}, body: createTopicV3{}, status: 201, answer: topicV3{}, fails: []int{400, 403, 404}, handle: g.createTopic},
		{version: 3, method: "GET", path: topic, id: "getTopicV3", summary: "Describe a topic", status: 200, answer: topicV3{}, fails: []int{404}, handle: g.getTopic},
		{version: 3, method: "DELETE", path: topic, id: "deleteTopicV3", summary: "Delete a topic", status: 204, fails: []int{400, 403, 404}, handle: g.deleteTopic},
		{version: 3, method: "GET", path: topic + "/partitions", id: "listPartitionsV3", summary: "List a topic's partitions", status: 200, answer: listV3[partitionV3]{}, fails: []int{404}, handle: g.listPartitions},
		{version: 3, method: "GET", path: topic + "/partitions/{partition_id}", id: "getPartitionV3", summary: "Describe a partition", status: 200, answer: partitionV3{}, fails: []int{404}, handle: g.getPartition},
	}
}

// inCluster runs f for the cluster that the path names, within the time that the broker may take.
func inCluster(c *call, f func(ctx context.Context, at place) (any, error)) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	at, err := c.cluster(ctx)
	if err != nil {
		return nil, err
	}
	return f(ctx, at)
}

func (p place) clusterV3() clusterV3 {
	return clusterV3{Kind: "KafkaCluster", Metadata: p.metadata(), ClusterID: p.cluster, Topics: p.related("topics"), ConsumerGroups: p.related("consumer-groups")}
}

func (p place) topicV3(t kadm.TopicDetail) topicV3 {
	return topicV3{
		Kind: "KafkaTopic", Metadata: p.metadata("topics", t.Topic), ClusterID: p.cluster, TopicName: t.Topic, IsInternal: t.IsInternal,
		ReplicationFactor: t.Partitions.NumReplicas(), PartitionsCount: len(t.Partitions), Partitions: p.related("topics", t.Topic, "partitions"),
	}
}

func (p place) partitionV3(d kadm.PartitionDetail) partitionV3 {
	id := strconv.Itoa(int(d.Partition))
	return partitionV3{Kind: "KafkaPartition", Metadata: p.metadata("topics", d.Topic, "partitions", id), ClusterID: p.cluster, TopicName: d.Topic, PartitionID: d.Partition}
}

func (g *Gateway) listClusters(c *call) (any, error) {
	ctx, cancel := c.bound()
	defer cancel()
	id, err := g.clusterID(ctx)
	if err != nil {
		return nil, err
	}
	at := place{base: link(c.base()+"/v3/clusters", id), cluster: id}
	return list("KafkaClusterList", c.base()+"/v3/clusters", []clusterV3{at.clusterV3()}), nil
}

func (g *Gateway) getCluster(c *call) (any, error) {
	return inCluster(c, func(_ context.Context, at place) (any, error) { return at.clusterV3(), nil })
}

func (g *Gateway) listTopics(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		topics, err := g.describe(ctx, nil)
		if err != nil {
			return nil, err
		}
		var data []topicV3
		for _, t := range topics.Sorted() {
			data = append(data, at.topicV3(t))
		}
		return list("KafkaTopicList", at.link("topics"), data), nil
	})
}

func (g *Gateway) createTopic(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		var in createTopicV3
		if _, err := c.decode(&in); err != nil {
			return nil, err
		}
		if !legal(in.TopicName) {
			return nil, fromKafka(kerr.InvalidTopicException)
		}
		partitions, replicas := int32(-1), int16(-1)
		if in.PartitionsCount != nil {
			partitions = *in.PartitionsCount
		}
		if in.ReplicationFactor != nil {
			replicas = *in.ReplicationFactor
		}
		configs := map[string]*string{}
		for _, config := range in.Configs {
			configs[config.Name] = config.Value
		}
		create, check := g.admin.CreateTopics, in.ValidateOnly != nil && *in.ValidateOnly
		if check {
			create = g.admin.ValidateCreateTopics
		}
		done, err := create(ctx, partitions, replicas, configs, in.TopicName)
		if err != nil {
			return nil, err
		}
		result := done[in.TopicName]
		if result.Err != nil {
			return nil, refused(result.Err, result.ErrMessage)
		}
		g.topics.forget(in.TopicName)
		if !check {
			c.w.Header().Set("Location", at.link("topics", in.TopicName))
		}
		return topicV3{
			Kind: "KafkaTopic", Metadata: at.metadata("topics", in.TopicName), ClusterID: at.cluster, TopicName: in.TopicName,
			ReplicationFactor: int(result.ReplicationFactor), PartitionsCount: int(result.NumPartitions), Partitions: at.related("topics", in.TopicName, "partitions"),
		}, nil
	})
}

// refused gives the broker's own words, where it has any, in place of the code's.
func refused(err error, message string) error {
	answer := fromError(err)
	if message != "" {
		answer.Message = message
	}
	return answer
}

// topicOf finds the topic that the path names.
func (g *Gateway) topicOf(ctx context.Context, c *call) (kadm.TopicDetail, error) {
	return g.topic(ctx, c.param("topic_name"))
}

func (g *Gateway) getTopic(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		t, err := g.topicOf(ctx, c)
		if err != nil {
			return nil, err
		}
		return at.topicV3(t), nil
	})
}

func (g *Gateway) deleteTopic(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, _ place) (any, error) {
		t, err := g.topicOf(ctx, c)
		if err != nil {
			return nil, err
		}
		done, err := g.admin.DeleteTopics(ctx, t.Topic)
		if err != nil {
			return nil, err
		}
		g.topics.forget(t.Topic)
		result := done[t.Topic]
		if result.Err != nil {
			return nil, refused(result.Err, result.ErrMessage)
		}
		return nil, nil
	})
}

func (g *Gateway) listPartitions(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		t, err := g.topicOf(ctx, c)
		if err != nil {
			return nil, err
		}
		var data []partitionV3
		for _, p := range t.Partitions.Sorted() {
			data = append(data, at.partitionV3(p))
		}
		return list("KafkaPartitionList", at.link("topics", t.Topic, "partitions"), data), nil
	})
}

func (g *Gateway) getPartition(c *call) (any, error) {
	return inCluster(c, func(ctx context.Context, at place) (any, error) {
		n, err := c.partition()
		if err != nil {
			return nil, fail(http.StatusNotFound, "Partition %.20s cannot be found.", c.param("partition_id"))
		}
		t, err := g.topicOf(ctx, c)
		if err != nil {
			return nil, err
		}
		all := t.Partitions.Sorted()
		found := slices.IndexFunc(all, func(p kadm.PartitionDetail) bool { return p.Partition == n })
		if found < 0 {
			return nil, fail(http.StatusNotFound, "Partition %d cannot be found.", n)
		}
		return at.partitionV3(all[found]), nil
	})
}
