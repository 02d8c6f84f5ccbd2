package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is done to five brokers on memberlist, not all of which vote.

// five kills, one after the other: a broker that follows, one that votes, the leader of raft, and the controller. Those that live stay registered, and
// each comes back before the next dies.
func five(ctx context.Context, f *Field) error {
	voter := func(votes bool) func(context.Context) (*Broker, error) {
		return func(ctx context.Context) (*Broker, error) {
			leader, err := f.raftLeader(ctx)
			if err != nil {
				return nil, err
			}
			voters, err := leader.voters(ctx)
			if err != nil {
				return nil, err
			}
			if len(voters) != 3 {
				return nil, fmt.Errorf("brokers %v vote, and not three", voters)
			}
			return f.anyOf(slices.DeleteFunc(f.others(leader), func(b *Broker) bool { return slices.Contains(voters, b.ID) != votes })), nil
		}
	}
	return again(ctx, f, f.times(1, 4), func() error {
		for _, next := range []struct {
			what  string
			which func(context.Context) (*Broker, error)
		}{
			{"one that follows", voter(false)}, {"one that votes", voter(true)}, {"the leader of raft", f.raftLeader}, {"the controller", f.Controller},
		} {
			b, err := next.which(ctx)
			if err != nil {
				return err
			}
			living := f.others(b)
			before, err := sessionsOver(living)
			if err != nil {
				return err
			}
			f.Say("%s, %s, is killed", b.name(), next.what)
			b.Kill()
			if err := f.without(ctx, b); err != nil {
				return fmt.Errorf("after %s was killed: %w", next.what, err)
			}
			err = f.goesOn(ctx, patience)
			now, serr := sessionsOver(living)
			if now > before {
				err = errors.Join(err, fmt.Errorf("%d brokers that live lost their sessions: another one led raft too late, or the machine was too busy", now-before))
			}
			if err = errors.Join(err, serr, b.Start(ctx), f.whole(ctx)); err != nil {
				return fmt.Errorf("after %s was killed: %w", next.what, err)
			}
		}
		return nil
	})
}

// sessionOver is what a broker prints when it has lost its session.
const sessionOver = "session with the coordination is over"

// sessionsOver is how often brokers have lost their sessions with the leader of raft, as they have printed.
func sessionsOver(brokers []*Broker) (n int, err error) {
	for _, b := range brokers {
		text, err := os.ReadFile(b.log())
		if err != nil {
			return n, err
		}
		n += bytes.Count(text, []byte(sessionOver))
	}
	return n, nil
}

// without waits until the others have taken a broker for dead, and lead what it led.
func (f *Field) without(ctx context.Context, dead *Broker) error {
	begin := time.Now()
	for _, b := range f.others(dead) {
		err := poll(ctx, patience, fmt.Sprintf("%s is gone, as %s says", dead.name(), b.name()), func(ctx context.Context) (done bool, said string, err error) {
			m, err := b.metadata(ctx, f.topic())
			if err != nil {
				return false, "", err
			}
			for _, p := range m.Topics[f.topic()].Partitions {
				if p.Leader < 0 || p.Leader == int32(dead.ID) {
					return false, describe(m), nil
				}
			}
			return !slices.Contains(m.Brokers.NodeIDs(), int32(dead.ID)), describe(m), nil
		})
		if err != nil {
			return err
		}
	}
	f.Say("the others go on without it after %s", time.Since(begin).Round(10*time.Millisecond))
	return nil
}

