// Package logtest checks a storage underneath a log: random histories of appends, reads, truncations, deletions, orderly
// stops and crashes, compared with a trivial model. A storage runs it beside the suite of its own contract
// (core/storage/storagetest), with one call.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

// Run compares random histories over a started storage with the model. The seed of a failure is printed.
func Run(t *testing.T, st storage.Storage) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "log")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{t: rt, st: st, dir: dir, now: 1_700_000_000_000}
		m.cfg = log.DefaultConfig()
		m.cfg.SegmentBytes = rapid.Int64Range(150, 3000).Draw(rt, "segment.bytes")
		m.cfg.IndexIntervalBytes = rapid.Int32Range(1, 600).Draw(rt, "index.interval.bytes")
		m.cfg.IndexSizeMaxBytes = rapid.Int32Range(40, 10_000).Draw(rt, "segment.index.bytes")
		m.cfg.RetentionMs, m.cfg.RetentionBytes = -1, -1
		m.cfg.Preallocate = rapid.Bool().Draw(rt, "preallocate")
		m.open(false)
		defer func() {
			if m.log != nil {
				_ = m.log.Close(context.Background())
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"append":          m.append,
			"append follower": m.appendFollower,
			"read":            m.read,
			"by time":         m.byTime,
			"commit":          m.commit,
			"flush":           m.flush,
			"truncate":        m.truncate,
			"truncate fully":  m.truncateFully,
			"delete records":  m.deleteRecords,
			"retention":       m.retention,
			"reopen":          m.reopen,
			"crash":           m.crash,
			"":                m.check,
		})
	})
}

// batch is what the model knows of a batch.
type batch struct {
	base, last int64
	epoch      int32
	stamps     []int64
	bytes      []byte
}

func (b batch) largest() int64 {
	ts := int64(-1)
	for _, s := range b.stamps {
		ts = max(ts, s)
	}
	return ts
}

// model is the log as one would write it with nothing but a slice.
type model struct {
	t   *rapid.T
	st  storage.Storage
	dir string
	cfg log.Config
	log *log.Log
	now int64

	batches              []batch
	start, end, hw, safe int64
	epoch                int32
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) open(clean bool) {
	l, err := log.Open(context.Background(), log.Options{
		Dir: m.dir, Topic: "t", Storage: m.st, Config: m.cfg, Logger: slog.New(slog.DiscardHandler),
		Now:           func() time.Time { return time.UnixMilli(m.now) },
		RecoveryPoint: m.safe, StartOffset: m.start, HighWatermark: m.hw, CleanShutdown: clean,
	})
	m.must(err)
	m.log = l
}

// build makes a batch of random records at an offset.
func (m *model) build(t *rapid.T, base int64) batch {
	b := batch{base: base, epoch: m.epoch}
	builder := record.NewBuilder(record.Options{BaseOffset: base, LeaderEpoch: m.epoch})
	n := rapid.IntRange(1, 4).Draw(t, "records")
	for i := range n {
		ts := m.now + rapid.Int64Range(-50, 50).Draw(t, "timestamp")
		b.stamps = append(b.stamps, ts)
		b.last = base + int64(i)
		size := rapid.IntRange(0, 60).Draw(t, "size")
		m.must(builder.Append(record.Record{Offset: b.last, Timestamp: ts, Value: bytes.Repeat([]byte{byte(b.last)}, size)}))
	}
	m.now++
	var err error
	b.bytes, err = builder.Build(nil, nil)
	m.must(err)
	return b
}

func (m *model) took(b batch) {
	m.batches = append(m.batches, b)
	m.end = b.last + 1
}

