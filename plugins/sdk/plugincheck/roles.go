package plugincheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/compression/compressiontest"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/remote"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// component is a plug-in under a host that starts it again.
type component interface {
	plugin.Component
	Describe() (name, version string, pid int)
}

// usage is a started plug-in and one call that works.
type usage struct {
	plugin component
	call   func() error
	stop   func() error
	cost   func() []measured
}

// measured is a call to measure.
type measured struct {
	what    string
	call    func() error
	within  time.Duration
	records int
	// perRecord is what one record should stay below, when there are several.
	perRecord time.Duration
}

// records makes a batch of n records of 100 bytes.
func records(n int) *partitioner.Batch {
	b := &partitioner.Batch{Topic: "orders", Partitions: 12}
	for i := range n {
		b.Records = append(b.Records, partitioner.Record{Key: fmt.Appendf(nil, "customer-%06d", i), Value: make([]byte, 85)})
	}
	return b
}

// used starts the plug-in in its role.
func (c *checker) used(ctx context.Context, log *slog.Logger) (*usage, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	u := &usage{}
	switch c.report.Role {
	case pluginv1.RolePartitioner:
		usePartitioner(ctx, u, remote.NewPartitioner(o, log, nil))
	case pluginv1.RoleCompression:
		id, _, err := c.codecID(ctx)
		if err != nil {
			return nil, err
		}
		useCodec(u, remote.NewCodec(id, o, log, nil))
	case pluginv1.RoleOffsets:
		s := remote.NewStore(o, log)
		useStore(ctx, u, s)
	default:
		return nil, fmt.Errorf("there is no role %q", c.report.Role)
	}
	u.stop = func() error { return u.plugin.Stop(context.WithoutCancel(ctx)) }
	if err := u.plugin.Start(ctx); err != nil {
		return nil, err
	}
	if s, ok := u.plugin.(*remote.Store); ok {
		if err := s.Load(ctx, 0, 1, func(offsets.Event) error { return nil }); err != nil {
			return nil, errors.Join(err, u.stop())
		}
	}
	return u, nil
}

