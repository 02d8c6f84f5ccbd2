package logtest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// RunCompaction compares random histories of compacted logs over a started storage with a map: whatever was compacted, cut
// off, restarted or crashed in between, a reader finds the last value of each key, under its offset, and what producers need
// is still known. The seed of a failure is printed.
func RunCompaction(t *testing.T, st storage.Storage) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "log")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &keyed{t: rt, st: st, dir: dir, now: 1_700_000_000_000, last: map[string]value{}, sequence: map[int64]int32{}, open: map[int64]txn{}}
		m.cfg = log.DefaultConfig()
		m.cfg.Compact, m.cfg.Delete = true, false
		m.cfg.SegmentBytes = rapid.Int64Range(250, 2000).Draw(rt, "segment.bytes")
		m.cfg.IndexIntervalBytes = rapid.Int32Range(1, 300).Draw(rt, "index.interval.bytes")
		m.cfg.IndexSizeMaxBytes = rapid.Int32Range(40, 10_000).Draw(rt, "segment.index.bytes")
		m.cfg.DeleteRetentionMs = rapid.Int64Range(0, 50).Draw(rt, "delete.retention.ms")
		m.reopen(log.Options{})
		defer func() { _ = m.log.Close(context.Background()) }()
		rt.Repeat(map[string]func(*rapid.T){
			"put":       func(t *rapid.T) { m.put(t, 0, false) },
			"put again": func(t *rapid.T) { m.put(t, 0, false) },
			"producer":  func(t *rapid.T) { m.put(t, rapid.Int64Range(1, 3).Draw(t, "producer"), false) },
			"txn":       func(t *rapid.T) { m.put(t, rapid.Int64Range(11, 13).Draw(t, "producer"), true) },
			"end txn":   m.endTxn,
			"compact":   m.compact,
			"reopen":    m.closeAndOpen,
			"crash":     m.crash,
			"":          m.check,
		})
	})
}

// value is the last one of a key: a tombstone when it is nil.
type value struct {
	offset int64
	value  []byte
}

type txn struct {
	first  int64
	values map[string]value
}

type keyed struct {
	t   *rapid.T
	st  storage.Storage
	dir string
	cfg log.Config
	log *log.Log
	now int64

	last     map[string]value
	sequence map[int64]int32 // next of each producer
	open     map[int64]txn
}

func (m *keyed) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *keyed) reopen(o log.Options) {
	codecs, err := compression.NewSet()
	m.must(err)
	o.Dir, o.Topic, o.Storage, o.Config, o.Codecs, o.Logger = m.dir, "t", m.st, m.cfg, codecs, slog.New(slog.DiscardHandler)
	o.Now = func() time.Time { return time.UnixMilli(m.now) }
	m.log, err = log.Open(context.Background(), o)
	m.must(err)
}

// put appends a batch of one producer, 0 for none.
func (m *keyed) put(t *rapid.T, id int64, transactional bool) {
	m.now += rapid.Int64Range(0, 10).Draw(t, "ms")
	o := record.Options{Transactional: transactional}
	if id > 0 {
		o.Producer = &record.Producer{ID: id, Sequence: m.sequence[id]}
	}
	b := record.NewBuilder(o)
	base := m.log.EndOffset()
	put := map[string]value{}
	n := rapid.IntRange(1, 4).Draw(t, "records")
	for i := range n {
		key := fmt.Sprint("k", rapid.IntRange(0, 6).Draw(t, "key"))
		r := record.Record{Offset: int64(i), Timestamp: m.now, Key: []byte(key)}
		if rapid.IntRange(0, 3).Draw(t, "tombstone") > 0 {
			r.Value = fmt.Appendf(nil, "%d at %d", i, base)
		}
		m.must(b.Append(r))
		put[key] = value{base + int64(i), r.Value}
	}
	bytes, err := b.Build(nil, nil)
	m.must(err)
	info, err := m.log.AppendLeader(log.LeaderAppend{Batches: bytes})
	m.must(err)
	if info.Duplicate || info.BaseOffset != base {
		t.Fatalf("appended at %d, duplicate %v; want %d", info.BaseOffset, info.Duplicate, base)
	}
	m.log.SetHighWatermark(math.MaxInt64)
	if id > 0 {
		m.sequence[id] += int32(n)
	}
	if !transactional {
		maps.Copy(m.last, put)
		return
	}
	if _, ok := m.open[id]; !ok {
		m.open[id] = txn{base, map[string]value{}}
	}
	maps.Copy(m.open[id].values, put)
}

