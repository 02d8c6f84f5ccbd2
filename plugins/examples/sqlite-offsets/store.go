package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are what a YAML file may say about this store.
type Options struct {
	Path        string        `yaml:"path" doc:"the database's file; it is created when it is missing"`
	LockTimeout time.Duration `yaml:"lock_timeout" doc:"how long to wait at the start for another process to let go of the database"`
}

// Validate checks what the types can't.
func (o Options) Validate() error {
	var errs []error
	if o.Path == "" {
		errs = append(errs, config.At("path", errors.New("must not be empty")))
	}
	if o.LockTimeout < 0 {
		errs = append(errs, config.At("lock_timeout", errors.New("must not be negative")))
	}
	return errors.Join(errs...)
}

// NewFactory says how the store is called, what its options are, and how it is made.
func NewFactory() offsets.Factory {
	return plugin.NewFactory("sqlite", "in an SQLite database, in tables that people can read",
		func() Options { return Options{Path: "offsets.db", LockTimeout: 3 * time.Second} },
		func(o Options, _ offsets.Settings) (offsets.Store, error) { return New(o), nil })
}

// Store is an [offsets.Store] with one shard. What Write has stored is on the disk: each batch is a transaction, and SQLite
// syncs its log at the end of each.
type Store struct {
	options Options
	owners  offsets.Owners

	mu sync.Mutex
	db *sql.DB // nil while the store isn't started; it has one connection, so what uses it takes turns
}

var _ offsets.Store = (*Store)(nil)

// New makes the store of checked options.
func New(o Options) *Store {
	s := &Store{options: o}
	s.owners.Close()
	return s
}

// Start opens the database, or makes it. It is then locked: no other process, and no other broker, can use it.
func (s *Store) Start(ctx context.Context) error {
	query := url.Values{"_txlock": {"immediate"}}
	for _, pragma := range []string{
		fmt.Sprintf("busy_timeout(%d)", s.options.LockTimeout.Milliseconds()),
		"locking_mode(exclusive)", "journal_mode(wal)", "synchronous(full)",
	} {
		query.Add("_pragma", pragma)
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: s.options.Path}).EscapedPath(), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	db.SetMaxOpenConns(1)
	db.SetConnMaxIdleTime(0) // the connection is the lock
	if err := migrate(ctx, db); err != nil {
		return errors.Join(fmt.Errorf("sqlite: %s: %w", s.options.Path, err), db.Close())
	}
	s.mu.Lock()
	s.db = db
	s.mu.Unlock()
	s.owners.Open()
	return nil
}

// Stop lets go of the database.
func (s *Store) Stop(context.Context) error {
	s.owners.Close()
	s.mu.Lock()
	db := s.db
	s.db = nil
	s.mu.Unlock()
	if db == nil {
		return nil
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

func (s *Store) open() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil, fmt.Errorf("sqlite: %w", offsets.ErrClosed)
	}
	return s.db, nil
}

// Topic is "": the shard is no partition of a topic.
func (*Store) Topic() string { return "" }

// Prepare has nothing to do: Start made the tables.
func (*Store) Prepare(context.Context) error { return nil }

// Shard is 0: there is one shard.
func (*Store) Shard(string) (int32, error) { return 0, nil }

// Load implements the contract. Writes wait while it reads.
func (s *Store) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if shard != 0 {
		return fmt.Errorf("sqlite: %w: there is no shard %d", offsets.ErrNotOwner, shard)
	}
	db, err := s.open()
	if err != nil {
		return err
	}
	// From here on no write of an older epoch begins; the read below waits for one that has begun.
	if err := s.owners.Begin(shard, epoch); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if err = read(ctx, db, visit); err != nil {
		err = fmt.Errorf("sqlite: load: %w", err)
	}
	return s.owners.Finish(shard, epoch, err)
}

// Unload implements the contract.
func (s *Store) Unload(shard, epoch int32) { s.owners.Drop(shard, epoch) }

// Write implements the contract: one transaction for each batch.
func (s *Store) Write(ctx context.Context, shard, epoch int32, b offsets.Batch) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	rows, err := encode(b)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(ctx, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	if err := s.owners.Check(shard, epoch); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if err := store(ctx, tx, b, rows); err != nil {
		return s.failed(ctx, err)
	}
	if err := tx.Commit(); err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// failed gives the database's error the meaning that it has for the caller: the full disk, the lock or the fault may be gone
// when it tries again.
func (s *Store) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("sqlite: %w: %w", ctx.Err(), err)
	}
	if _, closed := s.open(); closed != nil {
		return closed
	}
	return fmt.Errorf("sqlite: %w: %w", offsets.ErrUnavailable, err)
}
