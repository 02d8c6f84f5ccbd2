package log

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// A torn last segment: the log ends after the last whole batch, whatever the byte (A18).
func TestTornAtEveryByte(t *testing.T) {
	o := setup(t)
	o.Logger = nil
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 400, 100
	l := open(t, o)
	fill(t, l, 10, 2, 10)
	require.NoError(t, l.release(false))
	segments := l.Segments()
	last := segments[len(segments)-1]
	whole, err := os.ReadFile(last.Path)
	require.NoError(t, err)
	size := l.Size() - last.Bytes
	one := last.Bytes / ((20 - last.BaseOffset) / 2)
	for cut := range int64(len(whole)) {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(o.Dir)))
		path := segmentPath(dir, last.BaseOffset, logSuffix)
		require.NoError(t, os.Truncate(path, cut))
		o.Dir = dir
		l := open(t, o)
		end := last.BaseOffset + cut/one*2
		requireValues(t, l, 0, end, 10)
		require.Equal(t, size+cut/one*one, l.Size())
		fill(t, l, 1, 2, 10)
		requireValues(t, l, 0, end+2, 10)
		if cut%16 == 0 {
			l = reopen(t, l)
			requireValues(t, l, 0, end+2, 10)
		}
		l.release(false)
	}
}

func TestBadTails(t *testing.T) {
	const n = 10
	for _, tc := range []struct {
		name string
		do   func(b []byte, one int) []byte
		left int // batches
	}{
		{"zeros", func(b []byte, _ int) []byte { return append(b, make([]byte, 4096)...) }, n},
		{"a mebibyte of zeros", func(b []byte, _ int) []byte { return append(b, make([]byte, 1<<20)...) }, n},
		{"a length of 2^31-1", func(b []byte, _ int) []byte {
			return append(b, 0, 0, 0, 0, 0, 0, 0, 10, 0x7f, 0xff, 0xff, 0xff)
		}, n},
		{"a whole header with a length of 2^31-1", func(b []byte, one int) []byte {
			h := append([]byte(nil), b[len(b)-one:]...)
			copy(h[8:], []byte{0x7f, 0xff, 0xff, 0xff})
			return append(b, h...)
		}, n},
		{"the last batch again", func(b []byte, one int) []byte { return append(b, b[len(b)-one:]...) }, n},
		{"noise", func(b []byte, _ int) []byte {
			x := make([]byte, 500)
			rand.Read(x)
			return append(b, x...)
		}, n},
		{"a bit of the last batch", func(b []byte, one int) []byte { b[len(b)-1] ^= 1; return b }, n - 1},
		{"a bit of a batch in the middle", func(b []byte, one int) []byte { b[4*one+70] ^= 1; return b }, 4},
		{"a bit of the first batch", func(b []byte, one int) []byte { b[30] ^= 1; return b }, 0},
		{"a base offset far away", func(b []byte, one int) []byte { b[(n-1)*one] = 0x7f; return b }, n - 1},
		{"nothing", func([]byte, int) []byte { return nil }, 0},
	} {
		for _, segments := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d segments", tc.name, segments), func(t *testing.T) {
				o := setup(t)
				o.Config.IndexIntervalBytes = 100
				l := open(t, o)
				before := int64(0)
				if segments == 2 {
					fill(t, l, 3, 1, 20)
					require.NoError(t, l.roll(3, 0))
					before = 3
				}
				fill(t, l, n, 1, 20)
				infos := l.Segments()
				path := infos[len(infos)-1].Path
				require.NoError(t, l.release(false))
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, tc.do(b, len(b)/n), 0o644))
				l = crash(t, l)
				end := before + int64(tc.left)
				requireValues(t, l, 0, end, 20)
				requireIndexes(t, l)
				fill(t, l, 2, 1, 20)
				requireValues(t, l, 0, end+2, 20)
				l = reopen(t, l)
				requireValues(t, l, 0, end+2, 20)
				requireIndexes(t, l)
			})
		}
	}
}

// flipLastBit damages the end of a file: the last record of a segment.
func flipLastBit(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[len(b)-1] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o644))
}

// A bad batch in a segment that isn't the last one: all that follows goes, so that there is no hole.
func TestBadBatchDropsLaterSegments(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 500, 100
	l := open(t, o)
	fill(t, l, 30, 1, 20)
	infos := l.Segments()
	require.Greater(t, len(infos), 4)
	require.NoError(t, l.release(false))
	flipLastBit(t, infos[2].Path)
	l = crash(t, l)
	end := infos[3].BaseOffset - 1
	requireValues(t, l, 0, end, 20)
	require.Len(t, l.Segments(), 3)
	fill(t, l, 10, 1, 20)
	l = crash(t, l)
	requireValues(t, l, 0, end+10, 20)
	requireFiles(t, l)
}

// removalFails opens segments of which none can be removed.
type removalFails struct{ plainStorage }

