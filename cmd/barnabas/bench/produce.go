package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Produce is load by producers.
type Produce struct {
	Load
	// Rate is how many records a second all connections send together, evenly spread; 0 is as many as go. A batch is due as a
	// whole. What can't be sent when it is due, for there is no room in the window, is sent later and its delay counts from
	// when it was due.
	Rate       float64
	InFlight   int   // requests that each connection sends before it waits for an answer; there are none to wait for with acks 0
	RecordSize int   // bytes of each record's value
	BatchSize  int   // bytes of a batch before compression: as many records as fit, at least one
	Keys       int   // records have keys, of so many different ones; 0 for no keys
	Acks       int16 // 0, 1 or -1 for all
	Idempotent bool  // each connection is an idempotent producer; needs acks -1
	Codec      record.Codec
	Codecs     record.Codecs // compresses; not needed for record.None, nor through a client
	// Client sends through franz-go, one client for each connection, rather than ready-made requests. Then each record is due
	// for itself, and Linger is how long the client waits for more of them before it sends a batch that isn't full.
	Client bool
	Linger time.Duration
}

// produceVersion is spoken by every broker from Kafka 2.4 on and, unlike the versions from 13 on, has topics by name.
const produceVersion = 9

// Check finds what is wrong with the load.
func (p *Produce) Check() error {
	switch {
	case p.InFlight < 1 || p.InFlight > 1<<16:
		return fmt.Errorf("%d requests in flight: it must be from 1 to %d", p.InFlight, 1<<16)
	case p.RecordSize < 0 || p.RecordSize > 64<<20:
		return fmt.Errorf("a record size of %d bytes: it must be from 0 to 64 MiB", p.RecordSize)
	case p.Acks < -1 || p.Acks > 1:
		return fmt.Errorf("acks %d: it must be 0, 1 or -1 for all", p.Acks)
	case p.Idempotent && p.Acks != -1:
		return errors.New("an idempotent producer needs acks all")
	case p.Client && p.Idempotent && p.InFlight != clientInFlight:
		return fmt.Errorf("%d requests in flight: an idempotent franz-go client has %d, whatever one says", p.InFlight, clientInFlight)
	case p.Linger != 0 && !p.Client:
		return errors.New("only a client lingers: ready-made batches are full")
	case p.Linger < 0 || p.Linger > time.Minute:
		return fmt.Errorf("a linger of %s: it must be from 0 to a minute", p.Linger)
	case p.Keys < 0:
		return fmt.Errorf("%d keys: it can't be negative", p.Keys)
	case !(p.Rate >= 0 && p.Rate <= maxRate):
		return fmt.Errorf("a rate of %g records a second: it must be from 0, for as many as go, to %g", p.Rate, float64(maxRate))
	case len(p.Topic) > 126:
		return fmt.Errorf("the topic's name is longer than 126 bytes")
	}
	return p.check()
}

const (
	maxRate        = 1e8
	clientInFlight = 5 // of an idempotent franz-go client, to brokers from Kafka 1.0 on
)

// Run puts the load on the broker.
func (p *Produce) Run(ctx context.Context) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	m := newMeter(p.Connections)
	if p.Rate > 0 {
		m.late = newRecorder(p.Connections)
	}
	work, hangUp, err := p.prepare(ctx, m, m.latency, false)
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	defer hangUp()
	r, err := p.drive(ctx, m, work, nil, hangUp)
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	r.Name, r.InFlight, r.Rate = "produce", p.InFlight, p.Rate
	return r, nil
}

// work is what one worker does until the run is over.
type work func(ctx context.Context) error

// prepare makes everything ready that is not to be measured: batches and connections. hangUp closes the latter.
func (p *Produce) prepare(ctx context.Context, m *meter, into *recorder, stamped bool) (all []work, hangUp func(), err error) {
	if p.Client {
		return p.prepareClients(ctx, m, into, stamped)
	}
	shares, err := shares(ctx, p.Addr, p.Topic, p.Connections)
	if err != nil {
		return nil, nil, err
	}
	var producers []*producer
	if p.Idempotent {
		if producers, err = newProducers(ctx, p.Addr, shares); err != nil {
			return nil, nil, err
		}
	}
	templates := make([][]*template, len(shares))
	for i := range templates {
		if i > 0 && !stamped { // stamps need bodies of one's own
			templates[i] = templates[0]
		} else if templates[i], err = p.templates(uint64(i+1), stamped); err != nil {
			return nil, nil, err
		}
	}
	conns, hangUp, err := dialAll(ctx, shares)
	if err != nil {
		return nil, nil, err
	}
	requests := p.Rate / float64(templates[0][0].records) // a second
	for i, s := range shares {
		var by *producer
		if p.Idempotent {
			by = producers[i]
		}
		w := m.worker(into)
		all = append(all, func(ctx context.Context) error {
			return newSender(conns[i], w, p, templates[i], s.partitions, by, newSchedule(m.started(), requests, i, len(shares))).run(ctx)
		})
	}
	return all, hangUp, nil
}

// dialAll connects all shares, and gives a function that closes the connections again.
func dialAll(ctx context.Context, shares []share) ([]*conn, func(), error) {
	conns := make([]*conn, len(shares))
	hangUp := func() {
		for _, c := range conns {
			if c != nil {
				c.close()
			}
		}
	}
	var group errgroup.Group // not its context: connections outlive it
	group.SetLimit(32)
	for i, s := range shares {
		group.Go(func() (err error) {
			conns[i], err = dial(ctx, s.addr)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		hangUp()
		return nil, nil, err
	}
	return conns, hangUp, nil
}

// newProducers asks the cluster for a producer id for each share.
func newProducers(ctx context.Context, addr string, shares []share) ([]*producer, error) {
	client, err := newClient(addr)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := make([]*producer, len(shares))
	for i, s := range shares {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.ProducerID, r.ProducerEpoch = -1, -1
		answer, err := r.RequestWith(ctx, client)
		if err == nil {
			err = kerr.ErrorForCode(answer.ErrorCode)
		}
		if err != nil {
			return nil, fmt.Errorf("ask for a producer id: %w", err)
		}
		all[i] = &producer{id: answer.ProducerID, epoch: answer.ProducerEpoch, sequences: make([]int32, len(s.partitions))}
	}
	return all, nil
}
