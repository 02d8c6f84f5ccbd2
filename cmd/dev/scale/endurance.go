package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	flow        = "flow"    // what retention deletes
	compacted   = "compact" // what is compacted
	flowing     = 4         // partitions of each
	keys        = 2000
	flowPerTick = 64 << 10 // bytes
	tick        = 20 * time.Millisecond
)

// endurance is hours of a broker's life in minutes: segments of a MiB roll many times a minute, are deleted and compacted, and what
// the broker holds is compared between the end and the beginning.
func endurance(ctx context.Context, f *field) error {
	n, err := f.start(ctx, map[string]string{"log.retention.check.interval.ms": "2000", "log.initial.task.delay.ms": "1000",
		"log.cleaner.backoff.ms": "1000", "log.flush.offset.checkpoint.interval.ms": "2000"})
	if err != nil {
		return err
	}
	defer func() { n.Kill() }()
	small := func(more map[string]string) map[string]string {
		c := map[string]string{"segment.bytes": "1048576", "file.delete.delay.ms": "500"}
		for k, v := range more {
			c[k] = v
		}
		return c
	}
	if err := n.create(ctx, flow, flowing, 1, small(map[string]string{"retention.bytes": "4194304"})); err != nil {
		return err
	}
	err = n.create(ctx, compacted, flowing, 1, small(map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}))
	if err != nil {
		return err
	}
	p, err := n.probe(ctx)
	if err != nil {
		return err
	}
	defer p.client.Close()
	w := &work{node: n, last: map[string]string{}}
	if err := w.run(ctx, p); err != nil {
		return err
	}
	if err := w.checkCompacted(ctx); err != nil {
		return err
	}
	return n.Stop()
}

// work is what a broker has to do while it is watched.
type work struct {
	node     *node
	written  atomic.Int64 // records of the topic that retention deletes
	read     atomic.Int64
	failed   atomic.Pointer[error]
	last     map[string]string // what each key of the compacted topic was given last; the compacting writer's until it has ended
	versions int
}

func (w *work) fail(err error) {
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
}

// sample is what was seen in one part of the run.
type sample struct {
	holdings
	p99   float64
	files int
	bytes int64 // of the data directory
}

// parts is into how many a run is divided. Of the first quarter nothing counts: memory and files grow to what they need.
const parts = 16

func (w *work) run(ctx context.Context, p *probe) error {
	f := w.node.f
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, load := range []func(context.Context) error{w.stream, w.compact, w.follow} {
		running.Go(func() {
			if err := load(working); working.Err() == nil {
				w.fail(err)
			}
		})
	}
	var samples []sample
	for i := range parts {
		_, p99, err := p.measure(ctx, f.Lasts/parts)
		if err != nil {
			return err
		}
		if failed := w.failed.Load(); failed != nil {
			return *failed
		}
		s := sample{p99: p99}
		if s.holdings, err = w.node.holds(ctx); err != nil {
			return err
		}
		if s.files, s.bytes, err = size(w.node.Data); err != nil {
			return err
		}
		f.say("part %2d of %d: %.1f MB RssAnon, %d descriptors, %d maps of segments, %d goroutines, %d files of %.0f MB, p99 %.1f ms", i+1, parts,
			float64(s.RSSAnon)/1e6, s.descriptors, s.segmentMaps, s.goroutines, s.files, float64(s.bytes)/1e6, p99)
		samples = append(samples, s)
	}
	stop()
	running.Wait()
	w.judge(samples)
	return nil
}

