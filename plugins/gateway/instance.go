package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// commitEvery is how often an instance with auto.commit.enable commits, when it is asked for records.
	commitEvery = 5 * time.Second
	// pollRecords is how many records are taken from the client at a time.
	pollRecords = 500
	// longestPoll bounds the timeout that a request for records may name.
	longestPoll = 5 * time.Minute
	// usualPoll is how long such a request waits when neither it nor the instance says so.
	usualPoll = 5 * time.Second
)

// instanceConfig is what is chosen when an instance is created.
type instanceConfig struct {
	name       string
	json       bool // the embedded format: JSON, else binary
	reset      kgo.Offset
	autoCommit bool
	minBytes   int64
	wait       time.Duration
}

// partition names a partition.
type partition struct {
	topic string
	id    int32
}

// instance is a consumer that lives between requests. Its methods are called by who holds the turn (instances.use),
// apart from end and the callbacks of the client.
//
// What is committed is counted here and not by the client: a record counts as consumed when it has been put into an
// answer, not when it has been fetched.
type instance struct {
	g      *Gateway
	group  string
	config instanceConfig

	users  int         // guarded by instances.mu
	expiry *time.Timer // guarded by instances.mu

	turn   chan struct{} // holds one element while somebody uses the instance
	ended  context.Context
	cancel context.CancelFunc

	// What follows belongs to who holds the turn.
	client     *kgo.Client // nil while neither subscribed nor assigned
	member     bool        // subscribed, hence in the group; else assigned by hand
	topics     []string    // of the subscription
	pattern    string
	lastCommit time.Time

	mu       sync.Mutex // guards what follows, which the client's callbacks change too
	owned    map[partition]bool
	position map[partition]int64 // where the next answer begins, of partitions where that isn't what is committed
	pending  []*kgo.Record       // fetched, and in no answer yet
}

func newInstance(g *Gateway, group string, config instanceConfig) *instance {
	i := &instance{g: g, group: group, config: config, turn: make(chan struct{}, 1), owned: map[partition]bool{}, position: map[partition]int64{}}
	i.ended, i.cancel = context.WithCancel(g.closing)
	return i
}

func (i *instance) key() instanceKey { return instanceKey{i.group, i.config.name} }

// end closes the instance for good. It waits for the request that has the turn, which it tells to end.
func (i *instance) end() {
	i.cancel()
	i.turn <- struct{}{}
	defer func() { <-i.turn }()
	i.leave()
}

// leave ends the subscription or the assignment, committing before if that is wanted.
func (i *instance) leave() {
	if i.client == nil {
		return
	}
	if i.config.autoCommit {
		ctx, cancel := context.WithTimeout(context.Background(), commitEvery)
		if err := i.commit(ctx, nil); err != nil {
			i.g.log.Warn("a consumer instance could not commit before it left", "group", i.group, "instance", i.config.name, "error", err)
		}
		cancel()
	}
	i.client.CloseAllowingRebalance()
	i.client, i.member, i.topics, i.pattern = nil, false, nil, ""
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.owned)
	clear(i.position)
	i.pending = nil
}

// subscribe joins the group for some topics, or for those that match a pattern, in place of an earlier subscription.
func (i *instance) subscribe(topics []string, text string) error {
	if i.client != nil && !i.member {
		return illegal("Subscription to topics, partitions and pattern are mutually exclusive.")
	}
	if i.member && text == i.pattern && slices.Equal(topics, i.topics) {
		return nil
	}
	i.leave()
	options := i.options(
		kgo.ConsumerGroup(i.group),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { i.gained(got) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, lost map[string][]int32) { i.revoked(ctx, client, lost) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { i.lost(lost) }),
	)
	if text != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:"+text+")$"))
	} else {
		options = append(options, kgo.ConsumeTopics(topics...))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return fail(codeConsumerConfig, "Invalid consumer configuration: %v", err)
	}
	i.client, i.member, i.topics, i.pattern = client, true, topics, text
	return nil
}

