package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Fill produces about so many bytes of 1 KB records in 64 KiB batches into a topic, spread over its partitions.
func Fill(ctx context.Context, addr, topic string, bytes int64) error {
	const batch = 64 << 10
	p := &Produce{RecordSize: 1000, BatchSize: batch, Acks: -1, InFlight: 1, Codec: record.None}
	p.Addr, p.Topic, p.Connections, p.Duration = addr, topic, 1, time.Second
	if err := p.check(); err != nil {
		return err
	}
	all, err := shares(ctx, addr, topic, 1)
	if err != nil {
		return err
	}
	frames, records, err := p.frames(all[0].partitions, 0)
	if err != nil {
		return err
	}
	each := records * int64(p.RecordSize)
	m := &meter{}
	m.measuring.Store(true)
	w := &worker{meter: m, histogram: newHistogram(), left: max(1, (bytes+each-1)/each)}
	if err := p.work(ctx, w, all[0].addr, frames, records); err != nil {
		return fmt.Errorf("fill topic %s: %w", topic, err)
	}
	return nil
}