// judge compares the last quarter of the run with its second one.
func (w *work) judge(samples []sample) {
	f := w.node.f
	early, late := samples[parts/4:parts/2], samples[parts*3/4:]
	grown := func(name string, allowed float64, of func(s *sample) float64) {
		mean := func(part []sample) (sum float64) {
			for i := range part {
				sum += of(&part[i])
			}
			return sum / float64(len(part))
		}
		before, after := mean(early), mean(late)
		f.atMost(before*1.15+allowed, after, "%s at the end; %.4g in the second quarter", name, before)
	}
	grown("MB of RssAnon", 8, func(s *sample) float64 { return float64(s.RSSAnon) / 1e6 })
	grown("file descriptors", 10, func(s *sample) float64 { return float64(s.descriptors) })
	grown("memory maps", 10, func(s *sample) float64 { return float64(s.maps) })
	grown("goroutines", 5, func(s *sample) float64 { return float64(s.goroutines) })
	grown("files", 20, func(s *sample) float64 { return float64(s.files) })
	grown("MB on disk", 8, func(s *sample) float64 { return float64(s.bytes) / 1e6 })
	grown("ms p99", 10, func(s *sample) float64 { return s.p99 })
	f.atLeast(float64(w.written.Load())*0.9, float64(w.read.Load()), "records read of %d that were written", w.written.Load())
	rolled := float64(w.written.Load()) * recordSize / (1 << 20)
	f.atLeast(f.Lasts.Seconds(), rolled, "segments rolled at least, of which %d may be kept", flowing*5)
}

// stream writes at a steady rate what retention deletes.
func (w *work) stream(ctx context.Context) error {
	client, err := w.node.client(kgo.DefaultProduceTopic(flow), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	value := make([]byte, recordSize)
	for pause(ctx, tick) == nil {
		for range flowPerTick / recordSize {
			client.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				if err == nil {
					w.written.Add(1)
				} else if ctx.Err() == nil {
					w.fail(fmt.Errorf("write to %s: %w", flow, err))
				}
			})
		}
	}
	return nil
}

// compact gives the keys of the compacted topic new values.
func (w *work) compact(ctx context.Context) error {
	client, err := w.node.client(kgo.DefaultProduceTopic(compacted), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	filling := strings.Repeat("x", recordSize)
	for pause(ctx, tick) == nil {
		var records []*kgo.Record
		for range 20 {
			key := strconv.Itoa(rand.IntN(keys))
			w.versions++
			value := strconv.Itoa(w.versions)
			w.last[key] = value
			records = append(records, &kgo.Record{Key: []byte(key), Value: []byte(value + " " + filling)})
		}
		// What was begun is ended: else nobody knew what the last value is.
		if err := client.ProduceSync(context.WithoutCancel(ctx), records...).FirstErr(); err != nil {
			return fmt.Errorf("write to %s: %w", compacted, err)
		}
	}
	return nil
}

// follow reads what stream writes, in a group that commits, and sees that offsets have no gaps.
func (w *work) follow(ctx context.Context) error {
	client, err := w.node.client(kgo.ConsumeTopics(flow), kgo.ConsumerGroup("followers"), kgo.AutoCommitInterval(time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	next := map[int32]int64{}
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read %s: %w", flow, err)
		}
		var gap error
		fetches.EachRecord(func(r *kgo.Record) {
			if at, known := next[r.Partition]; known && r.Offset != at && gap == nil {
				gap = fmt.Errorf("read %s-%d: offset %d follows %d", flow, r.Partition, r.Offset, at-1)
			}
			next[r.Partition] = r.Offset + 1
			w.read.Add(1)
		})
		if gap != nil {
			return gap
		}
	}
}

// checkCompacted reads the compacted topic: each key must have the value that it was given last.
func (w *work) checkCompacted(ctx context.Context) error {
	client, err := w.node.client(kgo.ConsumeTopics(compacted), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	seen := map[string]string{}
	records := 0
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	wrong := func() (n int) {
		for key, value := range w.last {
			if seen[key] != value {
				n++
			}
		}
		return n
	}
	for wrong() > 0 && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			records++
			value, _, _ := strings.Cut(string(r.Value), " ")
			seen[string(r.Key)] = value
		})
	}
	f := w.node.f
	f.atMost(0, float64(wrong()), "keys of %d without their last value", len(w.last))
	f.atMost(float64(w.versions)/2, float64(records), "records left by compaction, of %d", w.versions)
	return nil
}

// size is how many files there are below a directory, and how large they are. What goes meanwhile isn't counted.
func size(dir string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil {
			files++
			bytes += info.Size()
		}
		return err
	})
	return files, bytes, err
}
