package metadata

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/electiontest"
)

// coordinated starts a member of a cluster, as its controller.
func coordinated(t *testing.T, mem *electiontest.Memory) (election.Coordination, int32) {
	member := mem.Member()
	require.NoError(t, member.Start(t.Context()))
	t.Cleanup(func() { member.Stop(context.Background()) })
	term, err := member.Election().Campaign(t.Context(), 1)
	require.NoError(t, err)
	_, err = member.Metadata().CreateTopics(t.Context(), term.Epoch(), []election.NewTopic{
		{Name: "a", ID: election.TopicID{1}, Partitions: make([]election.Assignment, 1), Config: map[string]string{"retention.ms": "5"}},
		{Name: "b", ID: election.TopicID{2}, Partitions: make([]election.Assignment, 1)}})
	require.NoError(t, err)
	return member, term.Epoch()
}

// listener remembers what it is told.
type listener struct {
	mu   sync.Mutex
	told map[string]int
	wake chan struct{}
}

func newListener() *listener { return &listener{told: map[string]int{}, wake: make(chan struct{}, 1)} }

func (l *listener) changed(topic string) {
	l.mu.Lock()
	l.told[topic]++
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) count(topic string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[topic]
}

func started(t *testing.T, md election.Metadata, id int32, l *listener) *Configs {
	c := NewConfigs(ConfigOptions{Metadata: md, BrokerID: id, Static: kafka.Values{"log.retention.ms": "1000"}, Changed: l.changed})
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	return c
}

func set(key, value string) func(kafka.Layers, kafka.Values) (kafka.Values, error) {
	return func(_ kafka.Layers, have kafka.Values) (kafka.Values, error) {
		next := maps.Clone(have)
		if next == nil {
			next = kafka.Values{}
		}
		next[key] = value
		return next, nil
	}
}

func TestConfigs(t *testing.T) {
	mem := electiontest.NewMemory()
	member, epoch := coordinated(t, mem)
	here, there := newListener(), newListener()
	c, other := started(t, member.Metadata(), 1, here), started(t, member.Metadata(), 2, there)
	require.Equal(t, int64(5), c.TopicConfig("a").RetentionMs)
	require.Equal(t, kafka.Values{"retention.ms": "5"}, c.Topic("a"))
	require.Equal(t, int64(1000), c.TopicConfig("b").RetentionMs)
	require.Equal(t, int64(1000), c.TopicConfig("never heard of").RetentionMs)
	require.Zero(t, here.count("a"), "what Start reads isn't told")

	eventually := func(l *listener, topic string) {
		t.Helper()
		for l.count(topic) == 0 {
			select {
			case <-l.wake:
			case <-time.After(time.Minute):
				t.Fatal("not told of", topic)
			}
		}
	}
	// A topic's: at once here, soon elsewhere.
	require.NoError(t, c.Change(t.Context(), epoch, TopicEntity("b"), set("retention.ms", "7")))
	require.Equal(t, int64(7), c.TopicConfig("b").RetentionMs)
	require.NotZero(t, here.count("b"))
	eventually(there, "b")
	require.Equal(t, int64(7), other.TopicConfig("b").RetentionMs)

	// This broker's, which isn't the other's.
	require.NoError(t, c.Change(t.Context(), epoch, BrokerEntity(kafka.ThisBroker, 1), set("log.retention.ms", "2000")))
	require.Equal(t, int64(2000), c.TopicConfig("never heard of").RetentionMs)
	require.Equal(t, int64(7), c.TopicConfig("b").RetentionMs, "its own goes before")
	require.NotZero(t, here.count(""))

	// That of all brokers; a broker's own goes before.
	require.NoError(t, c.Change(t.Context(), epoch, BrokerEntity(kafka.AllBrokers, 0), set("log.retention.ms", "3000")))
	require.Equal(t, int64(2000), c.TopicConfig("x").RetentionMs)
	eventually(there, "")
	require.Equal(t, int64(3000), other.TopicConfig("x").RetentionMs)

	// A restart finds all of it.
	again := started(t, member.Metadata(), 1, newListener())
	require.Equal(t, c.Layers(), again.Layers())
	require.Equal(t, c.Topic("b"), again.Topic("b"))

	// Nothing set is nothing kept.
	require.NoError(t, c.Change(t.Context(), epoch, TopicEntity("b"), func(kafka.Layers, kafka.Values) (kafka.Values, error) { return nil, nil }))
	require.Equal(t, int64(2000), c.TopicConfig("b").RetentionMs)
	kept, err := member.Metadata().Configs(t.Context(), TopicEntity("b"))
	require.NoError(t, err)
	require.Empty(t, kept[0].Values)
}

