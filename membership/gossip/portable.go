package gossip

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/consensus"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/port"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

var (
	_ election.Portable = (*coordination)(nil)
	_ election.Shared   = (*coordination)(nil)
)

// unfinishedFile is in the directory of the store while an import is under way. A broker doesn't start beside it.
const unfinishedFile = "import-unfinished.json"

// unfinished is the file: how the store is to begin that an import makes. Where it takes the place of another one it goes on above it, so that
// servers that follow take the whole state from it.
type unfinished struct {
	Index   uint64             `json:"index"`
	Term    uint64             `json:"term"`
	Servers []consensus.Server `json:"servers"`
	// Backup is the directory with the store that is being recovered; empty for an import.
	Backup string `json:"backup,omitempty"`
}

// offline is one directory, locked.
type offline struct {
	h          *host
	unlock     func() error
	unfinished *unfinished
	stored     *consensus.Stored // nil when the server never was part of a cluster
	id         string            // of the server; empty when the directory has none
	cluster    member.ClusterID  // raft's, that the server belongs to
}

// enter locks the directory of a coordination that isn't started, and reads what is there. It returns nil when there is no directory.
func (c *coordination) enter(ctx context.Context) (*offline, error) {
	o, err := c.lock(ctx)
	if err != nil || o == nil {
		return nil, err
	}
	if err := o.read(); err != nil {
		return nil, errors.Join(err, o.unlock())
	}
	return o, nil
}

// lock is enter without reading.
func (c *coordination) lock(ctx context.Context) (*offline, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	started := c.started || c.stopped
	c.mu.Unlock()
	h, ok := c.server.(*host)
	if started || !ok {
		return nil, fmt.Errorf("%w: it was started", election.ErrInvalid)
	}
	lock, err := consensus.LockDir(h.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, consensus.ErrInUse):
		return nil, fmt.Errorf("%w: %w", election.ErrInUse, err)
	case err != nil:
		return nil, err
	}
	return &offline{h: h, unlock: lock.Close}, nil
}