// user is used, for who needs no more than calls.
func (c *checker) user(ctx context.Context, log *slog.Logger) (call, stop func() error, err error) {
	u, err := c.used(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	return u.call, u.stop, nil
}

func usePartitioner(ctx context.Context, u *usage, p *remote.Partitioner) {
	u.plugin = p
	var dst []int32
	ask := func(b *partitioner.Batch) func() error {
		return func() (err error) {
			dst, err = p.Partition(ctx, dst[:0], b)
			return err
		}
	}
	u.call = ask(records(10))
	u.cost = func() []measured {
		return []measured{
			{what: "a call with 1 record", call: ask(records(1)), within: 300 * time.Microsecond, records: 1},
			{what: "a call with 500 records of 100 bytes", call: ask(records(500)), within: 300 * time.Microsecond, records: 500, perRecord: time.Microsecond},
		}
	}
}

func useCodec(u *usage, c *remote.Codec) {
	u.plugin = c
	block := bytes.Repeat([]byte("Barnabas carries messages. "), 2500)
	var out []byte
	u.call = func() error {
		packed, err := c.Compress(nil, block)
		if err != nil {
			return err
		}
		out, err = c.Decompress(out[:0], packed, len(block))
		if err == nil && !bytes.Equal(out, block) {
			err = errors.New("what comes out isn't what was put in")
		}
		return err
	}
	u.cost = func() []measured { return []measured{{what: "67 kB of text there and back", call: u.call}} }
}

func useStore(ctx context.Context, u *usage, s *remote.Store) {
	u.plugin = s
	at := int64(0)
	u.call = func() error {
		at++
		return s.Write(ctx, 0, 1, offsets.Batch{Timestamp: at, Entries: []offsets.Entry{{Key: offsets.OffsetKey("g", "t", 0),
			Offset: &offsets.Offset{Offset: at, LeaderEpoch: offsets.None, ExpireTimestamp: offsets.None}}}})
	}
	u.cost = func() []measured { return []measured{{what: "a commit of one offset", call: u.call}} }
}

// codecID asks the plug-in which codec it is, and whether that has levels.
func (c *checker) codecID(ctx context.Context) (id record.Codec, leveled bool, err error) {
	life, err := c.launch(ctx, silent())
	if err != nil {
		return 0, false, err
	}
	defer life.End(time.Second)
	n := life.Configured().GetCodecId()
	if id = record.Codec(n); int32(id) == n && id.Valid() && id != record.None {
		return id, len(life.Configured().GetLevels()) > 0, nil
	}
	return 0, false, fmt.Errorf("it is the codec number %d: there is none", n)
}

// answers makes one call in the plug-in's role.
func (c *checker) answers(ctx context.Context) error {
	u, err := c.used(ctx, silent())
	if err != nil {
		return err
	}
	return errors.Join(u.call(), u.stop())
}

// clauses makes one step of each clause of the plug-in's role.
func (c *checker) clauses(ctx context.Context) []step {
	var list []step
	add := func(name string, check func() error) { list = append(list, step{name: "clause " + name, check: check}) }
	switch c.report.Role {
	case pluginv1.RolePartitioner:
		for _, clause := range partitionertest.Clauses() {
			add(clause.Name, func() error {
				return recorded(func(r *recorder) {
					clause.Check(r, func() partitioner.Partitioner { return remote.NewPartitioner(c.must(r), silent(), nil) })
				})
			})
		}
	case pluginv1.RoleCompression:
		for _, clause := range compressiontest.Clauses() {
			if strings.HasPrefix(clause.Name, "2 ") {
				continue // it is about the goroutines of this process, not about the plug-in
			}
			add(clause.Name, func() error { return c.codecClause(ctx, clause) })
		}
	case pluginv1.RoleOffsets:
		for _, clause := range offsetstest.Clauses() {
			add(clause.Name, func() error {
				return recorded(func(r *recorder) {
					o := c.must(r) // one folder for all stores of a world
					clause.Check(r, offsetstest.World{Keeps: !c.Forgets, Store: func() offsets.Store { return remote.NewStore(o, silent()) }})
				})
			})
		}
	}
	return list
}

func (c *checker) codecClause(ctx context.Context, clause compressiontest.Clause) error {
	id, leveled, err := c.codecID(ctx)
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	var codec compression.Codec = remote.NewCodec(id, o, silent(), nil)
	if !leveled {
		codec = struct{ compression.Codec }{codec} // as it would be in-process; the host is always ready for levels
	}
	return errors.Join(clause.Check(codec), codec.Stop(ctx))
}

// must is options within a clause.
func (c *checker) must(r *recorder) remote.Options {
	o, err := c.options()
	if err != nil {
		r.Errorf("%v", err)
		r.FailNow()
	}
	return o
}

// recorder is what a clause takes for a test.
type recorder struct {
	messages []string
	cleanups []func()
	failed   atomic.Bool
}

// Helper implements the suites' TB.
func (*recorder) Helper() {}

// Cleanup implements the suites' TB.
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// Errorf implements the suites' TB.
func (r *recorder) Errorf(format string, args ...any) {
	r.failed.Store(true)
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}

// FailNow implements the suites' TB.
func (r *recorder) FailNow() {
	r.failed.Store(true)
	runtime.Goexit()
}

// recorded runs a clause and gives what it complains of.
func recorded(run func(*recorder)) error {
	r := &recorder{}
	in := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	in(func() { run(r) })
	for _, f := range slices.Backward(r.cleanups) {
		in(f)
	}
	if !r.failed.Load() {
		return nil
	}
	return errors.New(essence(strings.Join(r.messages, "\n")))
}

// essence leaves out of an assertion's text where in the suite it stands.
func essence(text string) string {
	var kept []string
	in := ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if label, rest, ok := strings.Cut(trimmed, ":"); ok && slices.Contains([]string{"Error Trace", "Error", "Test", "Messages"}, label) {
			in, trimmed = label, strings.TrimSpace(rest)
		}
		if trimmed != "" && in != "Error Trace" && in != "Test" {
			const longest = 300
			kept = append(kept, trimmed[:min(len(trimmed), longest)])
		}
	}
	const most = 8
	return strings.Join(kept[:min(len(kept), most)], "\n")
}

// measure measures what calls cost.
func (c *checker) measure(ctx context.Context) ([]Cost, error) {
	const warm, calls = 50, 300
	u, err := c.used(ctx, silent())
	if err != nil {
		return nil, err
	}
	defer func() { _ = u.stop() }()
	var costs []Cost
	for _, m := range u.cost() {
		took := make([]time.Duration, 0, calls)
		for i := range warm + calls {
			began := time.Now()
			if err := m.call(); err != nil {
				return costs, err
			}
			if i >= warm {
				took = append(took, time.Since(began))
			}
		}
		slices.Sort(took)
		half := took[len(took)/2]
		costs = append(costs, Cost{What: m.what + ", half of them", Value: half, Within: m.within}, Cost{What: m.what + ", 99 in 100", Value: took[len(took)*99/100]})
		if m.records > 1 {
			costs = append(costs, Cost{What: "one record of these", Value: half / time.Duration(m.records), Within: m.perRecord})
		}
	}
	return costs, nil
}
