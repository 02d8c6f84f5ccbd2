package verify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// reader is a consumer of all partitions that follows the producers.
type reader struct {
	run       *Run
	committed bool // whether it reads only what is committed
	client    *kgo.Client
	views     []history.View
	position  []atomic.Int64 // the next offset of each partition
	done      chan struct{}
}

func (r *Run) startReader(ctx context.Context, committed bool) (*reader, error) {
	rd := &reader{run: r, committed: committed, position: make([]atomic.Int64, len(r.book.pages)), done: make(chan struct{})}
	name, level := "live reader", kgo.ReadUncommitted()
	if committed {
		name, level = "live reader of committed", kgo.ReadCommitted()
	}
	offsets := map[int32]kgo.Offset{}
	for i, p := range r.book.pages {
		rd.views = append(rd.views, history.View{Name: name, Committed: committed, Begin: r.book.now(), From: p.Start, To: p.Start})
		rd.position[i].Store(p.Start)
		offsets[int32(i)] = kgo.NewOffset().At(p.Start)
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: offsets}), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(level), kgo.FetchMaxWait(500 * time.Millisecond),
	}
	if !committed {
		options = append(options, kgo.KeepControlRecords())
	}
	var err error
	if rd.client, err = r.options.client(options...); err != nil {
		return nil, err
	}
	go func() { // ends with ctx; finish waits
		defer close(rd.done)
		defer rd.client.Close()
		for ctx.Err() == nil {
			rd.poll(ctx)
		}
	}()
	return rd, nil
}

func (rd *reader) poll(ctx context.Context) {
	fetches := rd.client.PollFetches(ctx)
	now := rd.run.book.now()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Partition < 0 || int(p.Partition) >= len(rd.views) {
			return // an error of the client's, not a partition's
		}
		v := &rd.views[p.Partition]
		bound := p.HighWatermark
		if rd.committed {
			bound = p.LastStableOffset
		}
		for _, record := range p.Records {
			s := rd.run.seen(record)
			s.At, s.Early = now, bound >= 0 && record.Offset >= bound
			v.Seen = append(v.Seen, s)
			v.To = max(v.To, record.Offset+1)
		}
		rd.position[p.Partition].Store(v.To)
	})
	fetches.EachError(func(_ string, _ int32, err error) {
		var loss *kgo.ErrDataLoss
		switch {
		case errors.As(err, &loss):
			rd.run.book.loss(loss.Partition, history.Loss{Name: rd.views[0].Name, At: now, ReadTo: loss.ConsumedTo, ResetTo: loss.ResetTo, LastSeen: loss.ConsumedToEpoch})
			rd.restart(loss.Partition, loss.ResetTo)
		case ctx.Err() == nil:
			rd.run.book.complain(fmt.Sprintf("a reader: %v", err))
		}
	})
}

// restart begins a view of its own behind a loss, so that one loss isn't found again as many repetitions.
func (rd *reader) restart(partition int32, from int64) {
	old := rd.views[partition]
	old.To = min(old.To, from) // no more can be held against it
	rd.run.book.view(partition, old)
	rd.views[partition] = history.View{Name: old.Name, Committed: old.Committed, Begin: rd.run.book.now(), From: from, To: from}
}

// finish ends the reader and gives what it saw.
func (rd *reader) finish() {
	<-rd.done
	for i, v := range rd.views {
		rd.run.book.view(int32(i), v)
	}
}

// seen says what a record is.
func (r *Run) seen(record *kgo.Record) history.Seen {
	var s history.Seen
	if record.Attrs.IsControl() {
		s = history.Seen{What: history.Marker, Sum: checksum(record.Key, record.Value)}
	} else {
		s = recognize(r.name, record.Partition, record.Key, record.Value)
	}
	s.Offset = record.Offset
	return s
}
