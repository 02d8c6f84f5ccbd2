package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/core/record"
)

// beyondSession is longer than a session lasts without a word.
func (f *Field) beyondSession() time.Duration { return f.coordination.session() + 4*time.Second }

// killed kills a broker, waits until the others go on without it, and starts it again.
func killed(ctx context.Context, f *Field, which func(context.Context) (*Broker, error)) error {
	b, err := which(ctx)
	if err != nil {
		return err
	}
	f.Say("%s is killed", b.name())
	b.Kill()
	if err := f.goesOn(ctx, patience); err != nil {
		return err
	}
	return b.Start(ctx)
}

// killedBoth kills a leader and the controller. When these are two, nothing can be acknowledged until one is back.
func killedBoth(ctx context.Context, f *Field) error {
	controller, err := f.Controller(ctx)
	if err != nil {
		return err
	}
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	f.Say("%s and %s are killed", leader.name(), controller.name())
	leader.Kill()
	controller.Kill()
	if !pause(ctx, time.Duration(f.Random.Int64N(int64(2*f.coordination.session())))) {
		return ctx.Err()
	}
	if err := leader.Start(ctx); err != nil {
		return err
	}
	return controller.Start(ctx)
}

// paused pauses a broker until its session has ended and the others go on without it.
func paused(ctx context.Context, f *Field, which func(context.Context) (*Broker, error)) error {
	b, err := which(ctx)
	if err != nil {
		return err
	}
	d := f.beyondSession()
	if f.Long {
		d = 30 * time.Second
	}
	f.Say("%s is paused for %s", b.name(), d)
	if err := b.Pause(); err != nil {
		return err
	}
	if !pause(ctx, d) {
		return ctx.Err()
	}
	return errors.Join(f.goesOn(ctx, patience), b.Resume())
}

// cutFromBrokers cuts a leader from all other brokers. It can neither have its followers' fetches nor the controller's consent to
// go on without them: what needs it waits.
func cutFromBrokers(ctx context.Context, f *Field) error {
	b, err := f.leader(ctx)
	if err != nil {
		return err
	}
	d := 10 * time.Second
	f.Say("%s is cut from the other brokers for %s", b.name(), d)
	f.cutFromBrokers(b)
	if !pause(ctx, d) {
		return ctx.Err()
	}
	f.Network.Heal()
	return nil
}

// cutOneWay keeps what one broker sends from one other.
func cutOneWay(ctx context.Context, f *Field) error {
	b, err := f.leader(ctx)
	if err != nil {
		return err
	}
	other := f.anyOf(f.others(b))
	from, to := b, other
	if f.Random.IntN(2) == 0 {
		from, to = other, b
	}
	d := 10 * time.Second
	f.Say("nothing comes from %s to %s for %s", from.name(), to.name(), d)
	f.Network.CutOneWay(from.name(), to.name())
	if !pause(ctx, d) {
		return ctx.Err()
	}
	f.Network.Heal()
	return nil
}

// cutFromCoordination cuts a broker from the coordination until its session has ended, and perhaps from the other brokers, too. The
// others go on without it.
func cutFromCoordination(ctx context.Context, f *Field, which func(context.Context) (*Broker, error), andBrokers bool) error {
	b, err := which(ctx)
	if err != nil {
		return err
	}
	d := f.beyondSession()
	f.Say("%s is cut from the coordination for %s", b.name(), d)
	f.coordination.cut(b)
	if andBrokers {
		f.cutFromBrokers(b)
	}
	if !pause(ctx, d) {
		return ctx.Err()
	}
	if err := f.goesOn(ctx, patience); err != nil {
		return err
	}
	f.Network.Heal()
	return nil
}

// slow delays all that brokers say to one another.
func slow(ctx context.Context, f *Field) error {
	draw := func() time.Duration { return time.Duration(f.Random.Int64N(int64(100 * time.Millisecond))) }
	for _, a := range f.Brokers {
		for _, b := range f.others(a) {
			f.Network.Delay(a.name(), b.name(), draw())
		}
	}
	f.coordination.delay(draw)
	f.Say("everything between brokers takes up to 100ms")
	err := f.during(ctx, time.Duration(f.times(5, 30))*time.Second, patience)
	f.Network.Heal()
	return errors.Join(err, f.whole(ctx))
}

// coordinationLeader kills the leader of the coordination: ZooKeeper's, whose sessions move to other servers, or raft's.
func coordinationLeader(ctx context.Context, f *Field) error {
	return again(ctx, f, f.times(1, 3), func() error {
		start, err := f.coordination.killLeader(ctx, f)
		if err != nil {
			return err
		}
		if err := f.during(ctx, 5*time.Second, patience); err != nil {
			return err
		}
		return start(ctx)
	})
}

// coordinationDown lets nobody decide anything. Whoever leads leads on: nobody can take that away meanwhile.
func coordinationDown(ctx context.Context, f *Field) error {
	d := time.Duration(f.times(8, 60)) * time.Second
	f.Say("nothing is decided for %s", d)
	resume, err := f.coordination.stall(f)
	if err != nil {
		return errors.Join(err, resume())
	}
	flowed := f.during(ctx, d, 15*time.Second)
	if flowed != nil {
		flowed = fmt.Errorf("without coordination: %w", flowed)
	}
	return errors.Join(flowed, resume(), f.whole(ctx))
}

