package main

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	offsetstest.Run(t, func(t *testing.T) offsetstest.World {
		path := filepath.Join(t.TempDir(), "odd ?#% name.db")
		return offsetstest.World{Keeps: true, Store: func() offsets.Store { return New(Options{Path: path, LockTimeout: time.Second}) }}
	})
}

func load(t *testing.T, s *Store, epoch int32) (events []offsets.Event) {
	t.Helper()
	require.NoError(t, s.Load(t.Context(), 0, epoch, func(e offsets.Event) error {
		events = append(events, e)
		return nil
	}))
	return events
}

// TestReadable reads with SQL what a broker wrote.
func TestReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offsets.db")
	s := New(Options{Path: path})
	require.NoError(t, s.Start(t.Context()))
	load(t, s, 1)
	require.NoError(t, s.Write(t.Context(), 0, 1, offsets.Batch{Entries: []offsets.Entry{
		{Key: offsets.OffsetKey("billing", "orders", 3), Offset: &offsets.Offset{Offset: 42, LeaderEpoch: -1, CommitTimestamp: 1_700_000_000_000, ExpireTimestamp: -1}}}}))
	require.NoError(t, s.Stop(t.Context()))

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var at int64
	var when string
	require.NoError(t, db.QueryRow(`SELECT offset, committed_at FROM offsets WHERE consumer_group = 'billing' AND topic = 'orders' AND partition = 3`).Scan(&at, &when))
	require.EqualValues(t, 42, at)
	require.Equal(t, "2023-11-14 22:13:20", when)
}

// TestOddNames keeps names that are no text.
func TestOddNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offsets.db")
	s := New(Options{Path: path})
	require.NoError(t, s.Start(t.Context()))
	defer func() { require.NoError(t, s.Stop(t.Context())) }()
	load(t, s, 1)
	var batch offsets.Batch
	for _, name := range []string{"", "a\x00b", "a\x00c", "\xff\xfe", "'; DROP TABLE pending; --", "ü"} {
		batch.Entries = append(batch.Entries, offsets.Entry{Key: offsets.OffsetKey(name, name, 0), Offset: &offsets.Offset{Metadata: name}})
	}
	require.NoError(t, s.Write(t.Context(), 0, 1, batch))
	var got []offsets.Entry
	for _, e := range load(t, s, 2) {
		got = append(got, e.Entry)
	}
	require.ElementsMatch(t, batch.Entries, got)
}

// TestOneOwner wants the second store refused while the first has the database.
func TestOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offsets.db")
	first, second := New(Options{Path: path}), New(Options{Path: path})
	require.NoError(t, first.Start(t.Context()))
	require.ErrorContains(t, second.Start(t.Context()), "locked")
	require.NoError(t, second.Stop(t.Context()))
	require.NoError(t, first.Stop(t.Context()))
	require.NoError(t, second.Start(t.Context()))
	require.NoError(t, second.Stop(t.Context()))
}

func TestRefusesOtherTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offsets.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec(`PRAGMA user_version = 2`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.ErrorIs(t, New(Options{Path: path}).Start(t.Context()), offsets.ErrUnsupported)
}

// TestNoRoom fails a write in the middle: all of it is gone, and the store goes on.
func TestNoRoom(t *testing.T) {
	s := New(Options{Path: filepath.Join(t.TempDir(), "offsets.db")})
	require.NoError(t, s.Start(t.Context()))
	defer func() { require.NoError(t, s.Stop(t.Context())) }()
	load(t, s, 1)
	_, err := s.db.Exec(`PRAGMA max_page_count = 8`)
	require.NoError(t, err)
	var many offsets.Batch
	for i := range int32(1000) {
		many.Entries = append(many.Entries, offsets.Entry{Key: offsets.OffsetKey("g", "t", i), Offset: &offsets.Offset{Metadata: "a note about the offset"}})
	}
	require.ErrorIs(t, s.Write(t.Context(), 0, 1, many), offsets.ErrUnavailable)
	require.NoError(t, s.Write(t.Context(), 0, 1, offsets.Batch{Entries: many.Entries[:1]}))
	require.Len(t, load(t, s, 2), 1)
}

func TestOptions(t *testing.T) {
	root, err := config.Parse("x.yaml", []byte("path: ''\nlock_timeout: -1s\n"))
	require.NoError(t, err)
	err = NewFactory().Check(root)
	require.ErrorContains(t, err, "path: must not be empty")
	require.ErrorContains(t, err, "lock_timeout: must not be negative")
	s, err := NewFactory().New(config.Empty("x"), offsets.Settings{})
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))
}

func BenchmarkWrite(b *testing.B) {
	s := New(Options{Path: filepath.Join(b.TempDir(), "offsets.db")})
	require.NoError(b, s.Start(b.Context()))
	defer func() { require.NoError(b, s.Stop(b.Context())) }()
	require.NoError(b, s.Load(b.Context(), 0, 1, func(offsets.Event) error { return nil }))
	batch := offsets.Batch{}
	for i := range int32(10) {
		batch.Entries = append(batch.Entries, offsets.Entry{Key: offsets.OffsetKey("g", "t", i), Offset: &offsets.Offset{}})
	}
	for b.Loop() {
		require.NoError(b, s.Write(b.Context(), 0, 1, batch))
	}
}
