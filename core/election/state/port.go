package state

import (
	"maps"

	"github.com/barnabas-mq/barnabas/core/election"
)

// Export gives what [election.Portable] exports: a copy. A state without a cluster id gives a dump that isn't valid.
func (s *State) Export() election.Dump {
	d := election.Dump{ClusterID: s.ClusterID, ControllerEpoch: s.ControllerEpoch, BrokerEpoch: s.BrokerEpoch, LastBrokerID: s.LastBrokerID,
		NextProducerID: s.NextProducerID, Topics: s.ListTopics()}
	for i := range d.Topics {
		for n := range d.Topics[i].Partitions {
			if st := d.Topics[i].Partitions[n].State; st != nil {
				d.ControllerEpoch = max(d.ControllerEpoch, st.ControllerEpoch)
			}
		}
	}
	for _, e := range sortedEntities(s.Configs) {
		d.Configs = append(d.Configs, election.Config{Entity: e, Values: maps.Clone(s.Configs[e].Values)})
	}
	return d
}

// FromDump makes the state that a valid dump says, and keeps nothing of the dump.
func FromDump(d *election.Dump) *State {
	s := New()
	s.ClusterID, s.ControllerEpoch, s.BrokerEpoch = d.ClusterID, d.ControllerEpoch, d.BrokerEpoch
	s.LastBrokerID, s.NextProducerID = d.LastBrokerID, d.NextProducerID
	for i := range d.Topics {
		t := cloneTopic(&d.Topics[i])
		s.Topics[t.Name] = &t
	}
	for _, c := range d.Configs {
		s.ConfigVersion++
		s.Configs[c.Entity] = election.Config{Entity: c.Entity, Values: maps.Clone(c.Values), Version: s.ConfigVersion}
	}
	return s
}

// IsEmpty says whether it knows nothing at all.
func (s *State) IsEmpty() bool {
	return s.ClusterID == "" && s.ControllerEpoch == 0 && s.BrokerEpoch == 0 && s.LastBrokerID == 0 && s.NextProducerID == 0 &&
		s.ConfigVersion == 0 && len(s.Topics) == 0 && len(s.Configs) == 0
}
