package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/membership/gossip"
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
	admin, err := gossip.NewAdmin(gossip.DefaultOptions())
	if err != nil {
		return err
	}
	defer admin.Close()
	var at []string
	for _, b := range f.Brokers {
		at = append(at, b.ends.gate.Addr())
	}
	order, err := admin.Remove(ctx, at, strconv.Itoa(dead.ID))
	if err != nil {
		return err
	}
	f.Say("%s: %s", dead.name(), order.Outcome)
	f.add(next)
	if err := next.Start(ctx); err != nil {
		return err
	}
	f.Say("%s has come", next.name())
	if order, err = promoted(ctx, admin, at, next); err != nil {
		return err
	}
	f.Say("%s: %s", next.name(), order.Outcome)
	if order.Voters != m.first {
		return fmt.Errorf("%d brokers vote, not %d", order.Voters, m.first)
	}
	return errors.Join(f.moved(ctx, dead, next), f.whole(ctx))
}

// promoted gives a broker a vote, as soon as the others know it.
func promoted(ctx context.Context, admin *gossip.Admin, at []string, b *Broker) (o gossip.Order, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if o, err = admin.Promote(ctx, at, strconv.Itoa(b.ID)); err == nil {
			return o, nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return o, err
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
