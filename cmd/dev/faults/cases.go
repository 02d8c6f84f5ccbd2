package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cases that others have reported, each with its own course of events.

// diverged lets a leader take what its follower hasn't got, die, and come back as the follower of that one, which has taken other
// records meanwhile (KAFKA-14704, KAFKA-6361). It has to cut off what it had before it fetches: the committed records stay, its own
// are gone, but for those that had been sent to the follower, and both logs are the same, which is looked at when the brokers have stopped.
//
// It is tried again when it didn't come to that, because something else came between which may.
func diverged(ctx context.Context, f *Field) error {
	for attempt := range 5 {
		why, err := divergedOnce(ctx, f, fmt.Sprintf("diverged-%d", attempt+1))
		if err != nil || why == "" {
			return err
		}
		f.Say("nothing diverged, as %s; once more", why)
		if err := f.whole(ctx); err != nil {
			return err
		}
	}
	return errors.New("nothing diverged in five attempts")
}

// divergedOnce is diverged with a topic of its own. why says why it didn't come to that, "" when it did.
func divergedOnce(ctx context.Context, f *Field, topic string) (why string, err error) {
	// Who leads the coordination is neither of the two: while that one is paused nothing is decided, and then a follower may be
	// silent for too long, and be in sync no longer.
	third, err := f.decider(ctx)
	if err != nil {
		return "", err
	}
	if third == nil {
		third = f.anyOf(f.Brokers)
	}
	brokers := f.others(third)
	f.Random.Shuffle(len(brokers), func(i, j int) { brokers[i], brokers[j] = brokers[j], brokers[i] })
	leader, follower := brokers[0], brokers[1]
	if err := f.create(ctx, topic, leader, follower); err != nil {
		return "", err
	}
	committed, lost, kept := numbered("committed", 3), numbered("lost", 5), numbered("kept", 5)
	if err := f.write(ctx, topic, kgo.AllISRAcks(), committed[:2]...); err != nil {
		return "", err
	}
	// This writer asks nobody for anything any more once the follower is paused: it might ask that one, and wait until its session has
	// ended. Then it would be in sync no longer, and nobody could lead.
	careless, err := f.writer(kgo.LeaderAck())
	if err != nil {
		return "", err
	}
	defer careless.Close()
	if err := write(ctx, careless, topic, committed[2]); err != nil {
		return "", err
	}
	if err := f.committed(ctx, topic, int64(len(committed))); err != nil {
		return "", err
	}
	switch now, err := f.decider(ctx); {
	case err != nil:
		return "", err
	case now != nil && now != third:
		return fmt.Sprintf("%s leads the coordination by now", now.name()), nil
	}
	f.Say("%s leads and %s is paused; what comes now reaches the leader alone", leader.name(), follower.name())
	if err := follower.Pause(); err != nil {
		return "", err
	}
	// The follower may have asked for more before it was paused. The first record answers that, and others must not be with it.
	if err = write(ctx, careless, topic, lost[0]); err == nil {
		pause(ctx, 200*time.Millisecond)
		err = write(ctx, careless, topic, lost[1:]...)
	}
	leader.Kill()
	if err = errors.Join(err, follower.Resume()); err != nil {
		return "", err
	}
	var alone bool
	err = f.await(ctx, patience, follower.name()+" leads", func(m kadm.Metadata) bool {
		p := m.Topics[topic].Partitions[0]
		alone = p.Leader < 0 && same(p.ISR, []int32{int32(leader.ID)})
		return alone || p.Leader == int32(follower.ID)
	}, topic)
	if err != nil {
		return "", err
	}
	if alone {
		return follower.name() + " was taken for dead before, and must not lead", leader.Start(ctx)
	}
	if err := f.write(ctx, topic, kgo.LeaderAck(), kept...); err != nil {
		return "", err
	}
	if err := leader.Start(ctx); err != nil {
		return "", err
	}
	if err := f.InSync(ctx, topic, patience); err != nil {
		return "", err
	}
	got, err := f.read(ctx, topic)
	if err != nil {
		return "", err
	}
	for arrived := range len(lost) + 1 {
		if !slices.Equal(got, slices.Concat(committed, lost[:arrived], kept)) {
			continue
		}
		if arrived == len(lost) {
			return fmt.Sprintf("all that the leader took had been sent to %s", follower.name()), nil
		}
		f.Say("%d of the %d records that the leader took alone had been sent to %s", arrived, len(lost), follower.name())
		return "", nil
	}
	return "", fmt.Errorf("%s has %q, not %q and %q", topic, got, committed, kept)
}

