package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the plug-in's part of the YAML file.
type Options struct {
	File         string          `yaml:"file" doc:"the file that keeps what a cluster would agree on; a relative path is in the first log directory"`
	CompactAfter config.ByteSize `yaml:"compact_after" doc:"rewrite the file, without what is outdated in it, when this much was appended since the last time"`
}

// DefaultOptions are the options that hold where the YAML file says nothing.
func DefaultOptions() Options {
	return Options{File: "barnabas-coordination.jsonl", CompactAfter: 4 << 20}
}

// Validate checks the options beyond their types.
func (o Options) Validate() error {
	if o.File == "" || strings.HasSuffix(o.File, "/") {
		return config.At("file", errors.New("want the path of a file"))
	}
	if o.CompactAfter < 4096 {
		return config.At("compact_after", errors.New("want at least 4KiB"))
	}
	return nil
}

// NewFactory makes the coordination named "standalone".
func NewFactory() election.Factory {
	return plugin.NewFactory("standalone", "one broker alone; what a cluster would agree on is kept in one local file", DefaultOptions, New)
}

// New makes a coordination over the file that the options name. Nothing happens before Start.
func New(o Options, s election.Settings) (election.Coordination, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	path := o.File
	if !filepath.IsAbs(path) {
		if s.DataDir == "" {
			return nil, fmt.Errorf("standalone: no data directory, and %q is a relative path", path)
		}
		path = filepath.Join(s.DataDir, path)
	}
	log := s.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &coordination{path: path, compactAfter: int64(o.CompactAfter), log: log, seat: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

var _ election.Solitary = (*coordination)(nil)

// Solitary says that there is never another member.
func (c *coordination) Solitary() {}

// coordination implements election.Coordination, and its four interfaces with views of itself.
type coordination struct {
	path         string
	compactAfter int64
	log          *slog.Logger
	seat         chan struct{} // holds an element while there is a term
	closed       chan struct{} // closed by Stop

	mu       sync.RWMutex // guards what follows; held over appends, so that the file and the state agree
	running  bool
	stopped  bool
	journal  *journal
	state    *state.State
	term     *term
	alive    map[int32]*registration
	watches  map[*watch]struct{}
	reports  []election.Request // of failed log directories
	reported int                // how many there were
}

// Start opens the file, or makes it, and reads it.
func (c *coordination) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running || c.stopped {
		return errors.New("standalone: started a second time")
	}
	j, st, cut, err := openJournal(c.path)
	if err != nil {
		return fmt.Errorf("standalone: %w", err)
	}
	if cut > 0 {
		c.log.Warn("cut off the end of the coordination file, which was being written when the broker died", "file", c.path, "bytes", cut)
	}
	c.journal, c.state = j, st
	c.alive, c.watches = map[int32]*registration{}, map[*watch]struct{}{}
	c.running = true
	return nil
}

// Stop ends the term, the registrations and the watches, and closes the file.
func (c *coordination) Stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	close(c.closed)
	if !c.running {
		return nil
	}
	c.running = false
	c.endTerm()
	for _, r := range c.alive {
		c.endRegistration(r)
	}
	for w := range c.watches {
		w.End()
	}
	if err := c.journal.close(); err != nil {
		return fmt.Errorf("standalone: %w", err)
	}
	return nil
}

func (c *coordination) Election() election.Election     { return c }
func (c *coordination) Membership() election.Membership { return membership{c} }
func (c *coordination) Metadata() election.Metadata     { return metadata{c} }
func (c *coordination) Requests() election.Requests     { return requests{c} }

// read runs f over the state, unless ctx has ended or the coordination isn't running.
func (c *coordination) read(ctx context.Context, f func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.running {
		return election.ErrClosed
	}
	f()
	return nil
}

// write runs plan over the state and makes the operations that it returns durable, then part of the state, then runs
// done, all under the lock. Without operations nothing is written or done.
func (c *coordination) write(ctx context.Context, plan func() ([]state.Op, error), done func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return election.ErrClosed
	}
	ops, err := plan()
	if err != nil || len(ops) == 0 {
		return err
	}
	if err := c.journal.append(ops); err != nil {
		return fmt.Errorf("standalone: %w: %w", election.ErrUnavailable, err)
	}
	for i := range ops {
		if err := c.state.Apply(&ops[i]); err != nil {
			// What was planned over this state and can't be applied to it is a fault in this package. The file has it, so
			// nothing but reading the file again says what holds.
			c.journal.fail(err)
			return fmt.Errorf("standalone: %w: %w", election.ErrUnavailable, err)
		}
		for _, ch := range ops[i].Changes() {
			c.changed(ch)
		}
	}
	if done != nil {
		done()
	}
	if c.journal.appended > c.compactAfter {
		if err := c.journal.compact(c.state); err != nil {
			c.log.Warn("could not rewrite the coordination file; it grows on", "file", c.path, "error", err)
		}
	}
	return nil
}

// controllerWrite is write on behalf of a controller.
func (c *coordination) controllerWrite(ctx context.Context, epoch int32, plan func() []state.Op) error {
	return c.write(ctx, func() ([]state.Op, error) {
		if c.term == nil || c.term.epoch != epoch {
			return nil, fmt.Errorf("standalone: %w: epoch %d, the last was %d", election.ErrStaleController, epoch, c.state.ControllerEpoch)
		}
		return plan(), nil
	}, nil)
}