func (s *removalFails) Open(path string, o storage.Options) (storage.Segment, error) {
	g, err := s.plainStorage.Open(path, o)
	return unremovable{g}, err
}

type unremovable struct{ storage.Segment }

func (unremovable) Remove() error { return syscall.EIO }

// A recovery that ends between two files, here by an error, leaves a beginning of the log, or what is cut the next time.
func TestInterruptedCutLeavesNoHole(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 500, 100
	l := open(t, o)
	fill(t, l, 30, 1, 20)
	infos := l.Segments()
	require.NoError(t, l.release(false))
	flipLastBit(t, infos[2].Path)
	o.Storage = &removalFails{}
	_, err := Open(t.Context(), o)
	require.ErrorIs(t, err, syscall.EIO)
	o.Storage = &plainStorage{}
	l = open(t, o)
	l.SetHighWatermark(l.EndOffset())
	requireValues(t, l, 0, infos[3].BaseOffset-1, 20)
	require.Len(t, l.Segments(), 3)
}

// Nothing below the segment with the recovery point is read again.
func TestRecoveryPointIsBelieved(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 500
	l := open(t, o)
	fill(t, l, 30, 1, 20)
	require.NoError(t, l.Flush(t.Context(), 30))
	require.EqualValues(t, 30, l.RecoveryPoint())
	infos := l.Segments()
	require.NoError(t, l.release(false))
	flipLastBit(t, infos[1].Path) // in a record: nothing that a look at the headers would find
	l = crash(t, l)
	require.EqualValues(t, 30, l.EndOffset())
}

// Damaged indexes of a log that was closed in order (A19).
func TestDamagedIndexes(t *testing.T) {
	noise := make([]byte, 960)
	rand.Read(noise)
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		for _, tc := range []struct {
			name string
			do   func(path string, b []byte) error
		}{
			{"empty", func(p string, _ []byte) error { return os.WriteFile(p, nil, 0o644) }},
			{"7 bytes", func(p string, b []byte) error { return os.WriteFile(p, append(b, make([]byte, 7)...)[:7], 0o644) }},
			{"noise", func(p string, _ []byte) error { return os.WriteFile(p, noise, 0o644) }},
			{"zeros", func(p string, _ []byte) error { return os.WriteFile(p, make([]byte, 10<<20/24*24), 0o644) }},
			{"padded with zeros", func(p string, b []byte) error {
				return os.WriteFile(p, append(b, make([]byte, 24*100)...), 0o644)
			}},
			{"missing", func(p string, _ []byte) error { return os.Remove(p) }},
			{"past the end", func(p string, b []byte) error {
				e := []byte{0, 0, 0, 90, 0x7f, 0, 0, 0}
				if strings.HasSuffix(p, timeSuffix) {
					e = []byte{0, 0, 2, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0}
				}
				return os.WriteFile(p, append(b, e...), 0o644)
			}},
			{"an entry altered", func(p string, b []byte) error {
				if len(b) > 20 {
					b[len(b)/2] ^= 0x40
				}
				return os.WriteFile(p, b, 0o644)
			}},
			{"the last entry altered", func(p string, b []byte) error {
				if len(b) > 0 {
					b[len(b)-1] ^= 2
				}
				return os.WriteFile(p, b, 0o644)
			}},
		} {
			for _, which := range []string{"closed", "active"} {
				t.Run(suffix+" "+which+" "+tc.name, func(t *testing.T) {
					o := setup(t)
					o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 1500, 100
					l := open(t, o)
					fill(t, l, 40, 1, 20)
					require.NoError(t, l.Close(t.Context()))
					infos := l.Segments()
					require.Len(t, infos, 3)
					at := infos[1]
					if which == "active" {
						at = infos[2]
					}
					path := segmentPath(l.Dir(), at.BaseOffset, suffix)
					b, err := os.ReadFile(path)
					require.NoError(t, err)
					require.NotEmpty(t, b)
					require.NoError(t, tc.do(path, b))
					l = reopen(t, l)
					for at := range int64(40) {
						got := readAll(t, l, at, 40, 1)
						require.Len(t, got, int(40-at))
						ts := testTime.UnixMilli() + at
						found, ok, err := l.OffsetForTimestamp(ts, 40)
						require.NoError(t, err)
						require.True(t, ok)
						require.Equal(t, TimeOffset{at, ts, 0}, found)
					}
					fill(t, l, 5, 1, 20)
					require.NoError(t, l.TruncateTo(42))
					l = reopen(t, l)
					requireValues(t, l, 0, 42, 20)
					requireIndexes(t, l)
				})
			}
		}
	}
}

// An index that lost its entries gets them back, so that no look-up has to walk the segment.
func TestEmptiedIndexIsRebuilt(t *testing.T) {
	o := setup(t)
	o.Config.SegmentBytes = 64 << 10
	l := open(t, o)
	fill(t, l, 200, 1, 1000)
	require.NoError(t, l.Close(t.Context()))
	path := segmentPath(o.Dir, l.Segments()[1].BaseOffset, indexSuffix)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, before)
	require.NoError(t, os.Truncate(path, 0))
	l = reopen(t, l)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	requireValues(t, l, 0, 200, 1000)
}

