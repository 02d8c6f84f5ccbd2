package scale

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// probed is the topic that latencies are measured on.
const probed = "probed"

// probe is a client that writes small records at a steady rate and notes how long each took from the moment when it was due, so
// that no stall hides.
type probe struct {
	client *kgo.Client

	mu    sync.Mutex
	took  []time.Duration
	fails int
}

// probe makes the topic and the client; its owner closes the client.
func (n *node) probe(ctx context.Context) (*probe, error) {
	if err := n.create(ctx, probed, 1, 1, map[string]string{"segment.bytes": "1048576", "retention.bytes": "1048576"}); err != nil {
		return nil, err
	}
	client, err := n.client(kgo.DefaultProduceTopic(probed), kgo.ProducerLinger(0))
	return &probe{client: client}, err
}

// between is the time from one record to the next.
const between = 5 * time.Millisecond

// run sends until ctx ends or the time is over, and waits for the answers.
func (p *probe) run(ctx context.Context, lasts time.Duration) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var waiting sync.WaitGroup
	for i := 0; ; i++ {
		due := begin.Add(time.Duration(i) * between)
		if pause(ctx, time.Until(due)) != nil {
			break
		}
		waiting.Add(1)
		p.client.Produce(context.WithoutCancel(ctx), &kgo.Record{Value: make([]byte, 100)}, func(_ *kgo.Record, err error) {
			defer waiting.Done()
			took := time.Since(due)
			p.mu.Lock()
			defer p.mu.Unlock()
			if err != nil {
				p.fails++
				return
			}
			p.took = append(p.took, took)
		})
	}
	waiting.Wait()
}

// delays gives the median and the 99th percentile in milliseconds of what was measured since the last call.
func (p *probe) delays() (p50, p99 float64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took, fails := p.took, p.fails
	p.took, p.fails = nil, 0
	if fails > 0 || len(took) == 0 {
		return 0, 0, fmt.Errorf("of the records that measure delays %d failed and %d went well", fails, len(took))
	}
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1e3 }
	return at(0.5), at(0.99), nil
}

// measure sends for a while and gives the delays.
func (p *probe) measure(ctx context.Context, lasts time.Duration) (p50, p99 float64, err error) {
	p.run(ctx, lasts)
	return p.delays()
}
