package partition

import (
	"fmt"
	"time"
)

// ISRAnswered brings the controller's answer to a proposal: with ok, isr is recorded under partitionEpoch; without, what was
// recorded before stands. An answer to another proposal than the one in flight changes nothing. While there is no answer, both sets
// count for the high watermark.
func (p *Partition) ISRAnswered(to ISRProposal, ok bool, isr []int32, partitionEpoch int32) {
	p.mu.Lock()
	size := len(p.state.ISR)
	e := p.state.isrAnswered(to, ok, isr, partitionEpoch, p.now())
	switch now := len(p.state.ISR); {
	case now < size:
		p.traffic.shrinks.Add(1)
	case now > size:
		p.traffic.expands.Add(1)
	}
	old := p.view.Load()
	p.publish(old.offline, old.removed)
	done := p.take(e)
	p.mu.Unlock()
	done.call()
}

// checkISR drops followers that lag from the in-sync set, by way of a proposal.
func (p *Partition) checkISR(now time.Time) {
	p.mu.Lock()
	done := p.take(p.state.tick(now))
	p.mu.Unlock()
	done.call()
}

// takeOffline ends the service of a replica whose log dir failed.
func (p *Partition) takeOffline(cause error) {
	p.mu.Lock()
	if old := p.view.Load(); old.offline == nil && !old.removed {
		p.publish(cause, false)
	}
	done := p.settle(fmt.Errorf("%w: %w", ErrOffline, cause))
	p.signal(all)
	p.mu.Unlock()
	done.call()
}
