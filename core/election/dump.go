package election

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Dump is all that a coordination keeps of a cluster, and nothing of who is alive. Committed offsets aren't part of it: they are
// records in a topic.
type Dump struct {
	ClusterID       string
	ControllerEpoch int32    // the last controller's; 0 when there was none
	BrokerEpoch     int64    // no registration had a higher one; 0 when there was none
	LastBrokerID    int32    // the last that was generated (2.2); 0 when none was
	NextProducerID  int64    // ids below it were given
	Topics          []Topic  // by ascending name, those that are marked for deletion too
	Configs         []Config // by ascending kind and name; none is empty, and versions are 0: they have no meaning elsewhere
}

// Partitions is how many partitions there are in all topics.
func (d *Dump) Partitions() (n int) {
	for i := range d.Topics {
		n += len(d.Topics[i].Partitions)
	}
	return n
}

// Validate says what is wrong with a dump: everything that a coordination couldn't hold, or couldn't go on from. Its errors wrap
// ErrInvalid.
func (d *Dump) Validate() error {
	switch {
	case d.ClusterID == "" || !utf8.ValidString(d.ClusterID):
		return d.invalid("cluster id %q", d.ClusterID)
	case d.ControllerEpoch < 0:
		return d.invalid("controller epoch %d", d.ControllerEpoch)
	case d.BrokerEpoch < 0:
		return d.invalid("broker epoch %d", d.BrokerEpoch)
	case d.LastBrokerID < 0:
		return d.invalid("last broker id %d", d.LastBrokerID)
	case d.NextProducerID < 0:
		return d.invalid("next producer id %d", d.NextProducerID)
	}
	ids := make(map[TopicID]string, len(d.Topics))
	for i := range d.Topics {
		t := &d.Topics[i]
		if i > 0 && t.Name <= d.Topics[i-1].Name {
			return d.invalid("topic %q after %q", t.Name, d.Topics[i-1].Name)
		}
		if other, ok := ids[t.ID]; ok {
			return d.invalid("topics %q and %q have one id", other, t.Name)
		}
		ids[t.ID] = t.Name
		if err := d.validateTopic(t); err != nil {
			return err
		}
	}
	for i := range d.Configs {
		c := &d.Configs[i]
		if i > 0 && CompareEntities(c.Entity, d.Configs[i-1].Entity) <= 0 {
			return d.invalid("configuration of %s after that of %s", describe(c.Entity), describe(d.Configs[i-1].Entity))
		}
		if err := d.validateConfig(c); err != nil {
			return err
		}
	}
	return nil
}

func (*Dump) invalid(format string, args ...any) error {
	return fmt.Errorf("dump: %w: "+format, append([]any{ErrInvalid}, args...)...)
}

func (d *Dump) validateTopic(t *Topic) error {
	if t.Name == "" || !utf8.ValidString(t.Name) || t.ID == (TopicID{}) || len(t.Partitions) == 0 {
		return d.invalid("topic %q with id %x and %d partitions", t.Name, t.ID, len(t.Partitions))
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if len(p.Replicas) == 0 || !areBrokers(p.Replicas) || !areBrokers(p.Adding) || !areBrokers(p.Removing) {
			return d.invalid("topic %q partition %d: replicas %v, adding %v, removing %v", t.Name, i, p.Replicas, p.Adding, p.Removing)
		}
		st := p.State
		if st == nil {
			continue
		}
		if st.Leader < NoBroker || st.LeaderEpoch < 0 || st.ControllerEpoch < 0 || st.PartitionEpoch < 0 || !areBrokers(st.ISR) {
			return d.invalid("topic %q partition %d: leader %d, leader epoch %d, ISR %v, controller epoch %d, partition epoch %d",
				t.Name, i, st.Leader, st.LeaderEpoch, st.ISR, st.ControllerEpoch, st.PartitionEpoch)
		}
		if st.ControllerEpoch > d.ControllerEpoch {
			return d.invalid("topic %q partition %d was written by controller epoch %d, and the last is %d", t.Name, i, st.ControllerEpoch, d.ControllerEpoch)
		}
	}
	return nil
}

// areBrokers says whether these are different ids of brokers.
func areBrokers(ids []int32) bool {
	sorted := slices.Sorted(slices.Values(ids))
	return len(sorted) == 0 || sorted[0] >= 0 && len(slices.Compact(sorted)) == len(ids)
}

func (d *Dump) validateConfig(c *Config) error {
	if c.Version != 0 || len(c.Values) == 0 || !utf8.ValidString(c.Entity.Name) {
		return d.invalid("configuration of %s: %d values, version %d", describe(c.Entity), len(c.Values), c.Version)
	}
	switch c.Entity.Kind {
	case TopicEntity:
		if _, ok := slices.BinarySearchFunc(d.Topics, c.Entity.Name, func(t Topic, name string) int { return cmp.Compare(t.Name, name) }); !ok {
			return d.invalid("configuration of %s, which doesn't exist", describe(c.Entity))
		}
	case BrokerEntity:
	default:
		return d.invalid("configuration of %s", describe(c.Entity))
	}
	for k, v := range c.Values {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return d.invalid("configuration of %s: %q is %q", describe(c.Entity), k, v)
		}
	}
	return nil
}

