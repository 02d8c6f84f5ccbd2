package zookeeper

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// What others write: Kafka's tools and brokers of all ages, people with a shell, and nobody knows who.

// put writes a node as others do, whatever was there.
func put(t *testing.T, c *coordination, path, data string) {
	t.Helper()
	s := c.current()
	_, err := s.create(inTime(t), path, []byte(data), 0, c.acl(path))
	if err != nil {
		_, err = s.set(inTime(t), path, []byte(data), -1)
	}
	require.NoError(t, err)
}

func node1(t *testing.T, c *coordination, path string) string {
	t.Helper()
	n, err := c.current().get(inTime(t), path)
	require.NoError(t, err)
	return string(n.data)
}

func missing(t *testing.T, c *coordination, path string) bool {
	t.Helper()
	exists, err := c.current().exists(inTime(t), path)
	require.NoError(t, err)
	return !exists
}

func topicsOf(t *testing.T, c *coordination) map[string]election.Topic {
	t.Helper()
	all, err := c.Metadata().Topics(inTime(t))
	require.NoError(t, err)
	byName := map[string]election.Topic{}
	for _, topic := range all {
		byName[topic.Name] = topic
	}
	return byName
}

func TestTopicsOfOthers(t *testing.T) {
	o := newCluster(t).o
	c, others := begin(t, o, ""), begin(t, o, "")
	term := elect(t, c, 1)
	w, err := c.Metadata().Watch(inTime(t), election.TopicChanged)
	require.NoError(t, err)
	defer w.Close()

	put(t, others, topicPath("old"), `{"version":1,"partitions":{"1":[2,1],"0":[1,2]}}`)
	until(t, w, isTopic("old"))
	old := topicsOf(t, c)["old"]
	require.Zero(t, old.ID)
	require.Equal(t, []int32{2, 1}, old.Partitions[1].Replicas)

	// It gets an id, from the controller alone, once.
	assign := election.TopicAssignment{Topic: "old", ID: election.TopicID{1: 1}, Partitions: []election.Assignment{{Replicas: []int32{1, 2}}, {Replicas: []int32{2, 1}}}}
	errs, err := c.Metadata().SetAssignments(inTime(t), term.Epoch(), []election.TopicAssignment{assign})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	until(t, w, isTopic("old"))
	require.Equal(t, assign.ID, topicsOf(t, c)["old"].ID)
	assign.ID = election.TopicID{1: 2}
	errs, err = c.Metadata().SetAssignments(inTime(t), term.Epoch(), []election.TopicAssignment{assign})
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], election.ErrUnknownTopic)

	// More partitions, a reassignment half way, a mark.
	put(t, others, topicPath("old"), `{"partitions":{"0":[1,2],"1":[2,1],"2":[1,2,3]},"topic_id":"AAEAAAAAAAAAAAAAAAAAAA","adding_replicas":{"2":[3]},"removing_replicas":{"2":[1]},"version":3,"new":{"a":[1]}}`)
	until(t, w, isTopic("old"))
	old = topicsOf(t, c)["old"]
	require.Len(t, old.Partitions, 3)
	require.Equal(t, election.Assignment{Replicas: []int32{1, 2, 3}, Adding: []int32{3}, Removing: []int32{1}}, old.Partitions[2].Assignment)
	put(t, others, deletionPath("old"), "")
	until(t, w, isTopic("old"))
	require.True(t, topicsOf(t, c)["old"].Deleting)
	require.NoError(t, others.current().delete(inTime(t), deletionPath("old"), -1))
	until(t, w, isTopic("old"))

	// A mark for nothing must not hit a topic of that name that comes later.
	put(t, others, deletionPath("later"), "")
	require.Eventually(t, func() bool { return missing(t, c, deletionPath("later")) }, patience, 10*time.Millisecond)

	// A leader of old days has written a state, and says so.
	put(t, others, partsPath("old"), "")
	put(t, others, partPath("old", 0), "")
	put(t, others, statePath("old", 0), `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":4,"isr":[1]}`)
	put(t, others, statePath("old", 0), `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2],"leader_recovery_state":1}`)
	put(t, others, isrChangesPath+"/isr_change_0000000007", `{"version":1,"partitions":[{"topic":"old","partition":0}]}`)
	until(t, w, isTopic("old"))
	require.Equal(t, &election.PartitionState{Leader: 1, LeaderEpoch: 4, ISR: []int32{1, 2}, ControllerEpoch: 1, Recovering: true, PartitionEpoch: 1}, topicsOf(t, c)["old"].Partitions[0].State)
	require.Eventually(t, func() bool { return missing(t, c, isrChangesPath+"/isr_change_0000000007") }, patience, 10*time.Millisecond)
	put(t, others, isrChangesPath+"/isr_change_0000000008", `garbage`)
	require.Eventually(t, func() bool { return missing(t, c, isrChangesPath+"/isr_change_0000000008") }, patience, 10*time.Millisecond)

	// Garbage hurts nobody else.
	for name, data := range map[string]string{"g1": "", "g2": "{", "g3": `{"version":3,"partitions":{"0":[1],"2":[1]}}`, "g4": `{"version":3,"partitions":{"0":["a"]}}`, "g5": "null"} {
		put(t, others, topicPath(name), data)
		until(t, w, isTopic(name))
	}
	put(t, others, statePath("old", 0), `{"leader":"1"}`)
	all := topicsOf(t, c)
	require.Len(t, all, 1)
	require.Equal(t, &election.PartitionState{Leader: election.NoBroker, ISR: []int32{}, PartitionEpoch: 2}, all["old"].Partitions[0].State)
	errs, err = c.Metadata().CreateTopics(inTime(t), term.Epoch(), []election.NewTopic{{Name: "g1", ID: election.TopicID{1: 3}, Partitions: []election.Assignment{{Replicas: []int32{1}}}}})
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], election.ErrTopicExists)
}