func (m *keyed) endTxn(t *rapid.T) {
	id := rapid.Int64Range(11, 13).Draw(t, "producer")
	running, ok := m.open[id]
	if !ok {
		return
	}
	commit := rapid.Bool().Draw(t, "commit")
	b := record.NewBuilder(record.Options{Producer: &record.Producer{ID: id, Sequence: record.NoSequence}, Transactional: true, Control: true})
	m.must(b.Append(record.EndTxnMarker{Commit: commit}.Record(0, m.now)))
	bytes, err := b.Build(nil, nil)
	m.must(err)
	_, err = m.log.AppendLeader(log.LeaderAppend{Batches: bytes, Origin: record.FromCoordinator})
	m.must(err)
	m.log.SetHighWatermark(math.MaxInt64)
	delete(m.open, id)
	if commit {
		for key, v := range running.values {
			if old, ok := m.last[key]; !ok || v.offset > old.offset {
				m.last[key] = v
			}
		}
	}
}

func (m *keyed) compact(t *rapid.T) {
	m.now += rapid.Int64Range(0, 100).Draw(t, "ms")
	before := m.log.CleanedTo()
	res, err := m.log.Compact(context.Background(), log.CompactOptions{
		Now: time.UnixMilli(m.now), Memory: rapid.Int64Range(0, 500).Draw(t, "memory"), Buffer: rapid.IntRange(0, 500).Draw(t, "buffer")})
	m.must(err)
	if res.To < before || m.log.CleanedTo() != res.To || res.To > m.log.LastStableOffset() {
		t.Fatalf("compacted from %d to %d, the last stable offset is %d", before, res.To, m.log.LastStableOffset())
	}
}

func (m *keyed) state() log.Options {
	return log.Options{RecoveryPoint: m.log.RecoveryPoint(), HighWatermark: m.log.HighWatermark(), CleanedTo: m.log.CleanedTo()}
}

func (m *keyed) closeAndOpen(*rapid.T) {
	o := m.state()
	o.CleanShutdown = true
	m.must(m.log.Close(context.Background()))
	m.reopen(o)
}

// crash opens a copy of the directory.
func (m *keyed) crash(t *rapid.T) {
	o := m.state()
	if rapid.Bool().Draw(t, "without recovery point") {
		o.RecoveryPoint = 0
	}
	to := m.dir + "x"
	m.must(os.CopyFS(to, os.DirFS(m.dir)))
	m.must(m.log.Close(context.Background()))
	m.must(os.RemoveAll(m.dir))
	m.must(os.Rename(to, m.dir))
	m.reopen(o)
}

func (m *keyed) check(t *rapid.T) {
	stable := m.log.EndOffset()
	for _, x := range m.open {
		stable = min(stable, x.first)
	}
	if m.log.LastStableOffset() != stable {
		t.Fatalf("last stable offset %d, want %d", m.log.LastStableOffset(), stable)
	}
	for _, p := range m.log.Producers() {
		if p.LastSequence != m.sequence[p.ProducerID]-1 {
			t.Fatalf("last sequence of producer %d is %d, want %d", p.ProducerID, p.LastSequence, m.sequence[p.ProducerID]-1)
		}
	}
	if len(m.log.Producers()) != len(m.sequence) {
		t.Fatalf("%d producers, want %d", len(m.log.Producers()), len(m.sequence))
	}
	got := m.read(t, stable)
	for key, want := range m.last {
		if want.offset >= stable {
			continue // what lies below it needs no look
		}
		if have, ok := got[key]; ok != (want.value != nil) || ok && (have.offset != want.offset || string(have.value) != string(want.value)) {
			t.Fatalf("last of %s is %q at %d (%v), want %q at %d", key, have.value, have.offset, ok, want.value, want.offset)
		}
	}
	for key := range got {
		if _, ok := m.last[key]; !ok {
			t.Fatalf("%s was never committed", key)
		}
	}
}

// read is a consumer of committed records that keeps the last value of each key.
func (m *keyed) read(t *rapid.T, upTo int64) map[string]value {
	out := map[string]value{}
	for at := m.log.StartOffset(); at < upTo; {
		res, err := m.log.Read(log.ReadRequest{Offset: at, UpTo: upTo, MaxBytes: 300, MinOneBatch: true, Aborted: true})
		m.must(err)
		if res.View == nil {
			break
		}
		b, err := res.View.Bytes(nil)
		res.View.Release()
		m.must(err)
		aborted, todo := map[int64]bool{}, res.Aborted
		slices.SortFunc(todo, func(a, b log.AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
		for x, err := range record.All(b) {
			m.must(err)
			m.must(record.CheckCRC(x))
			h := x.Header()
			if h.LastOffset() < at {
				t.Fatalf("batch up to %d where %d is next", h.LastOffset(), at)
			}
			at = h.LastOffset() + 1
			for len(todo) > 0 && todo[0].FirstOffset <= h.LastOffset() {
				aborted[todo[0].ProducerID] = true
				todo = todo[1:]
			}
			if h.Attributes.Control() {
				delete(aborted, h.ProducerID)
				continue
			}
			if h.Attributes.Transactional() && aborted[h.ProducerID] {
				continue
			}
			for r, err := range x.Each(nil, math.MaxInt) {
				m.must(err)
				if delete(out, string(r.Key)); r.Value != nil {
					out[string(r.Key)] = value{r.Offset, r.Value}
				}
			}
		}
	}
	return out
}