// assign takes partitions by hand, without joining the group, and begins where the group has committed.
func (i *instance) assign(ctx context.Context, wanted []partition) error {
	if i.member {
		return illegal("Subscription to topics, partitions and pattern are mutually exclusive.")
	}
	committed, err := i.g.admin.FetchOffsets(ctx, i.group)
	if err != nil {
		return err
	}
	from := map[string]map[int32]kgo.Offset{}
	owned := map[partition]bool{}
	for _, p := range wanted {
		if _, err := i.g.topicPartition(ctx, p.topic, p.id); err != nil {
			return err
		}
		offset := i.config.reset
		if o, ok := committed.Lookup(p.topic, p.id); ok && o.At >= 0 {
			offset = kgo.NewOffset().At(o.At)
		}
		if from[p.topic] == nil {
			from[p.topic] = map[int32]kgo.Offset{}
		}
		from[p.topic][p.id] = offset
		owned[p] = true
	}
	i.leave()
	if len(wanted) == 0 {
		return nil
	}
	client, err := kgo.NewClient(i.options(kgo.ConsumePartitions(from))...)
	if err != nil {
		return err
	}
	i.client = client
	i.mu.Lock()
	i.owned = owned
	i.mu.Unlock()
	return nil
}

func (i *instance) options(more ...kgo.Opt) []kgo.Opt {
	return i.g.clientOptions(append(more,
		kgo.ConsumeResetOffset(i.config.reset),
		kgo.FetchMaxBytes(int32(min(i.g.options.MaxConsumerBytes, 16<<20))),
		kgo.MaxConcurrentFetches(1),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
	)...)
}

func (i *instance) gained(got map[string][]int32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for topic, ids := range got {
		for _, id := range ids {
			i.owned[partition{topic, id}] = true
		}
	}
}

// revoked commits what was consumed of partitions that somebody else is about to have.
func (i *instance) revoked(ctx context.Context, client *kgo.Client, lost map[string][]int32) {
	if i.config.autoCommit {
		i.mu.Lock()
		going := map[partition]int64{}
		for p, at := range i.position {
			if slices.Contains(lost[p.topic], p.id) {
				going[p] = at
			}
		}
		i.mu.Unlock()
		if err := commitAsMember(ctx, client, going); err != nil {
			i.g.log.Warn("a consumer instance could not commit partitions that it lost", "group", i.group, "instance", i.config.name, "error", err)
		}
	}
	i.lost(lost)
}

// lost forgets partitions.
func (i *instance) lost(lost map[string][]int32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(func(p partition) bool { return slices.Contains(lost[p.topic], p.id) })
}

// drop forgets partitions, with what is pending of them. The caller holds mu.
func (i *instance) drop(gone func(partition) bool) {
	maps.DeleteFunc(i.owned, func(p partition, _ bool) bool { return gone(p) })
	maps.DeleteFunc(i.position, func(p partition, _ int64) bool { return gone(p) })
	i.pending = slices.DeleteFunc(i.pending, func(r *kgo.Record) bool { return gone(partition{r.Topic, r.Partition}) })
}

// poll gives records, at most maxBytes of keys and values if more than one. It waits until there are some, or as many
// bytes as the instance wants, or the time is up.
func (i *instance) poll(ctx context.Context, wait time.Duration, maxBytes int64) ([]*kgo.Record, error) {
	if i.client == nil {
		return nil, illegal("Consumer is not subscribed to any topics or assigned any partitions")
	}
	if i.config.autoCommit && time.Since(i.lastCommit) >= commitEvery {
		// It is tried again with the next request; a group that is rebalancing refuses it for a while.
		if err := i.commit(ctx, nil); err != nil {
			i.g.log.Debug("a consumer instance could not commit", "group", i.group, "instance", i.config.name, "error", err)
		}
	}
	defer i.client.AllowRebalance()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(i.ended, cancel)()
	var taken []*kgo.Record
	var size int64
	for {
		var full bool
		if taken, size, full = i.take(taken, size, maxBytes); full || len(taken) > 0 && size >= i.config.minBytes {
			return taken, nil
		}
		fetches := i.client.PollRecords(ctx, pollRecords)
		var failed error
		fetches.EachError(func(topic string, p int32, err error) {
			if ctx.Err() == nil && failed == nil {
				failed = err
			}
		})
		i.mu.Lock()
		i.pending = append(i.pending, fetches.Records()...)
		i.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			taken, _, _ = i.take(taken, size, maxBytes)
			return taken, nil
		case failed != nil && fetches.NumRecords() == 0 && len(taken) == 0:
			return nil, failed
		}
	}
}