func TestBrokersOfOthers(t *testing.T) {
	o := newCluster(t).o
	c, others := begin(t, o, ""), begin(t, o, "")
	w, err := c.Membership().Watch(inTime(t))
	require.NoError(t, err)
	defer w.Close()
	put(t, others, brokerPath(1), `{"listener_security_protocol_map":{"IN":"SSL","OUT":"PLAINTEXT"},"endpoints":["OUT://h1:9092","IN://[::1]:9093"],"jmx_port":9999,"features":{},"host":"h1","timestamp":"1600000000000","port":9092,"version":5,"rack":"r"}`)
	until(t, w, func(ch election.Change) bool { return ch.Kind == election.BrokersChanged })
	put(t, others, brokerPath(2), `{"jmx_port":-1,"timestamp":"1","host":"h2","version":1,"port":9092}`)
	put(t, others, brokerPath(3), `{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h3:9092","SASL_SSL://h3:9093"],"host":"h3","version":2,"port":9092}`)
	put(t, others, brokerPath(4), `garbage`)
	put(t, others, brokersPath+"/nobody", `{}`)
	all, err := c.Membership().Brokers(inTime(t))
	require.NoError(t, err)
	for i := range all {
		require.Positive(t, all[i].Epoch)
		all[i].Epoch = 0
	}
	require.Equal(t, []election.Broker{
		{ID: 1, Rack: "r", Endpoints: []election.Endpoint{{Listener: "OUT", Protocol: "PLAINTEXT", Host: "h1", Port: 9092}, {Listener: "IN", Protocol: "SSL", Host: "::1", Port: 9093}}},
		{ID: 2, Endpoints: []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h2", Port: 9092}}},
		{ID: 3, Endpoints: []election.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h3", Port: 9092}, {Listener: "SASL_SSL", Protocol: "SASL_SSL", Host: "h3", Port: 9093}}},
	}, all)
	for { // what was written above may be told one by one
		brief, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, err := w.Next(brief)
		cancel()
		if err != nil {
			break
		}
	}
	put(t, others, brokerPath(3), `{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://other:9092"],"host":"h3","version":4,"port":9092}`)
	until(t, w, func(ch election.Change) bool { return ch.Kind == election.BrokersChanged })
}

func TestConfigurationsOfOthers(t *testing.T) {
	o := newCluster(t).o
	c, others := begin(t, o, ""), begin(t, o, "")
	term := elect(t, c, 1)
	newTopicOf(t, c, term.Epoch(), "a", 1)
	put(t, others, configChangesPath+"/config_change_0000000000", `{"version":2,"entity_path":"topics/before"}`)
	w, err := c.Metadata().Watch(inTime(t), election.ConfigChanged)
	require.NoError(t, err)
	defer w.Close()
	next := func(want ...election.Change) {
		t.Helper()
		var got []election.Change
		for len(got) < len(want) {
			changes, err := w.Next(inTime(t))
			require.NoError(t, err)
			got = append(got, changes...)
		}
		require.Equal(t, want, got)
	}
	changed := func(kind election.EntityKind, name string) election.Change {
		return election.Change{Kind: election.ConfigChanged, Entity: election.Entity{Kind: kind, Name: name}}
	}
	put(t, others, topicConfig("a"), `{"version":1,"config":{"retention.ms":"5"}}`)
	put(t, others, configChangesPath+"/config_change_0000000001", `{"version":2,"entity_path":"topics/a"}`)
	next(changed(election.TopicEntity, "a"))
	got, err := c.Metadata().Configs(inTime(t), election.Entity{Kind: election.TopicEntity, Name: "a"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"retention.ms": "5"}, got[0].Values)
	put(t, others, configChangesPath+"/config_change_0000000002", `{"version":1,"entity_type":"brokers","entity_name":"<default>"}`)
	next(changed(election.BrokerEntity, ""))
	put(t, others, configChangesPath+"/config_change_0000000003", `{"version":2,"entity_path":"users/u/clients/c"}`)
	put(t, others, configChangesPath+"/config_change_0000000004", `{"version":2,"entity_path":"brokers/7"}`)
	next(changed(election.BrokerEntity, "7"))
	put(t, others, configChangesPath+"/config_change_0000000005", `{"version":9}`)
	next(election.Change{Kind: election.EverythingChanged})

	// A configuration that can't be read counts as none, and can be replaced.
	e := election.Entity{Kind: election.BrokerEntity, Name: "7"}
	put(t, others, "/config/brokers/7", `{"version":1,"config":{"a":5}}`)
	got, err = c.Metadata().Configs(inTime(t), e)
	require.NoError(t, err)
	require.Equal(t, []election.Config{{Entity: e}}, got)
	errs, err := c.Metadata().SetConfigs(inTime(t), term.Epoch(), []election.Config{{Entity: e, Values: map[string]string{"k": "v"}}})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	next(changed(election.BrokerEntity, "7"))
	require.JSONEq(t, `{"version":1,"config":{"k":"v"}}`, node1(t, c, "/config/brokers/7"))
	require.JSONEq(t, `{"version":2,"entity_path":"brokers/7"}`, node1(t, c, configChangesPath+"/config_change_0000000006"))
}

func TestOldNotificationsArePurged(t *testing.T) {
	c := begin(t, newCluster(t).o, "")
	put(t, c, configChangesPath+"/config_change_0000000001", `{"version":2,"entity_path":"topics/a"}`)
	open := func() {
		w, err := c.Metadata().Watch(inTime(t), election.ConfigChanged)
		require.NoError(t, err)
		w.Close()
	}
	open()
	require.False(t, missing(t, c, configChangesPath+"/config_change_0000000001"))
	c.now = func() time.Time { return time.Now().Add(changesLive + time.Minute) }
	open()
	require.True(t, missing(t, c, configChangesPath+"/config_change_0000000001"))
}

func TestRequestsOfOthers(t *testing.T) {
	o := newCluster(t).o
	c, others := begin(t, o, ""), begin(t, o, "")
	term := elect(t, c, 1)
	w, err := c.Requests().Watch(inTime(t))
	require.NoError(t, err)
	defer w.Close()
	list := func() []election.Request {
		t.Helper()
		all, err := c.Requests().List(inTime(t))
		require.NoError(t, err)
		return all
	}
	asked := func(ch election.Change) bool { return ch.Kind == election.RequestsChanged }
	done := func(all ...election.Request) {
		t.Helper()
		errs, err := c.Requests().Done(inTime(t), term.Epoch(), all)
		require.NoError(t, err)
		require.Equal(t, make([]error, len(all)), errs)
	}
	put(t, others, reassignPath, `{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","any"]},{"topic":"a","partition":-1,"replicas":[1]},{"topic":"b","partition":3,"replicas":[2]},{"topic":"b","partition":4,"replicas":[]}]}`)
	until(t, w, asked)
	a, b := election.Request{Kind: election.Reassign, Topic: "a", Partition: 0, Replicas: []int32{1, 2}}, election.Request{Kind: election.Reassign, Topic: "b", Partition: 3, Replicas: []int32{2}}
	require.Equal(t, []election.Request{a, b}, list())
	other := a
	other.Replicas = []int32{1, 3}
	done(other) // was replaced meanwhile
	require.Equal(t, []election.Request{a, b}, list())
	done(a)
	until(t, w, asked)
	require.Equal(t, []election.Request{b}, list())
	require.JSONEq(t, `{"version":1,"partitions":[{"topic":"b","partition":3,"replicas":[2]}]}`, node1(t, c, reassignPath))
	done(b, b)
	require.True(t, missing(t, c, reassignPath))

	put(t, others, preferredPath, `{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"a","partition":1}]}`)
	until(t, w, asked)
	all := list()
	require.Equal(t, []election.Request{{Kind: election.ElectPreferred, Topic: "a"}, {Kind: election.ElectPreferred, Topic: "a", Partition: 1}}, all)
	done(all...)
	require.True(t, missing(t, c, preferredPath))

	require.NoError(t, others.Requests().ReportDirFailure(inTime(t), 5))
	until(t, w, asked)
	all = list()
	require.Len(t, all, 1)
	require.JSONEq(t, `{"version":1,"broker":5,"event":1}`, node1(t, c, dirEventsPath+"/"+all[0].ID))
	done(all...)
	require.Empty(t, list())

	// What can't be read is taken away, or nobody could ask for anything any more.
	for path, data := range map[string]string{reassignPath: "garbage", preferredPath: `{"version":1,"partitions":[]}`, dirEventsPath + "/log_dir_event_0000000009": `{"version":1}`} {
		put(t, others, path, data)
		require.Empty(t, list())
		require.True(t, missing(t, c, path), path)
	}
}

// Apache Kafka takes a topic, its configuration and its mark away one after the other. What is left when it dies in between is
// finished by whoever is controller next.
func TestRemovalsLeftHalfDone(t *testing.T) {
	o := newCluster(t).o
	c := begin(t, o, "")
	term := elect(t, c, 1)
	newTopicOf(t, c, term.Epoch(), "a", 3)
	for n := range int32(3) {
		_, err := c.Metadata().UpdatePartitions(inTime(t), term.Epoch(), []election.PartitionUpdate{{Topic: "a", Partition: n, State: election.PartitionState{PartitionEpoch: -1}}})
		require.NoError(t, err)
	}
	errs, err := c.Metadata().MarkDeleted(inTime(t), term.Epoch(), []string{"a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	for _, path := range []string{statePath("a", 1), partPath("a", 1), statePath("a", 2)} { // died in the midst of the states
		require.NoError(t, c.current().delete(inTime(t), path, -1))
	}
	require.True(t, topicsOf(t, c)["a"].Deleting, "it is still to be removed")
	put(t, c, deletionPath("gone"), "") // died after the topic
	put(t, c, topicConfig("gone"), `{"version":1,"config":{"k":"v"}}`)
	require.NoError(t, term.Resign(inTime(t)))
	term = elect(t, c, 1)
	require.True(t, missing(t, c, deletionPath("gone")))
	require.True(t, missing(t, c, topicConfig("gone")))
	errs, err = c.Metadata().RemoveTopics(inTime(t), term.Epoch(), []string{"a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	for _, path := range []string{deletionPath("a"), topicConfig("a"), topicPath("a")} {
		require.True(t, missing(t, c, path), path)
	}
}

func TestItemsThatAreTooLarge(t *testing.T) {
	c := begin(t, newCluster(t).o, "")
	term := elect(t, c, 1)
	huge := election.NewTopic{Name: "huge", ID: election.TopicID{1: 1}, Partitions: make([]election.Assignment, 100_000)}
	for i := range huge.Partitions {
		huge.Partitions[i].Replicas = []int32{1001, 1002, 1003}
	}
	small := election.NewTopic{Name: "small", ID: election.TopicID{1: 2}, Partitions: huge.Partitions[:1]}
	errs, err := c.Metadata().CreateTopics(inTime(t), term.Epoch(), []election.NewTopic{huge, small})
	require.NoError(t, err)
	require.ErrorIs(t, errs[0], election.ErrInvalid)
	require.ErrorContains(t, errs[0], "jute.maxbuffer")
	require.NoError(t, errs[1])
}

// Many items, some of which are refused: each gets its own result, and the others are done.
func TestManyItems(t *testing.T) {
	c := begin(t, newCluster(t).o, "")
	term := elect(t, c, 1)
	const partitions = 2000
	newTopicOf(t, c, term.Epoch(), "a", partitions)
	updates := make([]election.PartitionUpdate, partitions)
	for i := range updates {
		updates[i] = election.PartitionUpdate{Topic: "a", Partition: int32(i), State: election.PartitionState{Leader: 1, ISR: []int32{1, 2}, PartitionEpoch: -1}}
	}
	results, err := c.Metadata().UpdatePartitions(inTime(t), term.Epoch(), updates)
	require.NoError(t, err)
	for i := range updates {
		require.NoError(t, results[i].Err)
		updates[i].State.PartitionEpoch, updates[i].State.Leader = 0, 2
		if i%3 == 0 {
			updates[i].State.PartitionEpoch = 5
		}
	}
	results, err = c.Metadata().UpdatePartitions(inTime(t), term.Epoch(), updates)
	require.NoError(t, err)
	states := topicsOf(t, c)["a"].Partitions
	for i, r := range results {
		if i%3 == 0 {
			require.ErrorIs(t, r.Err, election.ErrConflict)
			require.Equal(t, int32(1), states[i].State.Leader)
		} else {
			require.NoError(t, r.Err)
			require.Equal(t, int32(1), r.PartitionEpoch)
			require.Equal(t, int32(2), states[i].State.Leader)
		}
	}
	errs, err := c.Metadata().MarkDeleted(inTime(t), term.Epoch(), []string{"a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	errs, err = c.Metadata().RemoveTopics(inTime(t), term.Epoch(), []string{"a"})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	require.True(t, missing(t, c, topicPath("a")))
}

func TestWhatAControllerWritesFirst(t *testing.T) {
	c := begin(t, newCluster(t).o, "")
	for _, path := range persistentPaths() {
		require.False(t, missing(t, c, path), path)
	}
	require.True(t, missing(t, c, featurePath))
	term := elect(t, c, 3)
	require.Equal(t, int32(1), term.Epoch())
	require.JSONEq(t, `{"version":2,"status":1,"features":{}}`, node1(t, c, featurePath))
	require.Equal(t, "1", node1(t, c, controllerEpochPath))
	id, err := c.Membership().NewBrokerID(inTime(t))
	require.NoError(t, err)
	require.Equal(t, int32(1001), id)
	block, err := c.Metadata().ProducerIDs(inTime(t), 3, 0)
	require.NoError(t, err)
	require.Equal(t, election.ProducerIDBlock{First: 0, Count: 1000}, block)
	require.JSONEq(t, `{"version":1,"broker":3,"block_start":"0","block_end":"999"}`, node1(t, c, producerIDsPath))
	put(t, c, producerIDsPath, "garbage")
	_, err = c.Metadata().ProducerIDs(inTime(t), 3, 0)
	require.ErrorIs(t, err, election.ErrUnavailable, "to guess could give ids twice")
}