func (o *offline) read() error {
	id, err := member.ReadIdentity(o.h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o.id, o.cluster = string(id.Server()), id.Cluster()
	if o.unfinished, err = readUnfinished(o.h.dir); err != nil || o.unfinished != nil {
		return err
	}
	o.stored, err = consensus.ReadStore(o.h.dir, o.h.log)
	return err
}

// readUnfinished reads the file of an import that is under way; nil when there is none.
func readUnfinished(dir string) (*unfinished, error) {
	path := filepath.Join(dir, unfinishedFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var u unfinished
	if err := json.Unmarshal(text, &u); err != nil || u.Index == 0 || u.Term == 0 {
		return nil, fmt.Errorf("%w: %s can't be read: set the store aside (coordination reset)", election.ErrUnfinished, path)
	}
	return &u, nil
}

// checkFinished is asked before a broker starts.
func checkFinished(dir string) error {
	u, err := readUnfinished(dir)
	if err == nil && u != nil {
		err = u.err(dir)
	}
	return err
}

// err says what was begun in a directory.
func (u *unfinished) err(dir string) error {
	if u.Backup != "" {
		return fmt.Errorf("%w: it is a recovery of %s, whose store as it was is in %s", election.ErrUnfinished, dir, u.Backup)
	}
	return fmt.Errorf("%w: %s", election.ErrUnfinished, dir)
}

// Export reads the store of this server, if it can tell what was agreed on: no other server votes.
func (c *coordination) Export(ctx context.Context, o election.ExportOptions) (election.Export, error) {
	return c.ExportAmong(ctx, nil, o)
}

// ExportAmong reads the stores of several servers, and takes the one that all of them would elect: it has all that a majority has acknowledged.
// What is in it that no majority had, somebody tried to write without hearing how it ended.
func (c *coordination) ExportAmong(ctx context.Context, others []election.Coordination, o election.ExportOptions) (e election.Export, err error) {
	e, err = c.exportAmong(ctx, others)
	if errors.Is(err, election.ErrInUse) && o.Living {
		e, err = c.server.(*host).ask(ctx)
	}
	if err != nil {
		return election.Export{}, fmt.Errorf("memberlist: export: %w", err)
	}
	return e, nil
}

func (c *coordination) exportAmong(ctx context.Context, others []election.Coordination) (e election.Export, err error) {
	var best *offline
	have := map[string]bool{}
	for _, other := range append([]election.Coordination{c}, others...) {
		member, ok := other.(interface {
			enter(context.Context) (*offline, error)
		})
		if !ok {
			return e, fmt.Errorf("%w: another kind of coordination", election.ErrInvalid)
		}
		at, err := member.enter(ctx)
		if err != nil {
			return e, err
		}
		if at == nil {
			continue
		}
		defer at.unlock() //nolint:errcheck // of a directory that was only read
		if at.unfinished != nil {
			return e, at.unfinished.err(at.h.dir)
		}
		if at.stored == nil {
			continue
		}
		have[at.id] = true
		if best == nil || at.stored.Beyond(best.stored) {
			best = at
		}
	}
	if best == nil || best.stored.Machine.Kept().ClusterID == "" {
		return e, fmt.Errorf("%w: %s", election.ErrEmpty, c.server.(*host).dir)
	}
	if err := majority(best.stored.Servers, have); err != nil {
		return e, err
	}
	e.Dump = best.stored.Machine.Kept().Export()
	return e, e.Dump.Validate()
}

// methodExport is answered by each server that runs.
const methodExport = "export"

// handlers are the methods that this server answers besides raft's.
func (h *host) handlers() map[string]rpc.Handler {
	all := maps.Clone(h.company.handlers())
	if all == nil {
		all = map[string]rpc.Handler{}
	}
	all[methodExport] = func(ctx context.Context, _ []byte) (any, error) {
		node := h.exporting.Load()
		if node == nil {
			return nil, fmt.Errorf("%w: the server is starting", election.ErrUnavailable)
		}
		if err := node.Sync(ctx); err != nil {
			return nil, err
		}
		var d election.Dump
		node.View(func(m *machine.Machine) { d = m.Kept().Export() })
		var text bytes.Buffer
		err := election.WriteDump(&text, election.DumpInfo{}, d)
		return text.Bytes(), err
	}
	return all
}

// addressFile is in the directory of the store: where the server that has it open listens, or the last that had, for commands on the same machine.
const addressFile = "address"

// noteAddress writes the file, which needn't outlive a crash.
func (h *host) noteAddress() error {
	path := filepath.Join(h.dir, addressFile)
	if err := os.WriteFile(path+".tmp", []byte(h.address+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// ask has the server export that runs with this directory.
func (h *host) ask(ctx context.Context) (e election.Export, err error) {
	identity, err := member.ReadIdentity(h.dir)
	if err != nil {
		return e, err
	}
	address, err := os.ReadFile(filepath.Join(h.dir, addressFile))
	if err != nil {
		return e, err
	}
	dialer := port.Dialer{Name: h.cluster, Keys: h.keys, TLS: h.clientTLS, Identity: identity}
	client := rpc.NewClient(func(ctx context.Context, server, address string) (net.Conn, error) {
		return dialer.Dial(ctx, port.Requests, member.ServerID(server), address)
	})
	defer client.Close()
	var text []byte
	if err := client.Call(ctx, string(identity.Server()), strings.TrimSpace(string(address)), methodExport, struct{}{}, &text); err != nil {
		return e, fmt.Errorf("%w: %w", election.ErrUnavailable, err)
	}
	_, e.Dump, err = election.ReadDump(bytes.NewReader(text))
	return e, err
}

// majority sees that these servers are a majority of those that vote.
func majority(servers []consensus.Server, have map[string]bool) error {
	var missing []string
	voters := 0
	for _, s := range servers {
		if s.Voter {
			if voters++; !have[s.ID] {
				missing = append(missing, fmt.Sprintf("%s at %s", s.ID, s.Address))
			}
		}
	}
	if 2*(voters-len(missing)) > voters {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("%w: %d servers vote, and what they agreed on shows only in the stores of a majority of them; there is none of %s",
		election.ErrUnavailable, voters, strings.Join(missing, ", "))
}

// otherVoters names the servers that vote besides one.
func otherVoters(servers []consensus.Server, but string) (names []string) {
	for _, s := range servers {
		if s.Voter && s.ID != but {
			names = append(names, fmt.Sprintf("%s at %s", s.ID, s.Address))
		}
	}
	slices.Sort(names)
	return names
}

// Import makes a store with a snapshot, of a cluster in which this server alone votes.
func (c *coordination) Import(ctx context.Context, d election.Dump, o election.ImportOptions) error {
	if err := c.load(ctx, &d, o); err != nil {
		return fmt.Errorf("memberlist: import: %w", err)
	}
	return nil
}

func (c *coordination) load(ctx context.Context, d *election.Dump, o election.ImportOptions) (err error) {
	if err := d.Validate(); err != nil {
		return err
	}
	at, err := c.enter(ctx)
	if err != nil {
		return err
	}
	plan := &unfinished{Index: 1, Term: 1}
	if at != nil {
		defer func() { err = errors.Join(err, at.unlock()) }()
		if plan, err = at.replacement(d, o.Replace); err != nil {
			return err
		}
	}
	if o.DryRun {
		return nil
	}
	if o.Progress != nil {
		o.Progress(0, 1)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if at == nil {
		h := c.server.(*host)
		if err := os.MkdirAll(h.dir, 0o755); err != nil {
			return err
		}
		lock, err := consensus.LockDir(h.dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Close()) }()
		at = &offline{h: h}
	}
	if err := at.write(ctx, plan, d); err != nil {
		return err
	}
	if o.Progress != nil {
		o.Progress(1, 1)
	}
	return nil
}

// replacement says how a store is to begin that a dump is put into, or why that must not be.
func (o *offline) replacement(d *election.Dump, replace bool) (*unfinished, error) {
	switch {
	case o.unfinished != nil && o.unfinished.Backup != "":
		return nil, o.unfinished.err(o.h.dir)
	case o.unfinished != nil:
		return o.unfinished, nil
	case o.stored == nil:
		return &unfinished{Index: 1, Term: 1}, nil
	case !replace:
		return nil, fmt.Errorf("%w: %s", election.ErrNotEmpty, o.h.dir)
	}
	if others := otherVoters(o.stored.Servers, o.id); len(others) > 0 {
		return nil, fmt.Errorf("%w: in the cluster that is there %s vote, too, and would go on with it: set the stores of all its servers aside (coordination reset), that in %s too, and import into none",
			election.ErrConflict, strings.Join(others, ", "), o.h.dir)
	}
	have := o.stored.Machine.Kept().Export()
	if have.ClusterID != "" {
		if err := d.Follows(&have); err != nil {
			return nil, err
		}
	}
	return &unfinished{Index: o.stored.Index + 1, Term: o.stored.Term + 1, Servers: o.stored.Servers}, nil
}

// write makes the store. From the first change to the last there is a file that keeps brokers from starting.
func (o *offline) write(ctx context.Context, plan *unfinished, d *election.Dump) error {
	identity, err := member.OpenIdentity(o.h.dir, o.h.name)
	if err != nil {
		return err
	}
	if len(plan.Servers) == 0 {
		address, err := reachable(ctx, o.h.advertise)
		if err != nil {
			return err
		}
		plan.Servers = []consensus.Server{{ID: string(identity.Server()), Address: address, Voter: true}}
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	path := filepath.Join(o.h.dir, unfinishedFile)
	if err := errors.Join(os.WriteFile(path, text, 0o644), durable(path), durable(o.h.dir)); err != nil {
		return err
	}
	if plan.Backup != "" || identity.Cluster() == "" {
		if _, err := identity.Refound(); err != nil {
			return err
		}
	}
	stored := &consensus.Stored{Machine: machine.Of(state.FromDump(d)), Servers: plan.Servers, Index: plan.Index, Term: plan.Term}
	if err := consensus.WriteStore(o.h.dir, stored, o.h.log); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return durable(o.h.dir)
}

// durable makes a file or directory durable.
func durable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