// take moves pending records into an answer while they fit; the first one always does.
func (i *instance) take(taken []*kgo.Record, size, maxBytes int64) (_ []*kgo.Record, _ int64, full bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.pending) > 0 {
		r := i.pending[0]
		if next := size + int64(len(r.Key)+len(r.Value)); len(taken) > 0 && next > maxBytes {
			return taken, size, true
		} else {
			size = next
		}
		taken = append(taken, r)
		i.pending[0] = nil
		i.pending = i.pending[1:]
	}
	return taken, size, size >= maxBytes
}

// untake puts records back that are in no answer after all.
func (i *instance) untake(records []*kgo.Record) {
	i.mu.Lock()
	defer i.mu.Unlock()
	kept := make([]*kgo.Record, 0, len(records)+len(i.pending))
	for _, r := range records {
		if i.owned[partition{r.Topic, r.Partition}] {
			kept = append(kept, r)
		}
	}
	i.pending = append(kept, i.pending...)
}

// consumed counts records that are in an answer.
func (i *instance) consumed(records []*kgo.Record) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range records {
		// A partition that was taken away meanwhile is no longer ours to commit.
		if p := (partition{r.Topic, r.Partition}); i.owned[p] {
			i.position[p] = r.Offset + 1
		}
	}
}

// commit commits offsets, or, when there are none, what has been consumed.
func (i *instance) commit(ctx context.Context, offsets map[partition]int64) error {
	all := offsets == nil
	if all {
		i.mu.Lock()
		offsets = maps.Clone(i.position)
		i.mu.Unlock()
	}
	if len(offsets) == 0 {
		return nil
	}
	var err error
	if i.member {
		err = commitAsMember(ctx, i.client, offsets)
	} else {
		err = i.commitAlone(ctx, offsets)
	}
	if err == nil && all {
		i.lastCommit = time.Now()
		i.mu.Lock()
		for p, at := range offsets {
			if i.position[p] == at {
				delete(i.position, p)
			}
		}
		i.mu.Unlock()
	}
	return err
}

// commitAlone commits for a group that the instance isn't a member of.
func (i *instance) commitAlone(ctx context.Context, offsets map[partition]int64) error {
	list := kadm.Offsets{}
	for p, at := range offsets {
		list.AddOffset(p.topic, p.id, at, -1)
	}
	done, err := i.g.admin.CommitOffsets(ctx, i.group, list)
	if err != nil {
		return err
	}
	return done.Error()
}

// commitAsMember commits as a member of the group, in its generation.
func commitAsMember(ctx context.Context, client *kgo.Client, offsets map[partition]int64) error {
	if len(offsets) == 0 {
		return nil
	}
	// The client would put its name into the metadata, which is the caller's.
	ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for _, t := range req.Topics {
			for i := range t.Partitions {
				t.Partitions[i].Metadata = kmsg.StringPtr("")
			}
		}
		return nil
	})
	var failed error
	client.CommitOffsetsSync(ctx, epochOffsets(offsets), func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err != nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil && failed == nil {
					failed = err
				}
			}
		}
	})
	return failed
}

func epochOffsets(offsets map[partition]int64) map[string]map[int32]kgo.EpochOffset {
	list := map[string]map[int32]kgo.EpochOffset{}
	for p, at := range offsets {
		if list[p.topic] == nil {
			list[p.topic] = map[int32]kgo.EpochOffset{}
		}
		list[p.topic][p.id] = kgo.EpochOffset{Epoch: -1, Offset: at}
	}
	return list
}

// owns sees that the instance has all of some partitions.
func (i *instance) owns(all map[partition]int64) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for p := range all {
		if !i.owned[p] {
			return illegal("No current assignment for partition %s-%d", p.topic, p.id)
		}
	}
	return nil
}

// seek moves partitions of the instance to offsets.
func (i *instance) seek(to map[partition]int64) error {
	if err := i.owns(to); err != nil || len(to) == 0 {
		return err
	}
	i.client.SetOffsets(epochOffsets(to))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pending = slices.DeleteFunc(i.pending, func(r *kgo.Record) bool { _, moved := to[partition{r.Topic, r.Partition}]; return moved })
	for p, at := range to {
		if i.owned[p] {
			i.position[p] = at
		}
	}
	return nil
}

// assignment lists the partitions that the instance has, sorted.
func (i *instance) assignment() []partition {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.SortedFunc(maps.Keys(i.owned), comparePartitions)
}
