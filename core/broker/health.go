package broker

import (
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/health"
	"github.com/barnabas-mq/barnabas/core/election"
)

// facts are what there is to know about how this broker is; those about partitions, which cost a walk over all of them, only if asked
// for. It may be called at any time, from any goroutine.
func (b *Broker) facts(ofPartitions bool) health.Facts {
	at := b.phase.Load()
	f := health.Facts{Now: time.Now(), Failure: b.Err(), Phase: at.what, Since: at.since, Serving: b.serving.Load(), Controller: election.NoBroker}
	if lost := b.lostAt.Load(); lost != 0 {
		f.LostAt = time.Unix(0, lost)
	}
	f.Registered = b.epoch.Load() >= 0 && f.LostAt.IsZero()
	if !f.Serving {
		return f // the rooms are still being made
	}
	f.Controller, _ = b.cache.Snapshot().Controller()
	f.Loading = b.groups.Loading()
	for _, d := range b.dirs {
		f.Dirs = append(f.Dirs, health.Dir{Path: d.Path(), Err: d.Err()})
	}
	if ofPartitions {
		b.surveyPartitions(&f)
	}
	return f
}

func (b *Broker) surveyPartitions(f *health.Facts) {
	for p := range b.partitions.All() {
		s := p.Standing()
		switch {
		case s.Offline != nil:
			f.Unserved++
		case p.IsLeader():
			f.Led++
			if len(s.ISR) < len(s.Replicas) {
				f.UnderReplicated++
			}
			if s.UnderMin {
				f.UnderMinISR++
			}
		}
	}
	for _, t := range b.cache.Snapshot().Topics() {
		for i := range t.Partitions {
			if t.Partitions[i].Leader < 0 {
				f.Leaderless++
			}
		}
	}
}
