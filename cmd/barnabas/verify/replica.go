package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// Fetch is asked in these versions: from 11 on followers answer consumers, from 13 on topics have ids instead of names.
const (
	fromFollowers = 11
	byName        = 12
)

// fetchRequest is a Fetch that followers answer, too.
type fetchRequest struct{ *kmsg.FetchRequest }

// MaxVersion makes it a request of at most version 12.
func (fetchRequest) MaxVersion() int16 { return byName }

// replica reads one partition from one broker, from the start of the run to its end.
type replica struct {
	run       *Run
	client    *kgo.Client
	broker    int32
	partition int32
	until     int64 // what is known to be below the end
	view      history.View
}

// silent is how long a broker that answered may say nothing, and still count as one that has nothing more to show.
const silent = 5 * time.Second

// read reads until the broker says that there is no more, and it has come as far as it must; or until ctx ends. An error says
// that the broker didn't answer, or refused, in the end: the view then shows only as far as it came.
func (rp *replica) read(ctx context.Context) error {
	var last error
	var answered time.Time
	for {
		got, next, err := rp.fetch(ctx, rp.view.To)
		switch {
		case errors.Is(err, errOld):
			return err
		case err == nil:
			last, answered = nil, time.Now()
			bound := rp.take(got)
			moved := next > rp.view.To
			rp.view.To = max(rp.view.To, next)
			if rp.view.To >= bound && bound >= rp.until {
				return nil
			}
			if moved {
				continue
			}
		case ctx.Err() == nil:
			last = err
		case time.Since(answered) > silent:
			return errors.Join(err, last)
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			return last
		}
	}
}

// take notes what an answer shows, and gives the end that it told.
func (rp *replica) take(got kgo.FetchPartition) (bound int64) {
	bound = got.HighWatermark
	if rp.view.Committed {
		bound = got.LastStableOffset
	}
	now := rp.run.book.now()
	for _, record := range got.Records {
		s := rp.run.seen(record)
		s.At, s.Early = now, record.Offset >= bound
		rp.view.Seen = append(rp.view.Seen, s)
	}
	return bound
}

// fetch asks the broker for records from an offset on, and gives the offset to go on with.
func (rp *replica) fetch(ctx context.Context, offset int64) (got kgo.FetchPartition, next int64, err error) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = rp.partition, offset, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = rp.run.topic, append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.SessionEpoch, req.MaxBytes, req.MaxWaitMillis, req.MinBytes, req.Topics = -1, 1<<20, 500, 1, append(req.Topics, t)
	level := kgo.ReadUncommitted()
	if rp.view.Committed {
		level = kgo.ReadCommitted()
		req.IsolationLevel = 1
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := rp.client.Broker(int(rp.broker)).Request(ctx, fetchRequest{req})
	if err != nil {
		return got, offset, err
	}
	fetched := resp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(fetched.ErrorCode); err != nil {
		return got, offset, err
	}
	if len(fetched.Topics) != 1 || len(fetched.Topics[0].Partitions) != 1 || fetched.Topics[0].Partitions[0].Partition != rp.partition {
		return got, offset, errors.New("the answer isn't about the partition that was asked for")
	}
	got, next = kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: offset, Topic: rp.run.topic, Partition: rp.partition, IsolationLevel: level, KeepControlRecords: !rp.view.Committed,
	}, &fetched.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	if errors.Is(got.Err, kerr.NotLeaderForPartition) && fetched.Version < fromFollowers {
		return got, next, fmt.Errorf("%w: it answers Fetch version %d, and followers answer consumers from %d on", errOld, fetched.Version, fromFollowers)
	}
	return got, next, got.Err
}

// errOld says that a broker is too old for what is asked.
var errOld = errors.New("the broker is too old")

// wait waits, or gives the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
