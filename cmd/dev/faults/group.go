package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// group is a consumer group that reads the topic under load, and commits what it has read, batch by batch.
type group struct {
	name    string
	members []*kgo.Client
	all     sync.WaitGroup

	mu        sync.Mutex
	committed map[int32]int64 // what the cluster acknowledged as committed
	read      int             // records
	faults    []error
}

// startGroup starts so many members. They end with end.
func startGroup(ctx context.Context, f *Field, name string, members int) (*group, error) {
	g := &group{name: name, committed: map[int32]int64{}}
	for range members {
		client, err := kgo.NewClient(kgo.SeedBrokers(f.Bootstrap()...), kgo.ConsumerGroup(name), kgo.ConsumeTopics(f.topic()), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
			kgo.RebalanceTimeout(20*time.Second), kgo.DialTimeout(2*time.Second), kgo.RequestTimeoutOverhead(3*time.Second), kgo.MetadataMinAge(100*time.Millisecond))
		if err != nil {
			_ = g.end()
			return nil, err
		}
		g.members = append(g.members, client)
		g.all.Go(func() { g.follow(ctx, client) })
	}
	return g, nil
}

// follow reads and commits until the client is closed.
func (g *group) follow(ctx context.Context, client *kgo.Client) {
	for {
		fetches := client.PollFetches(ctx)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			client.AllowRebalance()
			return
		}
		g.take(fetches)
		err := client.CommitUncommittedOffsets(ctx) // while it blocks rebalances, so what it commits is its own
		if err == nil {
			g.note(client)
		} else if !retriable(err) {
			g.fault(fmt.Errorf("commit: %w", err))
		}
		client.AllowRebalance()
	}
}

// retriable says whether a commit may be refused so: the group is on its way to another coordinator, or rebalances.
func retriable(err error) bool {
	return kerr.IsRetriable(err) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.RebalanceInProgress) ||
		errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) || !errors.As(err, new(*kerr.Error))
}

// take holds what was read against what was committed before: nobody may be given it again.
func (g *group) take(fetches kgo.Fetches) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		if first, done := p.Records[0].Offset, g.committed[p.Partition]; first < done && len(g.faults) < 10 {
			g.faults = append(g.faults, fmt.Errorf("partition %d is read from %d on, though %d was committed", p.Partition, first, done))
		}
		g.read += len(p.Records)
	})
}

// note takes over what a member has committed.
func (g *group) note(client *kgo.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, partitions := range client.CommittedOffsets() {
		for p, o := range partitions {
			g.committed[p] = max(g.committed[p], o.Offset)
		}
	}
}

func (g *group) fault(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.faults) < 10 {
		g.faults = append(g.faults, err)
	}
}

// sum is how far the group has come, over all partitions.
func (g *group) sum() (sum int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, offset := range g.committed {
		sum += offset
	}
	return sum
}

// goesOn waits until the group has committed some hundred records more.
func (g *group) goesOn(ctx context.Context, within time.Duration) error {
	begin, before := time.Now(), g.sum()
	for g.sum() < before+300 {
		if !pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
		if time.Since(begin) > within {
			return fmt.Errorf("group %s committed only %d records within %s", g.name, g.sum()-before, within)
		}
	}
	return nil
}

// end ends the members, and says what was wrong.
func (g *group) end() error {
	for _, client := range g.members {
		client.CloseAllowingRebalance()
	}
	g.all.Wait()
	return errors.Join(g.faults...)
}

// coordinatorKilled kills the coordinators of a group that reads and commits. It goes on with the next one, from where it was.
func coordinatorKilled(ctx context.Context, f *Field) error {
	g, err := startGroup(ctx, f, "readers", 2)
	if err != nil {
		return err
	}
	err = g.goesOn(ctx, patience)
	for i := 0; i < f.times(1, 5) && err == nil; i++ {
		err = g.loseCoordinator(ctx, f)
	}
	return errors.Join(err, g.end())
}

func (g *group) loseCoordinator(ctx context.Context, f *Field) error {
	at := f.admin.FindGroupCoordinators(ctx, g.name)[g.name]
	if at.Err != nil {
		return at.Err
	}
	b := f.Broker(at.NodeID)
	f.Say("%s, which coordinates the group, is killed", b.name())
	b.Kill()
	begin := time.Now()
	if err := g.goesOn(ctx, patience); err != nil {
		return err
	}
	f.Say("the group goes on after %s", time.Since(begin).Round(10*time.Millisecond))
	if err := b.Start(ctx); err != nil {
		return err
	}
	if err := f.whole(ctx); err != nil {
		return err
	}
	return g.goesOn(ctx, patience)
}