func TestConfigsChangeFails(t *testing.T) {
	mem := electiontest.NewMemory()
	member, epoch := coordinated(t, mem)
	c := started(t, member.Metadata(), 1, newListener())
	no := errors.New("no")
	require.ErrorIs(t, c.Change(t.Context(), epoch, TopicEntity("a"), func(kafka.Layers, kafka.Values) (kafka.Values, error) { return nil, no }), no)
	require.ErrorIs(t, c.Change(t.Context(), epoch-1, TopicEntity("a"), set("retention.ms", "9")), election.ErrStaleController)
	require.ErrorIs(t, c.Change(t.Context(), epoch, TopicEntity("nothing"), set("retention.ms", "9")), election.ErrUnknownTopic)
	require.Equal(t, int64(5), c.TopicConfig("a").RetentionMs)

	// Somebody else changes the same between reading and writing.
	turns := 0
	require.NoError(t, c.Change(t.Context(), epoch, TopicEntity("a"), func(_ kafka.Layers, have kafka.Values) (kafka.Values, error) {
		if turns++; turns == 1 {
			kept, err := member.Metadata().Configs(t.Context(), TopicEntity("a"))
			require.NoError(t, err)
			kept[0].Values["segment.bytes"] = "100"
			_, err = member.Metadata().SetConfigs(t.Context(), epoch, kept)
			require.NoError(t, err)
		}
		return set("retention.ms", "9")(kafka.Layers{}, have)
	}))
	require.Equal(t, 2, turns)
	require.Equal(t, kafka.Values{"retention.ms": "9", "segment.bytes": "100"}, c.Topic("a"), "neither change is lost")
}

// faint is metadata that can't be read for some time.
type faint struct {
	election.Metadata
	failures atomic.Int32                    // still to come
	closed   atomic.Pointer[election.Entity] // can't be read at all, nil for none
}

func (f *faint) Configs(ctx context.Context, e ...election.Entity) ([]election.Config, error) {
	if closed := f.closed.Load(); f.failures.Add(-1) >= 0 || closed != nil && slices.Contains(e, *closed) {
		return nil, election.ErrUnavailable
	}
	return f.Metadata.Configs(ctx, e...)
}

// setRetention sets retention.ms of a topic as another broker would.
func setRetention(t *testing.T, md election.Metadata, epoch int32, topic, value string) {
	t.Helper()
	entity := TopicEntity(topic)
	kept, err := md.Configs(t.Context(), entity)
	require.NoError(t, err)
	errs, err := md.SetConfigs(t.Context(), epoch, []election.Config{{Entity: entity, Values: kafka.Values{"retention.ms": value}, Version: kept[0].Version}})
	require.NoError(t, err)
	require.NoError(t, errs[0])
}

// A change that can't be read when it is told of is read later: nobody tells of it a second time.
func TestConfigsReadUntilItSucceeds(t *testing.T) {
	member, epoch := coordinated(t, electiontest.NewMemory())
	f := &faint{Metadata: member.Metadata()}
	c := started(t, f, 1, newListener())
	f.failures.Store(2)
	setRetention(t, member.Metadata(), epoch, "a", "6")
	require.Eventually(t, func() bool { return c.TopicConfig("a").RetentionMs == 6 }, time.Minute, time.Millisecond)
}

// A change that can't be read holds up no other.
func TestConfigsHoldUpNoOthers(t *testing.T) {
	member, epoch := coordinated(t, electiontest.NewMemory())
	f, a := &faint{Metadata: member.Metadata()}, TopicEntity("a")
	c := started(t, f, 1, newListener())
	f.closed.Store(&a)
	for _, value := range []string{"6", "7"} {
		setRetention(t, member.Metadata(), epoch, "a", value)
		setRetention(t, member.Metadata(), epoch, "b", value)
		require.Eventually(t, func() bool { return strconv.FormatInt(c.TopicConfig("b").RetentionMs, 10) == value }, time.Minute, time.Millisecond)
	}
	require.EqualValues(t, 5, c.TopicConfig("a").RetentionMs)
	f.closed.Store(nil)
	require.Eventually(t, func() bool { return c.TopicConfig("a").RetentionMs == 7 }, time.Minute, time.Millisecond)
}

func TestFetchTopicConfig(t *testing.T) {
	mem := electiontest.NewMemory()
	member, epoch := coordinated(t, mem)
	c := NewConfigs(ConfigOptions{Metadata: member.Metadata(), BrokerID: 1}) // it watches nothing
	_, err := member.Metadata().CreateTopics(t.Context(), epoch, []election.NewTopic{{Name: "new", ID: election.TopicID{9},
		Partitions: make([]election.Assignment, 1), Config: map[string]string{"max.message.bytes": "77", "retention.ms": "not valid"}}})
	require.NoError(t, err)
	require.Equal(t, int32(77), c.FetchTopicConfig(t.Context(), "new").MaxMessageBytes, "what is valid holds")
	require.Equal(t, int32(77), c.TopicConfig("new").MaxMessageBytes)
	require.NoError(t, member.Stop(t.Context()))
	require.Equal(t, int32(77), c.FetchTopicConfig(t.Context(), "new").MaxMessageBytes, "what is known holds when it can't be read")
}