// votes gives votes by command until all five brokers have one, and takes them back until one has, the leader of raft's among them. What would
// lose the majority is refused on the way, and what is left of the voters decides all the time.
func votes(ctx context.Context, f *Field) error {
	if err := f.vote(ctx, 1); err != nil {
		return err
	}
	dead := f.Brokers[4]
	f.Say("%s is killed", dead.name())
	dead.Kill()
	if err := errors.Join(f.refused(ctx, "promote", dead, "doesn't answer"), f.refused(ctx, "remove", f.Brokers[0], "is the only voter")); err != nil {
		return err
	}
	if err := dead.Start(ctx); err != nil {
		return err
	}
	for _, n := range []int{3, 5} {
		if err := f.vote(ctx, n); err != nil {
			return err
		}
	}
	// With five votes two may die, the leader of raft among them; to forget a third one, who lives, would leave less than a majority.
	leader, err := f.raftLeader(ctx)
	if err != nil {
		return err
	}
	other := f.anyOf(f.others(leader))
	f.Say("%s, the leader of raft, and %s are killed", leader.name(), other.name())
	leader.Kill()
	other.Kill()
	living := f.others(leader, other)
	if err := errors.Join(f.goesOn(ctx, patience), f.refused(ctx, "remove", f.anyOf(living), "nothing could be decided")); err != nil {
		return err
	}
	if err := errors.Join(f.decides(ctx, living...), leader.Start(ctx), other.Start(ctx)); err != nil {
		return err
	}
	for _, n := range []int{3, 1} {
		if err := f.vote(ctx, n); err != nil {
			return err
		}
	}
	last, err := f.raftLeader(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f.refused(ctx, "remove", last, "is the only voter"), f.whole(ctx))
}

// vote has so many brokers vote: it gives votes to those that follow, or takes them from voters, that of the leader of raft first. After each it is
// seen that what votes then can decide.
func (f *Field) vote(ctx context.Context, n int) error {
	for {
		if err := f.whole(ctx); err != nil {
			return err
		}
		leader, err := f.raftLeader(ctx)
		if err != nil {
			return err
		}
		voters, err := leader.voters(ctx)
		if err != nil {
			return err
		}
		var outcome string
		switch {
		case len(voters) == n:
			f.Say("brokers %v vote", voters)
			return nil
		case len(voters) < n:
			follows := slices.DeleteFunc(f.others(leader), func(b *Broker) bool { return slices.Contains(voters, b.ID) })
			outcome, err = leader.promote(ctx, f.anyOf(follows))
		default:
			outcome, err = f.anyOf(f.others(leader)).order(ctx, "remove", leader)
		}
		if err != nil {
			return err
		}
		f.Say("%s", outcome)
		if err := f.decides(ctx, f.Brokers...); err != nil {
			return err
		}
	}
}

// decides sees that the coordination takes decisions: it makes a topic on some brokers.
func (f *Field) decides(ctx context.Context, on ...*Broker) error {
	f.decisions++
	topic := fmt.Sprintf("decided-%d", f.decisions)
	err := poll(ctx, patience, "topic "+topic+" is there", func(ctx context.Context) (done bool, said string, err error) {
		m, err := f.admin.Metadata(ctx, topic)
		if err != nil {
			return false, "", err
		}
		p, ok := m.Topics[topic].Partitions[0]
		if !ok { // the client asks once, the controller that it knows: that one may have died just now, and not have been told of
			err = f.plant(ctx, topic, on...)
		}
		return ok && p.Leader >= 0 && len(p.ISR) == len(on), describe(m), err
	})
	return errors.Join(err, f.goesOn(ctx, patience))
}

// refused gives an order which must be refused for a reason.
func (f *Field) refused(ctx context.Context, command string, other *Broker, why string) error {
	var asked *Broker
	for _, b := range f.Brokers {
		if b.Running() && b != other {
			asked = b
		}
	}
	outcome, err := asked.order(ctx, command, other)
	if err == nil {
		return fmt.Errorf("%s %s isn't refused: %s", command, other.name(), outcome)
	}
	if !strings.Contains(err.Error(), why) {
		return fmt.Errorf("%s %s isn't refused because it %s: %w", command, other.name(), why, err)
	}
	f.Say("refused, as it has to be: %s %s", command, other.name())
	return nil
}

// voters are the brokers that vote, as this one knows.
func (b *Broker) voters(ctx context.Context) (ids []int, err error) {
	out, err := exec.CommandContext(ctx, b.bin, "coordination", "members", "-c", b.conf(), "--address", b.ends.gate.Addr(), "--output", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("coordination members: %w: %s", err, out)
	}
	var members []struct{ Broker, Raft string }
	if err := json.Unmarshal(out, &members); err != nil {
		return nil, fmt.Errorf("coordination members: %w", err)
	}
	for _, m := range members {
		if m.Raft != "leader" && m.Raft != "voter" {
			continue
		}
		id, err := strconv.Atoi(m.Broker)
		if err != nil {
			return nil, fmt.Errorf("coordination members: %w", err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}
