package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

var _ election.Portable = (*coordination)(nil)

// Export reads the file, and leaves it as it is.
func (c *coordination) Export(ctx context.Context, o election.ExportOptions) (election.Export, error) {
	if err := c.unstarted(ctx); err != nil {
		return election.Export{}, fmt.Errorf("standalone: export: %w", err)
	}
	st, err := c.peek(o.Living)
	if err == nil && (st == nil || st.ClusterID == "") {
		err = fmt.Errorf("%w: %s", election.ErrEmpty, c.path)
	}
	if err != nil {
		return election.Export{}, fmt.Errorf("standalone: export: %w", err)
	}
	e := election.Export{Dump: st.Export()}
	return e, e.Dump.Validate()
}

func (c *coordination) unstarted(ctx context.Context) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.running || c.stopped {
		return fmt.Errorf("%w: it was started", election.ErrInvalid)
	}
	return ctx.Err()
}

// peek reads the state that the file leads to, without what a crash left at its end; nil when there is no file. A broker that writes it
// meanwhile is in the way unless that is allowed: what it has appended so far is read then, and at any moment that is a state.
func (c *coordination) peek(living bool) (*state.State, error) {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !living {
		if err := inUse(lockNamed(f, c.path)); err != nil {
			return nil, err
		}
	}
	st, _, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return st, nil
}

// inUse makes the file's error the contract's.
func inUse(err error) error {
	if errors.Is(err, errInUse) {
		return fmt.Errorf("%w: %w", election.ErrInUse, err)
	}
	return err
}

// Import writes a whole file and puts it in place of the one there is.
func (c *coordination) Import(ctx context.Context, d election.Dump, o election.ImportOptions) error {
	if err := c.load(ctx, &d, o); err != nil {
		return fmt.Errorf("standalone: import: %w", err)
	}
	return nil
}

func (c *coordination) load(ctx context.Context, d *election.Dump, o election.ImportOptions) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if err := c.unstarted(ctx); err != nil {
		return err
	}
	have, err := c.peek(false)
	if err == nil && have != nil {
		err = c.replaceable(have, d, o.Replace)
	}
	if err != nil || o.DryRun {
		return err
	}
	if o.Progress != nil {
		o.Progress(0, 1)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j, have, _, err := openJournal(c.path) // and the lock, so that no broker opens it meanwhile
	if err != nil {
		return inUse(err)
	}
	err = c.replaceable(have, d, o.Replace)
	if err == nil {
		err = j.rewrite(state.FromDump(d))
	}
	if err := errors.Join(err, j.close()); err != nil {
		return err
	}
	if o.Progress != nil {
		o.Progress(1, 1)
	}
	return nil
}

// replaceable says why a dump may not take the place of what is there.
func (c *coordination) replaceable(have *state.State, d *election.Dump, replace bool) error {
	if have.IsEmpty() {
		return nil
	}
	if !replace {
		return fmt.Errorf("%w: %s", election.ErrNotEmpty, c.path)
	}
	e := have.Export()
	return d.Follows(&e)
}