// everybody kills all brokers at the same time, and starts them again.
func everybody(ctx context.Context, f *Field) error {
	f.Say("all brokers are killed")
	for _, b := range f.Brokers {
		b.Kill()
	}
	return f.Start(ctx)
}

// reassigned moves replicas: to two brokers, to others, and back to three.
func reassigned(ctx context.Context, f *Field) error {
	for round := range f.times(1, 3) {
		for step, sets := range [][][]int32{{{1, 2}, {2, 3}, {3, 1}}, {{3, 1}, {1, 2}, {2, 3}}, {{1, 2, 3}, {2, 3, 1}, {3, 1, 2}}} {
			var assign kadm.AlterPartitionAssignmentsReq
			want := map[int32][]int32{}
			for p := range int32(partitions) {
				want[p] = sets[(int(p)+round)%len(sets)]
				assign.Assign(f.topic(), p, want[p])
			}
			f.Say("replicas are moved: step %d", step+1)
			answers, err := f.admin.AlterPartitionAssignments(ctx, assign)
			if err = errors.Join(err, answers.Error()); err != nil {
				return err
			}
			err = f.await(ctx, 2*time.Minute, "replicas are where they were moved to", func(m kadm.Metadata) bool {
				for p, replicas := range want {
					got := m.Topics[f.topic()].Partitions[p]
					if !same(got.Replicas, replicas) || !same(got.ISR, replicas) {
						return false
					}
				}
				return true
			}, f.topic())
			if err = errors.Join(err, f.goesOn(ctx, patience)); err != nil {
				return err
			}
		}
	}
	return nil
}

// same says whether two lists have the same elements.
func same(a, b []int32) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// torn kills a broker and takes the ends of its logs away, as the death of a machine can that had not written everything to its disk:
// some whole batches and a part of one.
func torn(ctx context.Context, f *Field) error {
	b, err := f.leader(ctx)
	if err != nil {
		return err
	}
	f.Say("%s is killed, and loses the ends of its files", b.name())
	b.Kill()
	if err := f.goesOn(ctx, patience); err != nil {
		return err
	}
	for p := range partitions {
		if err := tear(filepath.Join(b.Data(), fmt.Sprintf("%s-%d", f.topic(), p)), f.Random.Float64()); err != nil {
			return err
		}
	}
	return b.Start(ctx)
}

// tear cuts the last segment of a partition in the middle of one of its last batches: how far from the end depends on luck, from 0
// to 1.
func tear(dir string, luck float64) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no segment", dir))
	}
	last := slices.Max(logs)
	data, err := os.ReadFile(last)
	if err != nil {
		return err
	}
	var ends []int64 // of whole batches
	end := int64(0)
	for batch, err := range record.All(data) {
		if err != nil {
			break // room that was made for what comes
		}
		end += int64(len(batch))
		ends = append(ends, end)
	}
	if len(ends) == 0 {
		return nil
	}
	const most = 50
	at := ends[len(ends)-1-int(luck*float64(min(most, len(ends))))]
	return os.Truncate(last, max(0, at-record.HeaderSize/2))
}

// full lets a leader's files grow no more. Its log directory fails, the others lead and go on, and when it is started with room it is
// back.
func full(ctx context.Context, f *Field) error {
	b, err := f.leader(ctx)
	if err != nil {
		return err
	}
	f.Say("%s has no room any more", b.name())
	if err := limitFiles(b.pid(), 100_000); err != nil {
		return err
	}
	err = f.await(ctx, patience, b.name()+" leads nothing and is in no set of replicas in sync", func(m kadm.Metadata) bool {
		for _, p := range m.Topics[f.topic()].Partitions {
			if p.Leader == int32(b.ID) || slices.Contains(p.ISR, int32(b.ID)) {
				return false
			}
		}
		return true
	}, f.topic())
	if err = errors.Join(err, f.goesOn(ctx, patience)); err != nil {
		return err
	}
	f.Say("it leads nothing any more, and is started with room")
	b.Kill()
	return b.Start(ctx)
}

// anything breaks something.
func anything(ctx context.Context, f *Field) error {
	choices := []func() error{
		func() error { return killed(ctx, f, f.leader) },
		func() error { return killed(ctx, f, f.Controller) },
		func() error { return killedBoth(ctx, f) },
		func() error { return paused(ctx, f, f.leader) },
		func() error { return cutFromBrokers(ctx, f) },
		func() error { return cutOneWay(ctx, f) },
		func() error { return cutFromCoordination(ctx, f, f.leader, f.Random.IntN(2) == 0) },
		func() error { return torn(ctx, f) },
	}
	return choices[f.Random.IntN(len(choices))]()
}

// unsafe lets a leader go on alone and then lets others lead who haven't got what it wrote, which the topic allows.
func unsafe(ctx context.Context, f *Field) error {
	b, err := f.leader(ctx)
	if err != nil {
		return err
	}
	f.Say("%s is left alone, and then killed", b.name())
	for _, other := range f.others(b) {
		other.Kill()
	}
	if err := f.goesOn(ctx, patience); err != nil {
		return err
	}
	b.Kill()
	for _, other := range f.others(b) {
		if err := other.Start(ctx); err != nil {
			return err
		}
	}
	if err := f.goesOn(ctx, patience); err != nil {
		return err
	}
	return errors.Join(b.Start(ctx), f.whole(ctx))
}
