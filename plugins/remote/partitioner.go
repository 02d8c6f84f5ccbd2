package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// NewPartitionerFactory makes the factory of partitioners in processes of their own. Those of inProcess may take over by name.
func NewPartitionerFactory(inProcess plugin.Registry[partitioner.Settings, partitioner.Partitioner]) partitioner.Factory {
	return plugin.NewFactory("remote", "an executable that is a partitioner, in a process of its own",
		func() Options {
			o := Defaults()
			o.fallbacks = inProcess.Names()
			return o
		},
		func(o Options, s partitioner.Settings) (partitioner.Partitioner, error) {
			if o.OnFailure == Reject {
				return NewPartitioner(o, s.Logger, nil), nil
			}
			choice, err := inProcess.Default(o.OnFailure)
			if err != nil {
				return nil, err
			}
			fallback, err := choice.New(s)
			if err != nil {
				return nil, err
			}
			return NewPartitioner(o, s.Logger, fallback), nil
		})
}

// NewPartitioner makes a partitioner of an executable. fallback, which may be nil, answers when the plug-in can't; it is
// started and stopped with the partitioner.
func NewPartitioner(o Options, log *slog.Logger, fallback partitioner.Partitioner) *Partitioner {
	p := &Partitioner{host: newHost(pluginv1.RolePartitioner, o, log), fallback: fallback}
	p.lenient = fallback != nil
	return p
}

// Partitioner is a [partitioner.Partitioner].
type Partitioner struct {
	*host
	fallback partitioner.Partitioner                    // or nil
	promised atomic.Pointer[pluginv1.ConfigureResponse] // what the plug-in said at the start; nil when it could not be asked
	fallen   atomic.Bool                                // the last call was answered by the fallback
}

var (
	_ partitioner.Partitioner = (*Partitioner)(nil)
	_ partitioner.EmptyKeys   = (*Partitioner)(nil)
	_ partitioner.Bound       = (*Partitioner)(nil)
)

// Start implements the contract.
func (p *Partitioner) Start(ctx context.Context) error {
	if p.fallback != nil {
		if err := p.fallback.Start(ctx); err != nil {
			return fmt.Errorf("%s, in place of plug-in %s: %w", p.options.OnFailure, p.options.Command, err)
		}
	}
	if err := p.host.Start(ctx); err != nil {
		if p.fallback != nil {
			err = errors.Join(err, p.fallback.Stop(context.WithoutCancel(ctx)))
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promised.Store(p.first)
	return nil
}

// Stop implements the contract.
func (p *Partitioner) Stop(ctx context.Context) error {
	err := p.host.Stop(ctx)
	if p.fallback != nil {
		err = errors.Join(err, p.fallback.Stop(ctx))
	}
	return err
}

// Keyed says what the plug-in said when the broker started: false before, and when it couldn't be asked then.
func (p *Partitioner) Keyed() bool { return p.promised.Load().GetKeyed() }

// EmptyIsKey implements partitioner.EmptyKeys. It is as [Partitioner.Keyed].
func (p *Partitioner) EmptyIsKey() bool { return !p.promised.Load().GetEmptyIsNoKey() }

// Bound implements partitioner.Bound. It is as [Partitioner.Keyed].
func (p *Partitioner) Bound() bool { return p.promised.Load().GetBound() }

const (
	// chunk is how many bytes of records one message holds at most, unless a single record has more: what a gRPC server takes
	// that nobody told otherwise, with room for the rest.
	chunk = 3 << 20
	// keptAnswer is how many partitions the memory has that is kept for another answer.
	keptAnswer = 64 << 10
	// largestAnswer bounds an answer in bytes: one to as many records as chunk may have.
	largestAnswer = 8 << 20
)

var exchanges = sync.Pool{New: func() any { return &exchange{} }}

// Partition implements the contract. A batch is one call, unless it is larger than a message may be.
func (p *Partitioner) Partition(ctx context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	if b.Partitions < 1 {
		return dst, p.wrap(fmt.Errorf("%w: topic %q has no partitions", partitioner.ErrInvalid, b.Topic))
	}
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	s, err := p.use()
	if err != nil {
		return p.fall(ctx, dst, b, p.wrap(fmt.Errorf("%w: %w", partitioner.ErrUnavailable, err)))
	}
	got := dst
	for rest := b.Records; len(rest) > 0; {
		n := fitting(rest)
		if got, err = p.ask(ctx, s, got, b, rest[:n]); err != nil {
			if ended(err) {
				return dst, err
			}
			return p.fall(ctx, dst, b, p.wrap(err))
		}
		rest = rest[n:]
	}
	if p.fallback != nil && p.fallen.Load() && p.fallen.CompareAndSwap(true, false) {
		p.log.Info("the plug-in answers again")
	}
	return got, nil
}

// fitting says how many of the records fit into one message; at least one.
func fitting(records []partitioner.Record) int {
	size := 0
	for i := range records {
		size += len(records[i].Key) + len(records[i].Value) + 12
		for _, h := range records[i].Headers {
			size += len(h.Key) + len(h.Value) + 12
		}
		if size > chunk && i > 0 {
			return i
		}
	}
	return len(records)
}

// ask makes one call and checks the answer.
func (p *Partitioner) ask(ctx context.Context, s *session, dst []int32, b *partitioner.Batch, records []partitioner.Record) ([]int32, error) {
	e := exchanges.Get().(*exchange)
	defer func() {
		e.call = pluginv1.PartitionCall{}
		if cap(e.answer.Partitions) <= keptAnswer {
			exchanges.Put(e)
		}
	}()
	e.call.Batch, e.call.Records, e.answer.Most = b, records, len(records)+1 // one more is wrong enough
	_, err := call(ctx, p.host, s, 64<<10+10*len(records), s.partition(), e)
	answer := &e.answer
	switch {
	case ended(err):
		return dst, err
	case errors.Is(err, errAnswer):
		return dst, fmt.Errorf("%w: %w", partitioner.ErrInvalid, err)
	case err != nil:
		return dst, fmt.Errorf("%w: %w", partitioner.ErrUnavailable, err)
	case answer.Error != nil:
		err := answer.Error.For(pluginv1.RolePartitioner)
		if !errors.Is(err, partitioner.ErrInvalid) && !errors.Is(err, partitioner.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", partitioner.ErrUnavailable, err)
		}
		return dst, err
	case len(answer.Partitions) != len(records):
		return dst, fmt.Errorf("%w: %w: %d partitions for %d records", partitioner.ErrInvalid, errAnswer, len(answer.Partitions), len(records))
	}
	for i, at := range answer.Partitions {
		if at < 0 || at >= b.Partitions {
			return dst, fmt.Errorf("%w: %w: partition %d for record %d, topic %q has %d", partitioner.ErrInvalid, errAnswer, at, i, b.Topic, b.Partitions)
		}
	}
	return append(dst, answer.Partitions...), nil
}

// fall answers through the fallback, when there is one and why isn't the plug-in's own opinion of the batch.
func (p *Partitioner) fall(ctx context.Context, dst []int32, b *partitioner.Batch, why error) ([]int32, error) {
	opinion := errors.Is(why, partitioner.ErrInvalid) && !errors.Is(why, errAnswer)
	if p.fallback == nil || opinion || p.stoppedNow() {
		return dst, why
	}
	if p.fallen.CompareAndSwap(false, true) {
		p.log.Warn("the plug-in can't answer: the fallback does", "fallback", p.options.OnFailure, "error", why)
	}
	return p.fallback.Partition(ctx, dst, b)
}
