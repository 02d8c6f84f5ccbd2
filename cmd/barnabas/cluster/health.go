package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
)

// minISRKey is the topic configuration that says how many replicas must be in sync for acks=all.
const minISRKey = "min.insync.replicas"

// Fault is a kind of thing that can be wrong.
type Fault string

// The faults, the worst first. The last two are no faults of the cluster's, but it isn't at rest.
const (
	NoController    Fault = "no controller"
	BrokerMissing   Fault = "broker missing"
	Leaderless      Fault = "no leader"
	BelowMinISR     Fault = "below min.insync.replicas"
	UnderReplicated Fault = "under-replicated"
	AtMinISR        Fault = "at min.insync.replicas"
	Reassigning     Fault = "reassigning"
	NotPreferred    Fault = "not led by the preferred replica"
)

// Serious says whether clients notice the fault, or would at the next one. The others are told and pass for health.
func (f Fault) Serious() bool { return f != AtMinISR && f != Reassigning && f != NotPreferred }

// Finding is something that is wrong, or worth knowing.
type Finding struct {
	Fault  Fault
	What   string // the partition or broker, "" for the cluster
	Detail string
}

// Health finds what is wrong in a state, ordered by fault and name. minISR gives each topic's min.insync.replicas; a topic
// that it lacks has 1.
func Health(s State, minISR map[string]int) []Finding {
	found := map[Fault][]Finding{}
	add := func(f Fault, what, detail string) {
		found[f] = append(found[f], Finding{Fault: f, What: what, Detail: detail})
	}
	if _, ok := s.Broker(s.Controller); !ok {
		add(NoController, "", "nobody decides: no leader is elected, no topic created")
	}
	for _, share := range s.Shares() {
		if !share.Alive {
			add(BrokerMissing, strconv.Itoa(int(share.Broker.ID)), fmt.Sprintf("it has %d replicas", share.Replicas))
		}
	}
	for _, p := range s.Partitions {
		partitionHealth(p, max(minISR[p.Topic], 1), add)
	}
	for _, m := range s.Moving {
		add(Reassigning, m.Name(), fmt.Sprintf("to %v, away from %v", m.Adding, m.Removing))
	}
	var all []Finding
	for _, f := range []Fault{NoController, BrokerMissing, Leaderless, BelowMinISR, UnderReplicated, AtMinISR, Reassigning, NotPreferred} {
		all = append(all, found[f]...)
	}
	return all
}

func partitionHealth(p Partition, minISR int, add func(f Fault, what, detail string)) {
	in := fmt.Sprintf("in sync: %v of %v", p.ISR, p.Replicas)
	switch {
	case p.Leader == NoLeader:
		add(Leaderless, p.Name(), in)
		return
	case len(p.ISR) < minISR:
		add(BelowMinISR, p.Name(), fmt.Sprintf("%s, wants %d", in, minISR))
	case len(p.ISR) < len(p.Replicas):
		add(UnderReplicated, p.Name(), in)
	}
	if len(p.ISR) == minISR && minISR > 1 {
		add(AtMinISR, p.Name(), fmt.Sprintf("%s, wants %d", in, minISR))
	}
	if p.Leader != p.Preferred() {
		add(NotPreferred, p.Name(), fmt.Sprintf("led by %d, preferred is %d", p.Leader, p.Preferred()))
	}
}

// Healthy says that none of the findings is serious.
func Healthy(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Fault.Serious() })
}

// MinISR reads min.insync.replicas of topics. A topic that is gone is left out.
func MinISR(ctx context.Context, admin *kadm.Client, topics []string) (map[string]int, error) {
	min := map[string]int{}
	const atOnce = 500 // a request and its answer stay below a few MB
	for some := range slices.Chunk(topics, atOnce) {
		configs, err := admin.DescribeTopicConfigs(ctx, some...)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", minISRKey, err)
		}
		for _, t := range configs {
			for _, c := range t.Configs {
				if c.Key != minISRKey {
					continue
				}
				if min[t.Name], err = strconv.Atoi(c.MaybeValue()); err != nil {
					return nil, fmt.Errorf("%s of topic %s: %w", minISRKey, t.Name, err)
				}
			}
		}
	}
	return min, nil
}
