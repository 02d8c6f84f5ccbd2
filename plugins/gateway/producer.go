package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/sdk/kgopartitioner"
)

const (
	// batchBytes is the largest batch, below the broker's default of message.max.bytes.
	batchBytes = 1 << 20
	// linger is how long the client waits for more records of a partition before it sends a batch: long enough for
	// the rest of a request, and for requests that come at the same time.
	linger = time.Millisecond
	// unassigned is the partition of a record that the partitioner is to choose.
	unassigned = -1
)

// producer routes records to partitions and sends them. It may be used from any goroutine.
type producer struct {
	client      *kgo.Client
	topics      *topics
	partitioner partitioner.Partitioner
	timeout     time.Duration
}

// route sets the partition of every record that has none, by one call of the partitioner for all of them, and checks
// that of the others. After an error nothing has been sent.
func (p *producer) route(ctx context.Context, topic string, records []*kgo.Record) error {
	info, err := p.topics.get(ctx, topic, true)
	if err != nil {
		return err
	}
	free := records
	for i, r := range records {
		if r.Partition == unassigned {
			continue
		}
		if r.Partition < 0 || r.Partition >= info.partitions {
			return noPartition()
		}
		if len(free) == len(records) { // the first one with a partition of its own
			free = append(make([]*kgo.Record, 0, len(records)), records[:i]...)
			for _, r := range records[i:] {
				if r.Partition == unassigned {
					free = append(free, r)
				}
			}
		}
	}
	if len(free) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return kgopartitioner.Assign(ctx, p.partitioner, topic, info.partitions, info.available, free)
}

// delivery is the fate of some records that were sent together.
type delivery struct {
	wait   sync.WaitGroup
	cancel context.CancelFunc
	mu     sync.Mutex
	failed map[*kgo.Record]error // nil while none failed
}

// send sends records that were routed. Once given away they are sent whatever becomes of whoever asked: a record that
// is half withdrawn helps nobody. settled must be called.
func (p *producer) send(ctx context.Context, topic string, records []*kgo.Record) *delivery {
	d := &delivery{}
	d.wait.Add(len(records))
	// The client's own bound on delivery counts from a record's timestamp, which may be the caller's.
	ctx, d.cancel = context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	done := func(r *kgo.Record, err error) {
		if err != nil {
			d.fail(r, err)
			if err == kerr.UnknownTopicOrPartition || err == kerr.UnknownTopicID {
				p.topics.forget(topic)
			}
		}
		d.wait.Done()
	}
	for _, r := range records {
		r.Topic = topic
		p.client.Produce(ctx, r, done)
	}
	return d
}

func (d *delivery) fail(r *kgo.Record, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = map[*kgo.Record]error{}
	}
	d.failed[r] = err
}

// settled waits until every record was acknowledged or has failed, and gives those that failed.
func (d *delivery) settled() map[*kgo.Record]error {
	d.wait.Wait()
	d.cancel()
	return d.failed
}