func TestOrphansAndLeftovers(t *testing.T) {
	o := setup(t)
	l := open(t, o)
	fill(t, l, 3, 1, 20)
	require.NoError(t, l.Close(t.Context()))
	orphan := segmentPath(o.Dir, 77, indexSuffix)
	for _, p := range []string{
		orphan, segmentPath(o.Dir, 78, timeSuffix), segmentPath(o.Dir, 79, txnSuffix),
		segmentPath(o.Dir, 0, logSuffix) + deletedSuffix, filepath.Join(o.Dir, epochFile+tmpSuffix),
		segmentPath(o.Dir, 0, logSuffix) + cleanedSuffix,
	} {
		require.NoError(t, os.WriteFile(p, []byte("12345678"), 0o644))
	}
	other := filepath.Join(o.Dir, "notes.txt")
	require.NoError(t, os.WriteFile(other, []byte("not ours"), 0o644))
	l = reopen(t, l)
	requireValues(t, l, 0, 3, 20)
	require.FileExists(t, other, "what isn't ours stays")
	require.NoError(t, os.Remove(other))
	requireFiles(t, l)
}

// A zero-length segment, alone or last.
func TestEmptySegments(t *testing.T) {
	o := setup(t)
	l := open(t, o)
	l = crash(t, l)
	requireValues(t, l, 0, 0, 0)
	l = reopen(t, l)
	fill(t, l, 3, 1, 20)
	require.NoError(t, l.roll(3, 0))
	l = crash(t, l)
	requireValues(t, l, 0, 3, 20)
	require.Len(t, l.Segments(), 2)
	l = reopen(t, l)
	fill(t, l, 1, 1, 20)
	requireValues(t, l, 0, 4, 20)
}

// The checkpointed start lies behind the end: nothing of the log may be read, and offsets go on from there.
func TestEndBelowStart(t *testing.T) {
	for _, clean := range []bool{true, false} {
		o := setup(t)
		l := open(t, o)
		fill(t, l, 3, 1, 20)
		require.NoError(t, l.Close(t.Context()))
		o.StartOffset, o.CleanShutdown, o.HighWatermark = 10, clean, 2
		l = open(t, o)
		require.EqualValues(t, 10, l.StartOffset())
		require.EqualValues(t, 10, l.EndOffset())
		require.EqualValues(t, 10, l.HighWatermark())
		require.EqualValues(t, 10, produce(t, l, values(10, 1, 5)...).BaseOffset)
	}
}

// requireIndexes checks the indexes of a log against its batches as Kafka's DumpLogSegments does: an entry of the offset
// index points to the batch that ends with its offset, one of the time index to a batch with that largest timestamp.
func requireIndexes(t testing.TB, l *Log) {
	t.Helper()
	for _, s := range *l.segments.Load() {
		require.NoError(t, s.offsets.write())
		require.NoError(t, s.times.write())
		r := newHeaders(s, s.size.Load())
		b, err := os.ReadFile(s.offsets.path)
		require.NoError(t, err)
		require.Zero(t, len(b)%offsetWidth)
		for ; len(b) > 0; b = b[offsetWidth:] {
			relative, position := offsetEntry(b)
			h, err := r.at(int64(position))
			require.NoError(t, err)
			require.Equal(t, s.base+int64(relative), h.LastOffset())
		}
		b, err = os.ReadFile(s.times.path)
		require.NoError(t, err)
		require.Zero(t, len(b)%timeWidth)
		last := int64(-1)
		for ; len(b) > 0; b = b[timeWidth:] {
			ts, relative := timeEntry(b)
			_, h, err := s.locate(r, s.base+int64(relative))
			require.NoError(t, err)
			require.Equal(t, s.base+int64(relative), h.LastOffset())
			require.Equal(t, ts, h.MaxTimestamp)
			require.Positive(t, h.Count, "a timestamp that no record has")
			require.Greater(t, ts, last)
			last = ts
		}
		r.done()
	}
}

// requireFiles checks that a log's directory holds nothing but what the log knows of.
func requireFiles(t testing.TB, l *Log) {
	t.Helper()
	known := map[string]bool{epochFile: true, metadataFile: true}
	for _, s := range *l.segments.Load() {
		for _, suffix := range append([]string{logSuffix}, s.suffixes()...) {
			known[filepath.Base(segmentPath("", s.base, suffix))] = true
		}
		require.FileExists(t, segmentPath(l.Dir(), s.base, logSuffix))
	}
	for _, offset := range l.snapshots {
		known[filepath.Base(segmentPath("", offset, snapshotSuffix))] = true
	}
	entries, err := os.ReadDir(l.Dir())
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, known[e.Name()], "unexpected file %s", e.Name())
	}
}