// Follows says whether a dump may take the place of an earlier state: nil when that is of the same cluster, and nothing of it is beyond the
// dump. Otherwise somebody went on from the earlier state meanwhile, and the error, which wraps ErrConflict, says where it shows.
func (d *Dump) Follows(earlier *Dump) error {
	conflict := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrConflict}, args...)...)
	}
	if d.ClusterID != earlier.ClusterID {
		return conflict("what is there is cluster %q, and the dump is of %q", earlier.ClusterID, d.ClusterID)
	}
	for _, c := range []struct {
		what        string
		mine, there int64
	}{
		{"controller epoch", int64(d.ControllerEpoch), int64(earlier.ControllerEpoch)}, {"broker epoch", d.BrokerEpoch, earlier.BrokerEpoch},
		{"last broker id", int64(d.LastBrokerID), int64(earlier.LastBrokerID)}, {"next producer id", d.NextProducerID, earlier.NextProducerID},
	} {
		if c.mine < c.there {
			return conflict("what is there has gone on: its %s is %d, the dump's %d", c.what, c.there, c.mine)
		}
	}
	for i := range earlier.Topics {
		was := &earlier.Topics[i]
		at, ok := slices.BinarySearchFunc(d.Topics, was.Name, func(t Topic, name string) int { return cmp.Compare(t.Name, name) })
		if !ok || d.Topics[at].ID != was.ID {
			continue // it was deleted since
		}
		now := &d.Topics[at]
		if len(now.Partitions) < len(was.Partitions) {
			return conflict("what is there has gone on: topic %q has %d partitions, in the dump %d", was.Name, len(was.Partitions), len(now.Partitions))
		}
		for n := range was.Partitions {
			before, after := was.Partitions[n].State, now.Partitions[n].State
			if before != nil && (after == nil || after.LeaderEpoch < before.LeaderEpoch || after.PartitionEpoch < before.PartitionEpoch) {
				return conflict("what is there has gone on: topic %q partition %d is beyond the dump, with leader epoch %d and partition epoch %d",
					was.Name, n, before.LeaderEpoch, before.PartitionEpoch)
			}
		}
	}
	return nil
}

// CompareEntities orders entities by kind and name.
func CompareEntities(a, b Entity) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func describe(e Entity) string {
	switch {
	case e.Kind == TopicEntity:
		return fmt.Sprintf("topic %q", e.Name)
	case e.Kind == BrokerEntity && e.Name == "":
		return "all brokers"
	case e.Kind == BrokerEntity:
		return fmt.Sprintf("broker %q", e.Name)
	}
	return fmt.Sprintf("kind %d, name %q", e.Kind, e.Name)
}

// How far Raise goes. Each is more than a cluster uses between a backup and its restoration, in years, and leaves room for two thousand
// restorations.
const (
	// RaisedEpochs is by how much leader epochs, controller epochs and broker epochs rise.
	RaisedEpochs     = 1_000_000
	raiseBrokerIDs   = 1_000
	raiseProducerIDs = 1_000_000_000_000
)

// Raise puts all epochs and all positions of ids far above what they are, for a dump that was taken while brokers lived or some time before
// it is imported: what they were given since isn't in it. A leader epoch that was used before would let replicas take new records for old
// ones, and a producer id that is given twice would make one producer's records another's duplicates.
//
// Partition epochs stay: nobody keeps them but the coordination, and the leader epoch fences whoever had one.
func (d *Dump) Raise() error {
	raised := *d
	raised.Topics = slices.Clone(d.Topics)
	for i := range raised.Topics {
		t := &raised.Topics[i]
		t.Partitions = slices.Clone(t.Partitions)
		for n := range t.Partitions {
			p := &t.Partitions[n]
			if p.State == nil {
				continue
			}
			st := *p.State
			if st.LeaderEpoch > math.MaxInt32-2*RaisedEpochs {
				return d.invalid("topic %q partition %d: no leader epochs are left above %d", t.Name, n, st.LeaderEpoch)
			}
			st.LeaderEpoch += RaisedEpochs
			p.State = &st
		}
	}
	if d.ControllerEpoch > math.MaxInt32-2*RaisedEpochs || d.LastBrokerID > math.MaxInt32-2*raiseBrokerIDs ||
		d.BrokerEpoch > math.MaxInt64-2*RaisedEpochs || d.NextProducerID > math.MaxInt64-2*raiseProducerIDs {
		return d.invalid("no room above controller epoch %d, broker epoch %d, broker id %d, producer id %d",
			d.ControllerEpoch, d.BrokerEpoch, d.LastBrokerID, d.NextProducerID)
	}
	raised.ControllerEpoch += RaisedEpochs
	raised.BrokerEpoch += RaisedEpochs
	raised.NextProducerID += raiseProducerIDs
	raised.LastBrokerID = max(d.LastBrokerID, firstGenerated-1) + raiseBrokerIDs
	*d = raised
	return nil
}

// firstGenerated is the first broker id that is generated (2.2).
const firstGenerated = 1001
