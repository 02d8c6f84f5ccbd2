package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// This file reads and writes stores with which nobody takes part. The caller has their directories locked (LockDir).

// Stored is what a store holds.
type Stored struct {
	// Machine is the state that all of the store leads to, what a majority doesn't have included.
	Machine *machine.Machine
	// Servers are raft's configuration, the last that is there.
	Servers []Server
	// Index and Term are those of the last entry.
	Index, Term uint64
}

// Beyond says whether a store has more than another one: in an election, the other's server would vote for this one.
func (s *Stored) Beyond(o *Stored) bool {
	return s.Term > o.Term || s.Term == o.Term && s.Index > o.Index
}

// ReadStore reads a store. It returns nil where there is none, and for one that never was part of a cluster. ErrCorrupt when it is damaged.
func ReadStore(dir string, log *slog.Logger) (stored *Stored, err error) {
	if _, err := os.Stat(filepath.Join(dir, "wal")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s, err := openStore(dir, 0, NewLogger(log, "raft: "))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	has, err := s.check(dir)
	if err != nil || !has {
		return nil, err
	}
	if stored, err = s.read(); err != nil {
		return nil, damaged(dir, err)
	}
	return stored, nil
}

func (s *store) read() (*Stored, error) {
	at := &Stored{Machine: machine.New()}
	metas, err := s.snapshots.List()
	if err != nil {
		return nil, err
	}
	if len(metas) > 0 {
		meta, r, err := s.snapshots.Open(metas[0].ID)
		if err != nil {
			return nil, fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, metas[0].ID, err)
		}
		at.Machine, _, err = machine.ReadSnapshot(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, meta.ID, err)
		}
		at.Index, at.Term, at.Servers = meta.Index, meta.Term, serversOf(meta.Configuration)
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return nil, err
	}
	for i := at.Index + 1; i <= last; i++ {
		var l raft.Log
		if err := s.log.GetLog(i, &l); err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", ErrCorrupt, i, err)
		}
		switch l.Type {
		case raft.LogCommand:
			c, err := machine.DecodeCommand(l.Data)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w; use the version that wrote it", i, err)
			}
			at.Machine.Apply(i, c)
		case raft.LogConfiguration:
			at.Servers = serversOf(raft.DecodeConfiguration(l.Data))
		}
		at.Index, at.Term = i, l.Term
	}
	return at, nil
}

func serversOf(c raft.Configuration) (all []Server) {
	for _, s := range c.Servers {
		all = append(all, Server{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return all
}

// configurationOf is what raft makes of servers.
func configurationOf(servers []Server) (c raft.Configuration) {
	for _, s := range servers {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address)})
	}
	return c
}

// WriteStore makes a store that holds nothing but a snapshot. What was there is removed first; a crash leaves neither.
func WriteStore(dir string, stored *Stored, log *slog.Logger) (err error) {
	if err := RemoveStore(dir); err != nil {
		return err
	}
	s, err := openStore(dir, 0, NewLogger(log, "raft: "))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.log.SetUint64([]byte("CurrentTerm"), stored.Term); err != nil { // raft's key
		return err
	}
	_, nowhere := raft.NewInmemTransport("") // which the store asks how to write addresses in a format of the past
	sink, err := s.snapshots.Create(raft.SnapshotVersionMax, stored.Index, stored.Term, configurationOf(stored.Servers), stored.Index, nowhere)
	if err != nil {
		return err
	}
	return snapshot{stored.Machine.Snapshot(stored.Index)}.Persist(sink)
}

// RemoveStore removes a store from its directory.
func RemoveStore(dir string) error {
	return errors.Join(os.RemoveAll(filepath.Join(dir, "wal")), os.RemoveAll(filepath.Join(dir, "snapshots")))
}
