package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Fill produces about so many bytes of 1 KB records in 64 KiB batches into a topic, spread over its partitions.
func Fill(ctx context.Context, addr, topic string, bytes int64) error {
	p := &Produce{RecordSize: 1000, BatchSize: 64 << 10, Acks: -1, InFlight: 5}
	p.Addr, p.Topic, p.Connections, p.Duration = addr, topic, 1, time.Second
	if err := p.Check(); err != nil {
		return err
	}
	all, err := shares(ctx, addr, topic, 0)
	if err != nil {
		return err
	}
	templates, err := p.templates(0, false)
	if err != nil {
		return err
	}
	total := 0
	for _, s := range all {
		total += len(s.partitions)
	}
	group, ctx := errgroup.WithContext(ctx)
	m := newMeter(len(all))
	for _, s := range all {
		w := m.worker(m.latency)
		mine := bytes * int64(len(s.partitions)) / int64(total)
		w.left = max(1, (mine+templates[0].size-1)/templates[0].size)
		group.Go(func() error {
			c, err := dial(ctx, s.addr)
			if err != nil {
				return err
			}
			defer c.close()
			return newSender(c, w, p, templates, s.partitions, nil, schedule{}).run(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fill topic %s: %w", topic, err)
	}
	return nil
}