func (m *model) append(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "new epoch") == 0 {
		m.epoch++
		m.must(m.log.AssignEpoch(m.epoch))
	}
	for range rapid.IntRange(1, 8).Draw(t, "batches") {
		b := m.build(t, m.end)
		sent := append([]byte(nil), b.bytes...)
		record.SetBaseOffset(sent, 0)
		if int64(len(sent)) > m.cfg.SegmentBytes {
			if _, err := m.log.AppendLeader(log.LeaderAppend{Batches: sent, LeaderEpoch: m.epoch}); !errors.Is(err, record.ErrLargerThanSegment) {
				t.Fatalf("a batch larger than a segment: %v", err)
			}
			continue
		}
		info, err := m.log.AppendLeader(log.LeaderAppend{Batches: sent, LeaderEpoch: m.epoch})
		m.must(err)
		if info.BaseOffset != b.base || info.LastOffset != b.last || info.MaxTimestamp != b.largest() {
			t.Fatalf("%+v for offsets %d to %d", info, b.base, b.last)
		}
		m.took(b)
	}
}

func (m *model) appendFollower(t *rapid.T) {
	var all []byte
	end := m.end
	for range rapid.IntRange(1, 5).Draw(t, "batches") {
		if rapid.IntRange(0, 4).Draw(t, "gap") == 0 {
			end += rapid.Int64Range(1, 20).Draw(t, "by")
		}
		b := m.build(t, end)
		all = append(all, b.bytes...)
		m.took(b)
		end = m.end
	}
	tail := rapid.IntRange(0, 70).Draw(t, "partial tail")
	_, err := m.log.AppendFollower(append(all, make([]byte, tail)...)[:len(all)+min(tail, 11)])
	m.must(err)
}

func (m *model) read(t *rapid.T) {
	offset := rapid.Int64Range(m.start-2, m.end+2).Draw(t, "offset")
	q := log.ReadRequest{Offset: offset, MaxBytes: rapid.IntRange(0, 2000).Draw(t, "max bytes"), MinOneBatch: rapid.Bool().Draw(t, "min one"),
		UpTo: rapid.Int64Range(m.start, m.end+5).Draw(t, "up to")}
	res, err := m.log.Read(q)
	if offset < m.start || offset > m.end {
		if !errors.Is(err, log.ErrOffsetOutOfRange) {
			t.Fatalf("offset %d of %d to %d: %v", offset, m.start, m.end, err)
		}
		return
	}
	m.must(err)
	var want []byte // what may come, at most
	first := -1
	for i, b := range m.batches {
		if b.last < offset {
			continue
		}
		if b.last >= min(q.UpTo, m.end) {
			break
		}
		if first < 0 {
			first = i
		}
		want = append(want, b.bytes...)
	}
	if first < 0 || len(m.batches[first].bytes) > q.MaxBytes && !q.MinOneBatch {
		if res.View != nil {
			t.Fatalf("%d bytes where nothing may come", res.View.Len())
		}
		return
	}
	if res.View == nil {
		t.Fatalf("nothing where batch %d to %d may come", m.batches[first].base, m.batches[first].last)
	}
	got, err := res.View.Bytes(nil)
	m.must(err)
	if !bytes.HasPrefix(want, got) || len(got) < len(m.batches[first].bytes) || len(got) > max(q.MaxBytes, len(m.batches[first].bytes)) {
		t.Fatalf("other bytes than those from batch %d on: %d of at most %d", m.batches[first].base, len(got), q.MaxBytes)
	}
	whole := 0
	for _, b := range m.batches[first:] {
		if whole == len(got) {
			break
		}
		whole += len(b.bytes)
	}
	if whole != len(got) || res.FirstBatchOffset != m.batches[first].base {
		t.Fatalf("the view doesn't hold whole batches")
	}
	res.View.Release()
}

func (m *model) byTime(t *rapid.T) {
	ask := m.now + rapid.Int64Range(-120, 60).Draw(t, "timestamp")
	upTo := rapid.Int64Range(m.start, m.end).Draw(t, "up to")
	at, found, err := m.log.OffsetForTimestamp(ask, upTo)
	m.must(err)
	want := int64(-1)
search:
	for _, b := range m.batches {
		for i, ts := range b.stamps {
			if offset := b.base + int64(i); offset >= m.start && ts >= ask {
				want = offset
				if at.Timestamp != ts && found {
					t.Fatalf("timestamp %d at offset %d, which has %d", at.Timestamp, offset, ts)
				}
				break search
			}
		}
	}
	if want >= upTo {
		want = -1
	}
	if found != (want >= 0) || found && at.Offset != want {
		t.Fatalf("timestamp %d: found %v %+v, want offset %d", ask, found, at, want)
	}
}

