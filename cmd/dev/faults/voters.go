package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// replaced lets a voter die for good, the leader of raft now and then, and replaces it: the others forget it, a new broker joins them
// and is given its vote, and then its replicas.
func replaced(ctx context.Context, f *Field) error {
	m, err := f.voters()
	if err != nil {
		return err
	}
	dead := f.anyOf(f.Brokers)
	next := &Broker{ID: m.first + 1, bin: dead.bin, dir: filepath.Join(f.options.Dir, fmt.Sprintf("broker-%d", m.first+1)), storage: dead.storage, properties: dead.properties}
	if err := f.wire(next); err != nil {
		return err
	}
	f.Say("%s dies for good", dead.name())
	f.remove(dead)
	if err := f.goesOn(ctx, patience); err != nil {
		return err
	}
	one := f.anyOf(f.Brokers)
	outcome, err := one.order(ctx, "remove", dead)
	if err != nil {
		return err
	}
	f.Say("%s", outcome)
	f.add(next)
	if err := next.Start(ctx); err != nil {
		return err
	}
	f.Say("%s has come", next.name())
	if outcome, err = one.promote(ctx, next); err != nil {
		return err
	}
	f.Say("%s", outcome)
	return errors.Join(f.moved(ctx, dead, next), f.whole(ctx))
}

// recovered kills all brokers and removes what two of three voters keep of the coordination: what the third has, the leader of raft, is made a
// cluster again, and the others join it and are given their votes.
func recovered(ctx context.Context, f *Field) error {
	keeps, err := f.raftLeader(ctx)
	if err != nil {
		return err
	}
	f.Say("all brokers are killed, and the stores of all voters but %s, the leader of raft, are gone", keeps.name())
	for _, b := range f.Brokers {
		b.Kill()
	}
	for _, b := range f.others(keeps) {
		if err := os.RemoveAll(b.Data() + ".coordination"); err != nil {
			return err
		}
	}
	recovering := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, keeps.bin, append([]string{"coordination", "recover", "-c", keeps.conf()}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := recovering(); err == nil || !strings.Contains(out, "nothing was changed") {
		return fmt.Errorf("coordination recover doesn't ask whether that is meant: %w: %s", err, out)
	}
	if out, err := recovering("--accept-loss"); err != nil {
		return fmt.Errorf("coordination recover: %w: %s", err, out)
	}
	f.Say("%s was recovered", keeps.name())
	if err := f.Start(ctx); err != nil {
		return err
	}
	for _, b := range f.others(keeps) {
		outcome, err := keeps.promote(ctx, b)
		if err != nil {
			return err
		}
		f.Say("%s", outcome)
	}
	return f.whole(ctx)
}

// order has the command of that name say something about another broker to the cluster that b belongs to.
func (b *Broker) order(ctx context.Context, command string, other *Broker) (outcome string, err error) {
	out, err := exec.CommandContext(ctx, b.bin, "coordination", command, strconv.Itoa(other.ID), "-c", b.conf(), "--address", b.ends.gate.Addr()).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("coordination %s %d: %w: %s", command, other.ID, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// promote gives another broker a vote, as soon as the cluster knows it.
func (b *Broker) promote(ctx context.Context, other *Broker) (outcome string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if outcome, err = b.order(ctx, "promote", other); err == nil || !pause(ctx, 200*time.Millisecond) {
			return outcome, err
		}
	}
}

// moved has one broker take the replicas of another one.
func (f *Field) moved(ctx context.Context, from, to *Broker) error {
	all, err := f.admin.Metadata(ctx, f.topic())
	if err != nil {
		return err
	}
	var assign kadm.AlterPartitionAssignmentsReq
	for p, detail := range all.Topics[f.topic()].Partitions {
		var replicas []int32
		for _, id := range detail.Replicas {
			if id == int32(from.ID) {
				id = int32(to.ID)
			}
			replicas = append(replicas, id)
		}
		assign.Assign(f.topic(), p, replicas)
	}
	answers, err := f.admin.AlterPartitionAssignments(ctx, assign)
	return errors.Join(err, answers.Error())
}
