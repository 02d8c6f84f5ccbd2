package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

const (
	// feedEvery is how often a line is given to the client's producer.
	feedEvery = 5 * time.Millisecond
	// beyond is how many records that were fed after a kill have to be read until it counts as survived.
	beyond = 100
	// survivalTimeout bounds what one kill may cost, until all replicas are in sync again.
	survivalTimeout = 2 * time.Minute
)

// survivalChecks are the steps, each a check.
func survivalChecks() []string {
	return []string{"cluster: produce and consume", "cluster: kill -9 the group's coordinator", "cluster: kill -9 another broker", "cluster: kill -9 the third", "cluster: nothing acknowledged is missing"}
}

// survival is a producer and a group of one client, which work without a pause while the cluster's brokers are killed in turn.
type survival struct {
	*group
	cluster *target.Cluster
	killed  []int

	fed    atomic.Int64 // lines given to the producer: 0, 1, …
	stdin  io.WriteCloser
	stop   chan struct{} // ends the feeding
	done   chan error    // how the producer ended
	tail   *task.Tail
	ending bool
}

// survive plays the scenario. After a failed step the later ones fail without being tried.
func survive(ctx context.Context, c installed, producer command, cluster *target.Cluster, name string) []probe.Result {
	s := &survival{cluster: cluster, stop: make(chan struct{}), done: make(chan error, 1), tail: &task.Tail{Max: 4 << 10},
		group: &group{client: c, replicas: 3, state: map[*member]*view{}, seen: map[string]int{}, args: probe.Args{Bootstrap: cluster.Addrs(), Topic: name, Group: name}}}
	defer s.close()
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return s.begin(ctx, producer) },
		s.killCoordinator, s.killNext, s.killNext, s.end,
	}
	var results []probe.Result
	var err error
	for i, check := range survivalChecks() {
		r := probe.Result{Client: c.Name, Check: check, OK: err == nil}
		if err != nil {
			r.Detail = "an earlier step failed"
		} else {
			step, cancel := context.WithTimeout(ctx, survivalTimeout)
			if err = steps[i](step); err != nil {
				r.OK, r.Detail = false, fmt.Sprintf("%v; the producer says: %s", err, s.tail)
			}
			cancel()
		}
		results = append(results, r)
	}
	return results
}

// begin starts two members and the producer, and sees records come.
func (s *survival) begin(ctx context.Context, producer command) error {
	if err := s.open(ctx, strings.Split(s.args.Bootstrap, ",")...); err != nil {
		return err
	}
	if err := s.until(ctx, "all brokers to know the topic", func() bool { return s.everywhere(ctx) }); err != nil {
		return err
	}
	for _, name := range []string{"the first member", "the second member"} {
		if _, err := s.join(name); err != nil {
			return err
		}
	}
	if err := s.until(ctx, "both to share the partitions", func() bool { return s.owns(s.members...) }, s.members...); err != nil {
		return err
	}
	args := append(slices.Clone(producer.args), s.args.Topic)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = s.tail, s.tail
	task.OwnGroup(cmd)
	cmd.Cancel = nil // its input's end ends it
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go s.feed(cmd)
	return s.reads(ctx)
}

// everywhere says whether each broker knows the topic: kcat ends when one that it asks doesn't.
func (s *survival) everywhere(ctx context.Context) bool {
	for _, m := range s.cluster.Members {
		req := kmsg.NewPtrMetadataRequest()
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &s.args.Topic
		req.Topics = append(req.Topics, topic)
		resp, err := s.kgo.Broker(m.ID).RetriableRequest(ctx, req)
		if err != nil {
			return false
		}
		if t := resp.(*kmsg.MetadataResponse).Topics; len(t) != 1 || t[0].ErrorCode != 0 || len(t[0].Partitions) != groupPartitions {
			return false
		}
	}
	return true
}

// feed gives the producer one line after the other until it is told to stop, and waits for the producer's end.
func (s *survival) feed(cmd *exec.Cmd) {
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
feeding:
	for {
		select {
		case <-s.stop:
			break feeding
		case <-tick.C:
			if _, err := fmt.Fprintln(s.stdin, s.fed.Load()); err != nil {
				break feeding // it has ended
			}
			s.fed.Add(1)
		}
	}
	_ = s.stdin.Close()
	s.done <- cmd.Wait()
}