func (m *model) commit(t *rapid.T) {
	to := rapid.Int64Range(m.start, m.end+3).Draw(t, "high watermark")
	m.hw = max(m.hw, min(to, m.end))
	if got := m.log.SetHighWatermark(to); got != m.hw {
		t.Fatalf("high watermark %d, want %d", got, m.hw)
	}
}

func (m *model) flush(*rapid.T) {
	m.must(m.log.Flush(context.Background(), m.end))
	m.safe = m.end
	if got := m.log.RecoveryPoint(); got != m.safe {
		m.t.Fatalf("recovery point %d, want %d", got, m.safe)
	}
}

// cut removes the batches from an offset on.
func (m *model) cut(offset int64) {
	for len(m.batches) > 0 {
		b := m.batches[len(m.batches)-1]
		if b.last < offset {
			break
		}
		m.batches = m.batches[:len(m.batches)-1]
		m.end = min(b.base, offset)
		if b.base >= offset {
			m.end = offset
		}
	}
	m.end = min(m.end, max(offset, 0))
	m.safe, m.hw, m.start = min(m.safe, m.end), min(m.hw, m.end), min(m.start, m.end)
}

func (m *model) truncate(t *rapid.T) {
	to := rapid.Int64Range(m.firstBase(), m.end+2).Draw(t, "offset")
	m.must(m.log.TruncateTo(to))
	if to < m.end {
		m.cut(to)
	}
}

// firstBase is where the log's first segment begins.
func (m *model) firstBase() int64 { return m.log.Segments()[0].BaseOffset }

func (m *model) truncateFully(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		return
	}
	to := rapid.Int64Range(0, m.end+10).Draw(t, "offset")
	m.must(m.log.TruncateFully(to))
	m.batches = nil
	m.start, m.end, m.hw, m.safe = to, to, to, to
}

func (m *model) deleteRecords(t *rapid.T) {
	to := rapid.Int64Range(m.start, m.hw).Draw(t, "offset")
	got, err := m.log.AdvanceStartOffset(to)
	m.must(err)
	if m.start = max(m.start, to); got != m.start {
		t.Fatalf("start %d, want %d", got, m.start)
	}
}

func (m *model) retention(t *rapid.T) {
	cfg := m.cfg
	cfg.RetentionBytes = rapid.Int64Range(0, 5000).Draw(t, "retention.bytes")
	m.log.Configure(cfg)
	_, err := m.log.DeleteOldSegments(time.UnixMilli(m.now))
	m.must(err)
	m.log.Configure(m.cfg)
	start := m.log.StartOffset()
	if start < m.start || start > m.hw {
		t.Fatalf("start went from %d to %d, high watermark %d", m.start, start, m.hw)
	}
	left := int64(0)
	for _, s := range m.log.Segments() {
		left += s.Bytes
	}
	if start > m.start && left < cfg.RetentionBytes {
		// A segment may have gone for lying below the start; those that had to stay for their bytes may not.
		if first := m.firstBase(); first > m.start && start == first && m.bytesFrom(m.start) > cfg.RetentionBytes && left+m.bytesFrom(start) < cfg.RetentionBytes {
			t.Fatalf("%d bytes left, %d are to be kept", left, cfg.RetentionBytes)
		}
	}
	m.start = start
}

func (m *model) bytesFrom(offset int64) (n int64) {
	for _, b := range m.batches {
		if b.base >= offset {
			n += int64(len(b.bytes))
		}
	}
	return n
}

func (m *model) reopen(*rapid.T) {
	m.must(m.log.Close(context.Background()))
	m.safe = m.log.RecoveryPoint()
	if m.safe != m.end {
		m.t.Fatalf("recovery point %d after an orderly stop at %d", m.safe, m.end)
	}
	m.end = m.written()
	m.safe, m.hw = min(m.safe, m.end), min(m.hw, m.end)
	m.open(true)
}

