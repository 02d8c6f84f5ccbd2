package compare

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pacer is an idempotent producer, acks=all, linger 0, that sends records of 1 KB at a fixed rate to the first partitions of a
// topic, in turn.
type pacer struct {
	addrs      []string
	topic      string
	partitions int
	rate       int // a second
}

// ack is a record that was acknowledged.
type ack struct {
	partition int32
	intended  time.Time // when it was to be sent, whatever held the producer up
	at        time.Time
}

// run sends for so long, or until ctx ends, and waits for all acknowledgements, which it returns in the order in which they came.
// That a record isn't taken in a minute is an error, that ctx ends is none.
func (p *pacer) run(ctx context.Context, lasts time.Duration) ([]ack, error) {
	const again = 20 * time.Millisecond // tries often enough that what is measured isn't the client's patience
	client, err := kgo.NewClient(kgo.SeedBrokers(p.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordDeliveryTimeout(time.Minute), kgo.MetadataMinAge(again), kgo.RetryBackoffFn(func(int) time.Duration { return again }))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	value := make([]byte, 1000)
	var acks []ack // of the promises, of which one runs at a time, until Flush has returned
	var failed error
	begin := time.Now()
	for i := 0; ; i++ {
		since := time.Duration(i) * time.Second / time.Duration(p.rate)
		intended := begin.Add(since)
		for wait := time.Until(intended); wait > 0 && ctx.Err() == nil; wait = time.Until(intended) {
			sleep(min(wait, 50*time.Millisecond))
		}
		if since > lasts || ctx.Err() != nil {
			break
		}
		r := &kgo.Record{Topic: p.topic, Partition: int32(i % p.partitions), Value: value}
		client.Produce(context.WithoutCancel(ctx), r, func(r *kgo.Record, err error) {
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			acks = append(acks, ack{r.Partition, intended, time.Now()})
		})
	}
	if err := client.Flush(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return acks, failed
}

// delay is a quantile of the times from when records were to be sent to their acknowledgement, in milliseconds, without those
// of the first moments.
func delay(acks []ack, without time.Duration, quantile float64) float64 {
	if len(acks) == 0 {
		return 0
	}
	begin := slices.MinFunc(acks, func(a, b ack) int { return a.intended.Compare(b.intended) }).intended
	var delays []time.Duration
	for _, a := range acks {
		if a.intended.Sub(begin) >= without {
			delays = append(delays, a.at.Sub(a.intended))
		}
	}
	if len(delays) == 0 {
		return 0
	}
	slices.Sort(delays)
	return delays[int(quantile*float64(len(delays)-1))].Seconds() * 1e3
}

// silence is the longest time that a partition had no acknowledgement, between its first one and its last.
func silence(acks []ack) time.Duration {
	last := map[int32]time.Time{}
	longest := time.Duration(0)
	for _, a := range acks {
		if before, ok := last[a.partition]; ok {
			longest = max(longest, a.at.Sub(before))
		}
		last[a.partition] = a.at
	}
	return longest
}

// goesOn is when each of n partitions had acknowledged something that was to be sent after a moment; zero when one never did.
func goesOn(acks []ack, after time.Time, n int) time.Time {
	seen := map[int32]bool{}
	for _, a := range acks {
		if a.intended.After(after) {
			seen[a.partition] = true
		}
		if len(seen) == n {
			return a.at
		}
	}
	return time.Time{}
}