// decider is the broker without which the coordination decides nothing for a while: the leader of raft; nil on ZooKeeper, which brokers are
// no part of.
func (f *Field) decider(ctx context.Context) (*Broker, error) {
	if m, ok := f.coordination.(*memberlist); ok {
		return m.leader(ctx)
	}
	return nil, nil
}

// numbered are values "what 1", "what 2", …
func numbered(what string, n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprintf("%s %d", what, i+1))
	}
	return values
}

// twin starts a second broker with the id of a living one. It has to be refused, by a message that says why, and the first one
// goes on undisturbed.
func twin(ctx context.Context, f *Field) error {
	first := f.anyOf(f.Brokers)
	second := &Broker{ID: first.ID, bin: first.bin, kafka: first.kafka, dir: filepath.Join(f.options.Dir, "twin"), storage: first.storage}
	if err := f.wire(second); err != nil {
		return err
	}
	second.gates = first.gates
	f.Say("a second %s is started", first.name())
	err := second.Start(ctx)
	second.Kill()
	switch {
	case err == nil:
		return fmt.Errorf("a second %s was let in", first.name())
	case !strings.Contains(err.Error(), "it ended"):
		return fmt.Errorf("a second %s wasn't refused: %w", first.name(), err)
	case !strings.Contains(strings.ToLower(err.Error()), fmt.Sprintf("broker %d", first.ID)):
		return fmt.Errorf("a second %s isn't told why it was refused: %w", first.name(), err)
	}
	return f.whole(ctx)
}

// create makes a topic with one partition on some brokers, the first of them its leader.
func (c *Cluster) create(ctx context.Context, topic string, replicas ...*Broker) error {
	if err := c.plant(ctx, topic, replicas...); err != nil {
		return err
	}
	return c.InSync(ctx, topic, patience)
}

// plant is create that waits for nobody.
func (c *Cluster) plant(ctx context.Context, topic string, replicas ...*Broker) error {
	assignment := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	for _, b := range replicas {
		assignment.Replicas = append(assignment.Replicas, int32(b.ID))
	}
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, -1, -1
	t.ReplicaAssignment = append(t.ReplicaAssignment, assignment)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 30_000, append(req.Topics, t)
	_, err := req.RequestWith(ctx, c.client)
	return err
}

// writer is a client that writes to first partitions.
func (c *Cluster) writer(acks kgo.Acks) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...), kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.RecordDeliveryTimeout(patience))
}

// write writes records to the first partition of a topic.
func (c *Cluster) write(ctx context.Context, topic string, acks kgo.Acks, values ...string) error {
	client, err := c.writer(acks)
	if err != nil {
		return err
	}
	defer client.Close()
	return write(ctx, client, topic, values...)
}

func write(ctx context.Context, client *kgo.Client, topic string, values ...string) error {
	for _, v := range values {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
			return fmt.Errorf("write %q to %s: %w", v, topic, err)
		}
	}
	return nil
}

// committed waits until all replicas in sync have so many records of a topic's first partition.
func (c *Cluster) committed(ctx context.Context, topic string, records int64) error {
	return poll(ctx, patience, fmt.Sprintf("%d records of %s are committed", records, topic), func(ctx context.Context) (done bool, said string, err error) {
		ends, err := c.admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return false, "", err
		}
		end, _ := ends.Lookup(topic, 0)
		return end.Offset >= records, fmt.Sprintf("its end is %d", end.Offset), end.Err
	})
}

// read reads the first partition of a topic to its end.
func (c *Cluster) read(ctx context.Context, topic string) (values []string, err error) {
	ends, err := c.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	end, ok := ends.Lookup(topic, 0)
	if !ok || end.Err != nil {
		return nil, fmt.Errorf("the end of %s: %w", topic, end.Err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for int64(len(values)) < end.Offset {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(fetches.Err0(), ctx.Err()); err != nil {
			return values, err
		}
		for _, r := range fetches.Records() {
			values = append(values, string(r.Value))
		}
	}
	return values, nil
}
