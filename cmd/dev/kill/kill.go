// Package kill kills a broker while idempotent producers write to it, again and again, and sees that nothing is lost.
//
// A killed process loses nothing that it gave to the operating system: so whatever was acknowledged must be there after
// kill -9, whether it was fsynced (flush.messages=1) or not. Only the death of the machine may take what wasn't.
package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/logcheck"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// Options say what to kill, and how often.
type Options struct {
	Binary  string        // barnabas
	Dir     string        // an empty folder
	Storage string        // "" is the broker's default
	Rounds  int           // how many times
	Least   time.Duration // each round lasts between Least and Most before the kill
	Most    time.Duration
	Say     func(format string, args ...any) // progress; may be nil
}

// Result is what a run did.
type Result struct {
	Kills        int
	Acknowledged int // records, before any of the kills and after the last
	Lookups      int // offsets and timestamps that were looked up
	Files        logcheck.Found
}

// The topics: one that fsyncs before it acknowledges, one that leaves it to the operating system.
const (
	synced     = "synced"
	unsynced   = "unsynced"
	partitions = 2
	producers  = 3
)

// Run kills a broker Rounds times under load and checks after each start, and once more when the producers have ended,
// that every partition has
//   - everything that was acknowledged, at the offset that was acknowledged,
//   - each producer's records in their order, none missing and none twice: the same producers go on after each start,
//   - offsets without a gap, and every offset and timestamp found where it is,
//
// and after an orderly stop that the files are whole and the indexes agree with them. The error says what doesn't hold.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	r := &run{o: o, options: target.Options{Dir: o.Dir, Storage: o.Storage, Properties: map[string]string{
		// What is checked again and again at runtime is quick here, so that kills hit it.
		"log.flush.offset.checkpoint.interval.ms": "200", "log.initial.task.delay.ms": "100",
	}}}
	err := r.all(ctx)
	if r.peer != nil {
		r.peer.Kill()
		if err != nil {
			err = fmt.Errorf("%w\nthe broker's output ends:\n%s", err, r.peer.Output())
		}
	}
	return r.result, err
}

type run struct {
	o       Options
	options target.Options
	peer    *peers.Peer
	load    *load
	result  Result
}

func (r *run) all(ctx context.Context) error {
	port, err := peers.FreePort()
	if err != nil {
		return err
	}
	r.options.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.create(ctx); err != nil {
		return err
	}
	r.load, err = startLoad(ctx, r.options.Addr)
	if err != nil {
		return err
	}
	defer r.load.close()
	for round := 1; round <= r.o.Rounds; round++ {
		select {
		case <-time.After(r.o.Least + rand.N(r.o.Most-r.o.Least)):
		case <-r.load.failed:
			return fmt.Errorf("round %d: a producer failed: %w", round, r.load.failure())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.peer.Kill()
		r.peer = nil
		r.result.Kills++
		before := r.load.acknowledged()
		if err := r.start(ctx); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := r.check(ctx, 200); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := r.load.goesOn(ctx, before); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		r.o.Say("kill %d of %d: %d records acknowledged, all there", round, r.o.Rounds, before)
	}
	return r.finish(ctx)
}

// finish ends the producers, checks everything, stops the broker and reads its files.
func (r *run) finish(ctx context.Context) error {
	if err := r.load.finish(ctx); err != nil {
		return fmt.Errorf("a producer failed: %w", err)
	}
	r.result.Acknowledged = r.load.acknowledged()
	if r.result.Acknowledged == 0 {
		return errors.New("nothing was acknowledged at all")
	}
	if err := r.check(ctx, 3000); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	err := r.peer.Stop()
	r.peer = nil
	if err != nil {
		return err
	}
	r.result.Files, err = logcheck.Directory(filepath.Join(r.o.Dir, "data"))
	return err
}

func (r *run) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(r.o.Dir, 0o755); err != nil {
		return err
	}
	r.peer, err = target.StartBarnabas(ctx, r.o.Binary, r.options)
	return err
}

func (r *run) create(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.options.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	value := func(s string) *string { return &s }
	for topic, flush := range map[string]string{synced: "1", unsynced: "9223372036854775807"} {
		configs := map[string]*string{
			"flush.messages": value(flush), "segment.bytes": value("65536"), "index.interval.bytes": value("1024"),
		}
		if _, err := admin.CreateTopic(ctx, partitions, 1, configs, topic); err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
	}
	return nil
}