// written is where the end is found again: behind the last batch, or where the last segment begins.
func (m *model) written() int64 {
	segments := m.log.Segments()
	end := segments[len(segments)-1].BaseOffset
	if n := len(m.batches); n > 0 {
		end = max(end, m.batches[n-1].last+1)
	}
	return max(end, m.start)
}

// crash leaves the files as they are, possibly torn above the recovery point, and opens them again.
func (m *model) crash(t *rapid.T) {
	segments := m.log.Segments()
	end := m.written()
	copied, err := os.MkdirTemp(filepath.Dir(m.dir), "log")
	m.must(err)
	m.must(os.CopyFS(copied, os.DirFS(m.dir)))
	m.must(m.log.Close(context.Background()))
	m.must(os.RemoveAll(m.dir))
	m.dir = copied
	m.end = end
	last := segments[len(segments)-1]
	if rapid.Bool().Draw(t, "torn") && last.Bytes > 0 {
		// Bytes that were not synced may be gone: down to the recovery point.
		pos, keep := int64(0), int64(0)
		var ends []int64
		for _, b := range m.batches {
			if b.base < last.BaseOffset {
				continue
			}
			pos += int64(len(b.bytes))
			ends = append(ends, pos)
			if b.last < m.safe {
				keep = pos
			}
		}
		cut := rapid.Int64Range(keep, last.Bytes).Draw(t, "bytes left")
		path := filepath.Join(m.dir, filepath.Base(last.Path))
		whole, err := os.ReadFile(path)
		m.must(err)
		m.must(os.Truncate(path, cut))
		gone := 0
		for _, e := range ends {
			if e > cut {
				gone++
			}
		}
		if gone > 0 {
			m.batches = m.batches[:len(m.batches)-gone]
			m.end = last.BaseOffset
			if n := len(m.batches); n > 0 {
				m.end = max(m.end, m.batches[n-1].last+1)
			}
		}
		if rapid.Bool().Draw(t, "garbage") {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			m.must(err)
			garbage := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
			if cut < last.Bytes && len(garbage) > 0 {
				garbage[0] = ^whole[cut] // or it might be what was cut off
			}
			_, err = f.Write(garbage)
			m.must(errors.Join(err, f.Close()))
		}
	}
	if m.end < m.start {
		m.batches, m.end = nil, m.start
	}
	m.safe, m.hw = min(m.safe, m.end), max(min(m.hw, m.end), m.start)
	m.open(false)
}

func (m *model) check(t *rapid.T) {
	l := m.log
	if l.StartOffset() != m.start || l.EndOffset() != m.end || l.HighWatermark() != m.hw {
		t.Fatalf("start %d, end %d, high watermark %d; want %d, %d, %d", l.StartOffset(), l.EndOffset(), l.HighWatermark(), m.start, m.end, m.hw)
	}
	if l.LastStableOffset() != m.hw {
		t.Fatalf("last stable offset %d without transactions", l.LastStableOffset())
	}
	segments := l.Segments()
	for i := 1; i < len(segments); i++ {
		if segments[i].BaseOffset <= segments[i-1].BaseOffset {
			t.Fatalf("segments %+v", segments)
		}
	}
	// Everything, from the start on.
	var got, want []byte
	for _, b := range m.batches {
		if b.last >= m.start {
			want = append(want, b.bytes...)
		}
	}
	for at := m.start; at < m.end; {
		res, err := l.Read(log.ReadRequest{Offset: at, UpTo: m.end, MaxBytes: math.MaxInt32})
		m.must(err)
		if res.View == nil {
			break
		}
		b, err := res.View.Bytes(nil)
		m.must(err)
		got = append(got, b...)
		for x, err := range record.All(b) {
			m.must(err)
			at = x.Header().LastOffset() + 1
		}
		res.View.Release()
	}
	if !bytes.Equal(got, want) {
		t.Fatal(fmt.Sprintf("the log holds %d bytes, %d were appended, or others", len(got), len(want)))
	}
}
