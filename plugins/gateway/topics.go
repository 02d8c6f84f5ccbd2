package gateway

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/singleflight"
)

// freshness is how long what is known of a topic is believed: partitions that are added, or lose their leader, are
// seen after that.
const freshness = 2 * time.Second

// topicInfo is what is known of a topic. It isn't changed once made.
type topicInfo struct {
	id         [16]byte // another one when the topic was deleted and created again
	partitions int32
	available  []int32 // those with a leader, ascending
	asked      time.Time
}

// topics knows the topics that are produced to. It may be used from any goroutine.
type topics struct {
	client *kgo.Client
	flight singleflight.Group

	mu    sync.RWMutex
	known map[string]*topicInfo
}

func newTopics(client *kgo.Client) *topics {
	return &topics{client: client, known: map[string]*topicInfo{}}
}

// legal says whether a name can be a topic's: others are not even asked for.
func legal(topic string) bool {
	if topic == "" || len(topic) > 249 || topic == "." || topic == ".." {
		return false
	}
	for _, c := range []byte(topic) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// get finds a topic, from memory when that is fresh. With create the broker may create it, if it is configured so.
// kerr.UnknownTopicOrPartition says that there is none.
func (t *topics) get(ctx context.Context, topic string, create bool) (*topicInfo, error) {
	if !legal(topic) {
		return nil, kerr.UnknownTopicOrPartition
	}
	t.mu.RLock()
	info := t.known[topic]
	t.mu.RUnlock()
	if info != nil && time.Since(info.asked) < freshness {
		return info, nil
	}
	key := topic
	if create {
		key = "+" + topic // "+" is in no topic's name
	}
	// Whoever asks first asks for all; its own patience must not end theirs.
	got := t.flight.DoChan(key, func() (any, error) { return t.ask(context.WithoutCancel(ctx), topic, create) })
	select {
	case r := <-got:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*topicInfo), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget makes the next get ask again.
func (t *topics) forget(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if info := t.known[topic]; info != nil {
		old := *info
		old.asked = time.Time{}
		t.known[topic] = &old
	}
}

// drop forgets a topic that isn't there any more.
func (t *topics) drop(topic string) {
	t.mu.Lock()
	_, was := t.known[topic]
	delete(t.known, topic)
	t.mu.Unlock()
	if was {
		t.client.PurgeTopicsFromProducing(topic)
	}
}

// ask asks the broker. A topic that is just being created has no leaders yet, so it is asked for a few times.
func (t *topics) ask(ctx context.Context, topic string, create bool) (*topicInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		info, err := t.askOnce(ctx, topic, create)
		if err == nil {
			t.remember(topic, info)
			return info, nil
		}
		if err == kerr.UnknownTopicOrPartition {
			t.drop(topic)
		}
		if err != kerr.LeaderNotAvailable || wait > time.Second {
			t.forget(topic)
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// remember keeps what was learned, and makes the client that produces learn it, too.
func (t *topics) remember(topic string, info *topicInfo) {
	t.mu.Lock()
	before := t.known[topic]
	t.known[topic] = info
	t.mu.Unlock()
	switch {
	case before == nil:
	case before.id != info.id:
		t.client.PurgeTopicsFromProducing(topic) // else it goes on with the id of the one that was deleted
	case before.partitions != info.partitions:
		t.client.ForceMetadataRefresh()
	}
}

func (t *topics) askOnce(ctx context.Context, topic string, create bool) (*topicInfo, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = create
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = &topic
	req.Topics = append(req.Topics, one)
	resp, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, kerr.UnknownTopicOrPartition
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return nil, err
	}
	info := &topicInfo{id: resp.Topics[0].TopicID, partitions: int32(len(resp.Topics[0].Partitions)), asked: time.Now()}
	leads := map[int32]bool{}
	for _, p := range resp.Topics[0].Partitions {
		leads[p.Partition] = p.ErrorCode == 0 && p.Leader >= 0
	}
	for p := range info.partitions {
		if leads[p] {
			info.available = append(info.available, p)
		}
	}
	if info.partitions == 0 {
		return nil, kerr.LeaderNotAvailable
	}
	return info, nil
}

// pattern compiles a subscription's pattern, which must match a whole name.
func pattern(text string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + text + ")$")
}
