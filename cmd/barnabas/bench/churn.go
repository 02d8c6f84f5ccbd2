package bench

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Churn is load by clients that come and go: each connects, asks which requests the broker knows, and hangs up. A request of
// the result is one such visit, Connections are the visitors at a time. Load.Topic isn't needed.
type Churn struct {
	Load
	Rate float64 // visits a second, by all together, evenly spread; 0 is as many as go
}

// Check finds what is wrong with the load.
func (c *Churn) Check() error {
	if !(c.Rate >= 0 && c.Rate <= maxRate) {
		return fmt.Errorf("a rate of %g connections a second: it must be from 0, for as many as go, to %g", c.Rate, float64(maxRate))
	}
	return c.check()
}

// Run puts the load on the broker.
func (c *Churn) Run(ctx context.Context) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := newMeter(c.Connections)
	if c.Rate > 0 {
		m.late = newRecorder(c.Connections)
	}
	hello := frame(kmsg.NewPtrApiVersionsRequest())
	visitors := make([]work, c.Connections)
	for i := range visitors {
		w := m.worker(m.latency)
		visitors[i] = func(ctx context.Context) error {
			return because(ctx, c.visit(ctx, w, hello, newSchedule(m.started(), c.Rate, i, c.Connections)))
		}
	}
	r, err := c.drive(ctx, m, visitors, nil, func() {})
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, fmt.Errorf("connect: this machine has no port left, for those of closed connections rest a while: give a lower rate: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	r.Name, r.Rate = "connect", c.Rate
	return r, nil
}

func (c *Churn) visit(ctx context.Context, w *worker, hello []byte, s schedule) error {
	m := w.meter
	for w.more() {
		now := m.now()
		due := now
		if s.paced() {
			if due = s.next; now < due {
				m.sleepUntil(due)
				continue
			}
		}
		s.step()
		w.sent(due, now)
		broker, err := dial(ctx, c.Addr)
		if err != nil {
			return err
		}
		if err = broker.write(hello); err == nil {
			_, err = broker.read()
		}
		broker.close()
		if err != nil {
			return err
		}
		w.done(due, m.now(), 0, 0, int64(len(hello)))
	}
	if s.paced() {
		w.giveUp(s.next, max(1, int64(s.interval)), 1)
	}
	return nil
}
