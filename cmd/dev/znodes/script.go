package znodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// step is one action, or several that belong together.
type step struct {
	name  string
	do    func(context.Context, *player) error
	until func(Tree) error // what has to be true of the nodes before they are read; nil for nothing
}

// script is what is played. Every choice that a controller would make at random is made here.
func script() []step {
	return []step{
		{"the start", func(context.Context, *player) error { return nil }, brokers(1, 2, 3)},
		{"topics are created", createTopics, inSync},
		{"configurations are changed", changeConfigs, nil},
		{"partitions are added", addPartitions, inSync},
		{"a producer has an id", producerID, nil},
		{"replicas are moved, added and removed", reassign, all(settled, inSync)},
		{"replicas are put into another order", reorder, all(settled, inSync)},
		{"a follower and leader stops", func(_ context.Context, p *player) error { return p.cluster.Members[2].Stop() }, brokers(1, 2)},
		{"it comes back", func(ctx context.Context, p *player) error { return p.cluster.Members[2].Start(ctx) }, all(brokers(1, 2, 3), inSync)},
		{"preferred leaders are elected", electPreferred, preferred},
		{"the controller stops", func(_ context.Context, p *player) error { return p.cluster.Members[0].Stop() }, all(brokers(2, 3), hasController)},
		{"and comes back", func(ctx context.Context, p *player) error { return p.cluster.Members[0].Start(ctx) }, all(brokers(1, 2, 3), inSync)},
		{"an old tool elects preferred leaders", oldElection, preferred},
		{"an old tool moves replicas", oldReassignment, all(settled, inSync)},
		{"an old tool creates a topic", oldTopic, all(settled, inSync)},
		{"topics are deleted", deleteTopics, settled},
		{"an old tool deletes a topic", func(_ context.Context, p *player) error { return p.write("/admin/delete_topics/old", "") }, all(settled, gone("old"))},
		{"a deleted topic is created again", func(ctx context.Context, p *player) error { return p.create(ctx, "gone", nil, []int32{2, 3}) }, inSync},
	}
}

// create creates a topic with these replicas.
func (p *player) create(ctx context.Context, topic string, configs map[string]string, replicas ...[]int32) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, -1, -1
	for i, r := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), r
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for k, v := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		t.Configs = append(t.Configs, c)
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

func createTopics(ctx context.Context, p *player) error {
	return errors.Join(
		p.create(ctx, "plain", nil, []int32{1, 2, 3}, []int32{2, 3, 1}, []int32{3, 1, 2}),
		p.create(ctx, "configured", map[string]string{"cleanup.policy": "compact", "retention.ms": "3600000"}, []int32{1}, []int32{3}),
		p.create(ctx, "gone", map[string]string{"min.insync.replicas": "2"}, []int32{1, 3}, []int32{3, 2}),
		p.create(ctx, "with.dots_and-dashes", nil, []int32{2}),
	)
}

func changeConfigs(ctx context.Context, p *player) error {
	set := func(name, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value}
	}
	first := func(answers kadm.AlterConfigsResponses, err error) error {
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		return err
	}
	return errors.Join(
		first(p.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{set("retention.ms", "7200000"), {Op: kadm.DeleteConfig, Name: "cleanup.policy"}}, "configured")),
		first(p.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{set("max.message.bytes", "2000000")}, "plain")),
		first(p.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "max.message.bytes"}}, "plain")),
		first(p.admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{set("log.cleaner.threads", "2")}, 1)),
		first(p.admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{set("message.max.bytes", "1500000")})),
	)
}

func addPartitions(ctx context.Context, p *player) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = "configured", 4
	for _, r := range [][]int32{{2}, {1}} {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = r
		t.Assignment = append(t.Assignment, a)
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

func producerID(ctx context.Context, p *player) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

func (p *player) assign(ctx context.Context, req kadm.AlterPartitionAssignmentsReq) error {
	answers, err := p.admin.AlterPartitionAssignments(ctx, req)
	if err != nil {
		return err
	}
	return answers.Error()
}

func reassign(ctx context.Context, p *player) error {
	// Records, so that there is something to copy.
	record := &kgo.Record{Topic: "configured", Key: []byte("k"), Value: make([]byte, 1000)}
	if err := p.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return err
	}
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign("plain", 0, []int32{2, 3})
	req.Assign("configured", 0, []int32{1, 2})
	req.Assign("configured", 1, []int32{2})
	return p.assign(ctx, req)
}

func reorder(ctx context.Context, p *player) error {
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign("plain", 1, []int32{3, 2, 1})
	return p.assign(ctx, req)
}

func electPreferred(ctx context.Context, p *player) error {
	results, err := p.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil)
	if err != nil {
		return err
	}
	for _, t := range results {
		for _, r := range t {
			if r.Err != nil && !errors.Is(r.Err, kerr.ElectionNotNeeded) {
				err = errors.Join(err, fmt.Errorf("%s-%d: %w", r.Topic, r.Partition, r.Err))
			}
		}
	}
	return err
}

