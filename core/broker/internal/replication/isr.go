package replication

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// ISROptions are what an ISR works with.
type ISROptions struct {
	BrokerID    int32
	BrokerEpoch func() int64
	Partitions  *partition.Manager
	// Do brings a request to the controller and returns its answer, in the version that they agree on, at most the one that it has. It
	// tries until ctx ends.
	Do func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	// LagTimeMax is replica.lag.time.max.ms; followers are looked at twice in that time.
	LagTimeMax time.Duration
	Logger     *slog.Logger
}

// ISR keeps the in-sync sets of the partitions that this broker leads: it lets them drop followers that lag, and brings what they propose to
// the controller, all in one request and one request at a time. Its methods may be called from any goroutine.
type ISR struct {
	o      ISROptions
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	pending map[partition.ID]partition.ISRProposal
	sending bool // a goroutine is at it; it ends when nothing is pending
}

// NewISR makes an ISR that does nothing before Start, save taking proposals.
func NewISR(o ISROptions) *ISR {
	i := &ISR{o: o, pending: map[partition.ID]partition.ISRProposal{}}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i
}

// Start begins to look for followers that lag.
func (i *ISR) Start() {
	i.done.Go(func() {
		t := time.NewTicker(max(i.o.LagTimeMax/2, time.Millisecond))
		defer t.Stop()
		for {
			select {
			case <-t.C:
				i.o.Partitions.CheckISR()
			case <-i.ctx.Done():
				return
			}
		}
	})
}

// Propose asks the controller to record another in-sync set, in the place of what was asked for that partition and not sent yet. It doesn't
// block; the answer goes to [partition.Partition.ISRAnswered]. It is what partition.Options.ProposeISR wants.
func (i *ISR) Propose(id partition.ID, p partition.ISRProposal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return
	}
	i.pending[id] = p
	if !i.sending {
		i.sending = true
		i.done.Go(i.send)
	}
}

// Stop ends what Start began. Proposals without an answer stay without.
func (i *ISR) Stop(context.Context) error {
	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.cancel()
	i.done.Wait()
	return nil
}

// resendPause is the time before what the controller could not do is sent again, as in Kafka.
const resendPause = 50 * time.Millisecond

// send sends what is pending, until nothing is.
func (i *ISR) send() {
	for {
		batch := i.take()
		if batch == nil {
			return
		}
		again := i.alter(batch)
		if len(again) == 0 {
			continue
		}
		i.mu.Lock()
		for id, p := range again {
			if _, newer := i.pending[id]; !newer {
				i.pending[id] = p
			}
		}
		i.mu.Unlock()
		t := time.NewTimer(resendPause)
		select {
		case <-t.C:
		case <-i.ctx.Done():
			t.Stop()
		}
	}
}

// take gives what is pending; nil, and the goroutine is to end, when there is nothing.
func (i *ISR) take() map[partition.ID]partition.ISRProposal {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, p := range i.pending {
		if part, err := i.o.Partitions.Get(id); err != nil || !leads(part, p.LeaderEpoch) {
			delete(i.pending, id) // overtaken
		}
	}
	if len(i.pending) == 0 || i.stopped {
		i.sending = false
		return nil
	}
	batch := i.pending
	i.pending = map[partition.ID]partition.ISRProposal{}
	return batch
}

func leads(p *partition.Partition, epoch int32) bool {
	_, now := p.Leader()
	return p.IsLeader() && now == epoch
}

// alter sends proposals and takes the answers. It returns those that are to be sent again.
func (i *ISR) alter(batch map[partition.ID]partition.ISRProposal) (again map[partition.ID]partition.ISRProposal) {
	req, topics := i.request(batch)
	resp, err := i.o.Do(i.ctx, req)
	if err != nil {
		if i.ctx.Err() == nil {
			i.o.Logger.Warn("the controller can't be asked to change in-sync sets, trying on", "partitions", len(batch), "err", err)
		}
		return batch
	}
	answer, ok := resp.(*kmsg.AlterPartitionResponse)
	if !ok || answer.ErrorCode != 0 {
		if ok {
			i.o.Logger.Info("the controller refuses to change in-sync sets, trying on", "partitions", len(batch), "err", kerr.ErrorForCode(answer.ErrorCode))
		}
		return batch
	}
	again = batch
	for t := range answer.Topics {
		topic := &answer.Topics[t]
		name := topic.Topic
		if answer.Version >= 2 {
			name = topics[topic.TopidID]
		}
		for n := range topic.Partitions {
			id := partition.ID{Topic: name, Partition: topic.Partitions[n].Partition}
			if p, asked := batch[id]; asked && i.answered(id, p, &topic.Partitions[n]) {
				delete(again, id)
			}
		}
	}
	return again
}

// request asks for all of a batch. What only older versions have is filled in, too.
func (i *ISR) request(batch map[partition.ID]partition.ISRProposal) (req *kmsg.AlterPartitionRequest, topics map[[16]byte]string) {
	req = kmsg.NewPtrAlterPartitionRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = 3, i.o.BrokerID, i.o.BrokerEpoch()
	topics = map[[16]byte]string{}
	at := map[string]int{}
	for id, p := range batch {
		n, ok := at[id.Topic]
		if !ok {
			n = len(req.Topics)
			at[id.Topic] = n
			t := kmsg.NewAlterPartitionRequestTopic()
			t.Topic = id.Topic
			if part, err := i.o.Partitions.Get(id); err == nil {
				t.TopicID = part.TopicID()
			}
			topics[t.TopicID] = id.Topic
			if t.TopicID == ([16]byte{}) {
				req.Version = 1 // the last one that goes by name
			}
			req.Topics = append(req.Topics, t)
		}
		wish := kmsg.NewAlterPartitionRequestTopicPartition()
		wish.Partition, wish.LeaderEpoch, wish.PartitionEpoch, wish.NewISR = id.Partition, p.LeaderEpoch, p.PartitionEpoch, p.ISR
		for _, broker := range p.ISR {
			// A controller on ZooKeeper doesn't look at the epochs (KIP-903).
			wish.NewEpochISR = append(wish.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: broker, BrokerEpoch: -1})
		}
		req.Topics[n].Partitions = append(req.Topics[n].Partitions, wish)
	}
	return req, topics
}

// answered takes the answer for one partition; false when it is to be asked for again.
func (i *ISR) answered(id partition.ID, p partition.ISRProposal, a *kmsg.AlterPartitionResponseTopicPartition) bool {
	part, err := i.o.Partitions.Get(id)
	if err != nil {
		return true
	}
	switch a.ErrorCode {
	case 0:
		i.o.Logger.Info("in-sync set changed", "partition", id.String(), "isr", a.ISR, "partition_epoch", a.PartitionEpoch)
		part.ISRAnswered(p, true, a.ISR, a.PartitionEpoch)
	case kerr.IneligibleReplica.Code, kerr.OperationNotAttempted.Code:
		i.o.Logger.Info("the controller refuses an in-sync set", "partition", id.String(), "isr", p.ISR, "err", kerr.ErrorForCode(a.ErrorCode))
		part.ISRAnswered(p, false, nil, 0)
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code, kerr.FencedLeaderEpoch.Code, kerr.InvalidUpdateVersion.Code,
		kerr.InvalidRequest.Code, kerr.NewLeaderElected.Code:
		// The controller knows more than this leader: its word is on the way. Until then both sets count, for the proposal may have been
		// recorded.
		i.o.Logger.Info("an in-sync set is out of date, waiting for the controller", "partition", id.String(), "isr", p.ISR, "err", kerr.ErrorForCode(a.ErrorCode))
	default:
		return false
	}
	return true
}