// reads waits until records that are fed from now on have been read, and all before them.
func (s *survival) reads(ctx context.Context) error {
	mark, next := s.fed.Load()+beyond, int64(0)
	var ended error
	err := s.until(ctx, fmt.Sprintf("records up to %d", mark), func() bool {
		for next < mark && s.seen[strconv.FormatInt(next, 10)] > 0 {
			next++
		}
		select {
		case err := <-s.done:
			ended = fmt.Errorf("the producer has ended, with %d records of %d read: %w", next, mark, cmp.Or(err, errors.New("nothing told it to")))
		default:
		}
		return next == mark || ended != nil
	}, s.members...)
	return cmp.Or(ended, err)
}

// killCoordinator kills the broker that coordinates the group.
func (s *survival) killCoordinator(ctx context.Context) error {
	found := s.adm.FindGroupCoordinators(ctx, s.args.Group)
	c, ok := found[s.args.Group]
	if !ok || c.Err != nil {
		return fmt.Errorf("find the coordinator: %w", c.Err)
	}
	return s.kill(ctx, int(c.NodeID))
}

// killNext kills one that hasn't been killed yet.
func (s *survival) killNext(ctx context.Context) error {
	for _, m := range s.cluster.Members {
		if !slices.Contains(s.killed, m.ID) {
			return s.kill(ctx, m.ID)
		}
	}
	return errors.New("all have been killed")
}

// kill kills a broker, sees that reading and writing go on without it and that the group commits, and starts it again.
func (s *survival) kill(ctx context.Context, id int) error {
	m := s.cluster.Members[id-1]
	before, err := s.committedSum(ctx)
	if err != nil {
		return err
	}
	m.Kill()
	s.killed = append(s.killed, id)
	if err := s.reads(ctx); err != nil {
		return fmt.Errorf("without broker %d: %w", id, err)
	}
	var committed int64
	if e := s.now(ctx, "commits", func() bool { committed, err = s.committedSum(ctx); return committed >= before+beyond }); e != nil {
		return fmt.Errorf("without broker %d: committed are %d, and were %d: %w", id, committed, before, errors.Join(e, err))
	}
	if err := m.Start(ctx); err != nil {
		return err
	}
	err = s.now(ctx, "all replicas to be in sync", func() bool { return s.inSync(ctx) })
	if err != nil {
		return fmt.Errorf("with broker %d again: %w", id, err)
	}
	return nil
}

// now is until for what a broker has to be asked, which is done a few times a second.
func (s *survival) now(ctx context.Context, what string, done func() bool) error {
	var asked time.Time
	yes := false
	return s.until(ctx, what, func() bool {
		if !yes && time.Since(asked) > 200*time.Millisecond {
			yes = done()
			asked = time.Now()
		}
		return yes
	}, s.members...)
}

// committedSum is how many records the group has committed.
func (s *survival) committedSum(ctx context.Context) (sum int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// A client of its own each time: one that knows the coordinator goes on asking the one that was killed.
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(s.args.Bootstrap, ",")...))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	committed, err := kadm.NewClient(client).FetchOffsets(ctx, s.args.Group)
	if err != nil {
		return 0, err
	}
	committed.Each(func(o kadm.OffsetResponse) { sum += max(o.At, 0) })
	return sum, nil
}

func (s *survival) inSync(ctx context.Context) bool {
	topics, err := s.adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return false
	}
	for _, t := range topics {
		for _, p := range t.Partitions {
			if len(p.ISR) < len(p.Replicas) || p.Leader < 0 {
				return false
			}
		}
	}
	return len(topics) > 0
}

// end ends the producer, which must have delivered everything, and sees that all was read and is committed.
func (s *survival) end(ctx context.Context) error {
	s.ending = true
	close(s.stop)
	select {
	case err := <-s.done:
		if err != nil {
			return fmt.Errorf("the producer ended badly: %w", err)
		}
	case <-ctx.Done():
		return fmt.Errorf("the producer doesn't end: %w", ctx.Err())
	}
	s.sent = int(s.fed.Load())
	if err := s.until(ctx, "all records", s.allSeen, s.members...); err != nil {
		return err
	}
	err := s.now(ctx, "the commits to reach the end", func() bool {
		committed, err := s.committedSum(ctx)
		return err == nil && committed >= int64(s.sent)
	})
	if err != nil {
		return err
	}
	for _, m := range s.members {
		if err := m.leave(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *survival) close() {
	if !s.ending {
		close(s.stop)
	}
	s.group.close()
}