func oldElection(_ context.Context, p *player) error {
	tree, err := p.read(context.Background())
	if err != nil {
		return err
	}
	var list []string
	for _, s := range states(tree) {
		list = append(list, fmt.Sprintf(`{"topic":%q,"partition":%s}`, s.topic, s.partition))
	}
	slices.Sort(list)
	return p.write("/admin/preferred_replica_election", `{"version":1,"partitions":[`+strings.Join(list, ",")+`]}`)
}

func oldReassignment(_ context.Context, p *player) error {
	return p.write("/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"plain","partition":0,"replicas":[3,1]}]}`)
}

// oldTopic is what tools from before topics had ids write.
func oldTopic(_ context.Context, p *player) error {
	return errors.Join(
		p.write("/config/topics/old", `{"version":1,"config":{"retention.ms":"60000"}}`),
		p.write("/brokers/topics/old", `{"version":1,"partitions":{"0":[2,1],"1":[3,2]}}`))
}

func deleteTopics(ctx context.Context, p *player) error {
	deleted, err := p.admin.DeleteTopics(ctx, "gone", "with.dots_and-dashes")
	if err != nil {
		return err
	}
	return deleted.Error()
}

// all is content when all are.
func all(conditions ...func(Tree) error) func(Tree) error {
	return func(t Tree) error {
		var errs []error
		for _, c := range conditions {
			errs = append(errs, c(t))
		}
		return errors.Join(errs...)
	}
}

// brokers says that these are alive, and no others.
func brokers(ids ...int) func(Tree) error {
	return func(t Tree) error {
		var want, got []string
		for _, id := range ids {
			want = append(want, fmt.Sprintf("/brokers/ids/%d", id))
		}
		for path := range t {
			if strings.HasPrefix(path, "/brokers/ids/") {
				got = append(got, path)
			}
		}
		slices.Sort(got)
		if !slices.Equal(want, got) {
			return fmt.Errorf("registered are %v, want %v", got, want)
		}
		return nil
	}
}

func hasController(t Tree) error {
	if _, ok := t["/controller"]; !ok {
		return errors.New("there is no controller")
	}
	return nil
}

func gone(topic string) func(Tree) error {
	return func(t Tree) error {
		if _, there := t["/brokers/topics/"+topic]; there {
			return fmt.Errorf("topic %s is there", topic)
		}
		return nil
	}
}

// settled says that nothing is asked of the controller any more.
func settled(t Tree) error {
	var errs []error
	for path, n := range t {
		var v struct {
			Adding   map[string][]int32 `json:"adding_replicas"`
			Removing map[string][]int32 `json:"removing_replicas"`
		}
		switch {
		case path == "/admin/reassign_partitions", path == "/admin/preferred_replica_election", strings.HasPrefix(path, "/admin/delete_topics/"):
			errs = append(errs, fmt.Errorf("there is %s", path))
		case strings.HasPrefix(path, "/brokers/topics/") && json.Unmarshal([]byte(n.Data), &v) == nil && len(v.Adding)+len(v.Removing) > 0:
			errs = append(errs, fmt.Errorf("%s is being reassigned", path))
		}
	}
	return errors.Join(errs...)
}

// state is a partition's state with its assignment.
type state struct {
	topic, partition string
	replicas         []int32
	Leader           int32   `json:"leader"`
	ISR              []int32 `json:"isr"`
}

// states are those of all partitions. Those without a state have no leader and no ISR.
func states(t Tree) (list []state) {
	for path, n := range t {
		topic, ok := strings.CutPrefix(path, "/brokers/topics/")
		if !ok || strings.Contains(topic, "/") {
			continue
		}
		var v struct {
			Partitions map[string][]int32 `json:"partitions"`
		}
		if json.Unmarshal([]byte(n.Data), &v) != nil {
			continue
		}
		for partition, replicas := range v.Partitions {
			s := state{topic: topic, partition: partition, replicas: replicas, Leader: -1}
			_ = json.Unmarshal([]byte(t[path+"/partitions/"+partition+"/state"].Data), &s) // none: no leader
			list = append(list, s)
		}
	}
	return list
}

// inSync says that all replicas are in sync.
func inSync(t Tree) error {
	var errs []error
	for _, s := range states(t) {
		if s.Leader < 0 || len(s.ISR) != len(s.replicas) {
			errs = append(errs, fmt.Errorf("%s-%s: led by %d, in sync %v of %v", s.topic, s.partition, s.Leader, s.ISR, s.replicas))
		}
	}
	return errors.Join(errs...)
}

// preferred says that the preferred replicas lead.
func preferred(t Tree) error {
	errs := []error{inSync(t), settled(t)}
	for _, s := range states(t) {
		if s.Leader != s.replicas[0] {
			errs = append(errs, fmt.Errorf("%s-%s: led by %d of %v", s.topic, s.partition, s.Leader, s.replicas))
		}
	}
	return errors.Join(errs...)
}
