package log

import (
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/record"
)

// fileHex is a file in hexadecimal digits.
func fileHex(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return hex.EncodeToString(b)
}

// What lies in a partition's directory after an orderly stop, byte by byte.
func TestGoldenFiles(t *testing.T) {
	o := setup(t)
	o.Config.IndexIntervalBytes, o.Config.SegmentMs = 100, math.MaxInt64
	l := open(t, o)
	id := [16]byte{0x4b, 0x2a, 0x3d, 0x98, 0x91, 0x01, 0x4d, 0x9c, 0x80, 0x2b, 0x1f, 0x6f, 0x3c, 0x11, 0xaa, 0xfe}
	require.NoError(t, l.SetTopicID(id))
	// Batches of 73 bytes at 0, 73, …: the third and the fifth get an entry, then the one that has the largest timestamp.
	for _, ts := range []int64{1000, 2000, 1500, 500, 4000, 4001} {
		produce(t, l, rec{ts: ts, value: "hello"})
	}
	require.NoError(t, l.AssignEpoch(7))
	_, err := l.AppendLeader(LeaderAppend{Batches: sent(t, 9, 1, 0, true, rec{ts: 10, value: "hello"}), LeaderEpoch: 7})
	require.NoError(t, err)
	_, err = l.AppendLeader(LeaderAppend{Batches: endTxn(t, 9, 1, 3, false), LeaderEpoch: 7, Origin: record.FromCoordinator})
	require.NoError(t, err)
	require.NoError(t, l.Close(t.Context()))

	at := func(suffix string) string { return segmentPath(o.Dir, 0, suffix) }
	require.Equal(t, "00000000000000000000.log", filepath.Base(at(logSuffix)))
	require.Equal(t, "00000002"+"00000092"+"00000004"+"00000124"+"00000006"+"000001b6", fileHex(t, at(indexSuffix)))
	require.Equal(t, "00000000000007d0"+"00000001"+"0000000000000fa0"+"00000004"+"0000000000000fa1"+"00000005"+hexTime(testTime.UnixMilli())+"00000007", fileHex(t, at(timeSuffix)))
	require.Equal(t, "0000"+"0000000000000009"+"0000000000000006"+"0000000000000007"+"0000000000000008", fileHex(t, at(txnSuffix)))
	require.Equal(t, "0001"+"29de7112"+"00000001"+
		"0000000000000009"+"0001"+"00000000"+"0000000000000006"+"00000000"+hexTime(testTime.UnixMilli())+"00000003"+"ffffffffffffffff", fileHex(t, segmentPath(o.Dir, 8, snapshotSuffix)))
	b, err := os.ReadFile(filepath.Join(o.Dir, epochFile))
	require.NoError(t, err)
	require.Equal(t, "0\n2\n0 0\n7 6\n", string(b))
	b, err = os.ReadFile(filepath.Join(o.Dir, metadataFile))
	require.NoError(t, err)
	require.Equal(t, "version: 0\ntopic_id: Syo9mJEBTZyAKx9vPBGq_g", string(b))
}

func hexTime(ms int64) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 16)
	for i := range b {
		b[15-i] = digits[ms>>(4*i)&15]
	}
	return string(b)
}

func TestTopicID(t *testing.T) {
	l := open(t, setup(t))
	_, ok := l.TopicID()
	require.False(t, ok)
	id := [16]byte{1, 2, 3}
	require.NoError(t, l.SetTopicID(id))
	require.NoError(t, l.SetTopicID(id))
	require.ErrorIs(t, l.SetTopicID([16]byte{9}), ErrTopicID)
	l = reopen(t, l)
	got, ok := l.TopicID()
	require.True(t, ok)
	require.Equal(t, id, got)
	// Torn by a crash before anything was synced: the cluster sets it again. With anything to lose it is an error.
	path := filepath.Join(l.Dir(), metadataFile)
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	l = crash(t, l)
	_, ok = l.TopicID()
	require.False(t, ok)
	require.NoError(t, l.SetTopicID(id))
	fill(t, l, 1, 1, 10)
	require.NoError(t, l.Close(t.Context()))
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	for _, clean := range []bool{true, false} {
		o := l.o
		o.CleanShutdown, o.RecoveryPoint = clean, 1
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	for _, bad := range []string{"", "version: 0", "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\ntopic_id: short", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAAAA",
		"version: 0\ntopic: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\nmore", strings.Repeat("x", 1<<16)} {
		_, err := parseMetadata([]byte(bad))
		require.ErrorIs(t, err, ErrCorrupt, "%q", clip(bad))
	}
	_, err := parseMetadata([]byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n"))
	require.NoError(t, err)
}

// An index is a sorted list, whatever of it is in memory and whatever in the file.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "index")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		x := newIndex(filepath.Join(dir, "x"), offsetWidth, true)
		type entry struct{ relative, position int32 }
		var all []entry
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		at := func(relative int32) func(e []byte) bool {
			return func(e []byte) bool {
				r, _ := offsetEntry(e)
				return r <= relative
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 700).Draw(t, "n") {
					last := entry{-1, 0}
					if len(all) > 0 {
						last = all[len(all)-1]
					}
					e := entry{last.relative + 2, last.position + 10}
					all = append(all, e)
					var b [offsetWidth]byte
					putOffsetEntry(b[:], e.relative, e.position)
					must(x.add(b[:]))
				}
			},
			"look up": func(t *rapid.T) {
				ask := rapid.Int32Range(-3, int32(2*len(all)+3)).Draw(t, "offset")
				e, ok, err := x.floor(at(ask))
				must(err)
				n := min(max(0, (int(ask)+1)/2), len(all)) // entries up to ask: 1, 3, 5, …
				for n < len(all) && all[n].relative <= ask {
					n++
				}
				for n > 0 && all[n-1].relative > ask {
					n--
				}
				if relative, position := offsetEntry(e[:]); ok != (n > 0) || ok && (entry{relative, position}) != all[n-1] {
					t.Fatalf("%d: found %v %d", ask, ok, relative)
				}
				e, ok, err = x.ceiling(at(ask))
				must(err)
				if relative, position := offsetEntry(e[:]); ok != (n < len(all)) || ok && (entry{relative, position}) != all[n] {
					t.Fatalf("above %d: found %v %d", ask, ok, relative)
				}
			},
			"keep": func(t *rapid.T) {
				ask := rapid.Int32Range(-3, int32(2*len(all)+3)).Draw(t, "offset")
				must(x.keep(at(ask)))
				for len(all) > 0 && all[len(all)-1].relative > ask {
					all = all[:len(all)-1]
				}
			},
			"reopen": func(t *rapid.T) {
				must(x.sync())
				opened, err := openIndex(x.path, offsetWidth)
				if errors.Is(err, os.ErrNotExist) && len(all) == 0 {
					return
				}
				must(err)
				x = opened
			},
			"replace": func(t *rapid.T) {
				var b []byte
				for _, e := range all {
					var one [offsetWidth]byte
					putOffsetEntry(one[:], e.relative, e.position)
					b = append(b, one[:]...)
				}
				must(x.replace(b))
			},
			"": func(t *rapid.T) {
				if x.len() != len(all) {
					t.Fatalf("%d entries, want %d", x.len(), len(all))
				}
				if e, ok := x.last(); ok != (len(all) > 0) {
					t.Fatal("last entry")
				} else if relative, _ := offsetEntry(e[:]); ok && relative != all[len(all)-1].relative {
					t.Fatalf("last entry %d", relative)
				}
			},
		})
	})
}

// FuzzFiles puts hostile bytes in the place of each small file of a log that was closed in order. Opening it gives an error
// or a log whose records are all there; it never panics or loses one.
func FuzzFiles(f *testing.F) {
	for which := range byte(7) {
		f.Add(which, []byte{})
		f.Add(which, []byte("0\n1\n5 3\n"))
		f.Add(which, make([]byte, 240))
	}
	f.Add(byte(4), []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"))
	src := f.TempDir()
	o := setup(f)
	o.Dir, o.Logger = src, quiet
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 600, 100
	l, err := Open(f.Context(), o)
	require.NoError(f, err)
	for i := range 6 {
		lead(f, l, sent(f, 1, 0, int32(i), true, values(2*i, 1, 20)...))
		produce(f, l, values(2*i+1, 1, 20)...)
	}
	mark(f, l, endTxn(f, 1, 0, 0, false))
	require.NoError(f, l.Close(f.Context()))
	base := l.Segments()[0].BaseOffset
	last := l.active().base
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		o := o
		o.Dir = t.TempDir()
		require.NoError(t, os.CopyFS(o.Dir, os.DirFS(src)))
		path := ""
		switch which % 7 {
		case 0:
			path = segmentPath(o.Dir, base, indexSuffix)
		case 1:
			path = segmentPath(o.Dir, last, indexSuffix)
		case 2:
			path = segmentPath(o.Dir, base, timeSuffix)
		case 3:
			path = segmentPath(o.Dir, last, timeSuffix)
		case 4:
			path = filepath.Join(o.Dir, metadataFile)
		case 5:
			path = filepath.Join(o.Dir, epochFile)
		case 6:
			path = segmentPath(o.Dir, 13, snapshotSuffix)
		}
		require.NoError(t, os.WriteFile(path, b, 0o644))
		o.CleanShutdown, o.HighWatermark = true, 13
		l, err := Open(t.Context(), o)
		if err != nil {
			require.Equal(t, byte(4), which%7, "%v", err)
			return
		}
		defer l.release(false)
		require.EqualValues(t, 13, l.EndOffset())
		for at := range int64(13) {
			n := 0
			for from := at; from < 13; {
				res, err := l.Read(ReadRequest{Offset: from, UpTo: 13, MaxBytes: 1, MinOneBatch: true})
				require.NoError(t, err)
				require.NotNil(t, res.View)
				require.Equal(t, from, res.FirstBatchOffset)
				from = res.FirstBatchOffset + 1
				n++
			}
			require.EqualValues(t, 13-at, n)
			_, _, err := l.OffsetForTimestamp(testTime.UnixMilli()+at, 13)
			require.NoError(t, err)
		}
		_, err = l.AppendLeader(LeaderAppend{Batches: batch(t, nil, rec{}), LeaderEpoch: 1 << 30})
		require.NoError(t, err)
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("0\n2\n1 0\n5 10\n"))
	f.Add([]byte("0\n1\nt 0 10\n"))
	f.Add([]byte("version=0\nbroker.id=1\ncluster.id=x\n"))
	f.Add([]byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"))
	f.Add([]byte("t-1.00112233445566778899aabbccddeeff-delete"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := parseEpochs(b); err == nil {
			again, err := parseEpochs(formatEpochs(e))
			require.NoError(t, err)
			require.Equal(t, e, again)
			for i := 1; i < len(e); i++ {
				require.True(t, e[i].Epoch > e[i-1].Epoch && e[i].Start > e[i-1].Start)
			}
		}
		if o, err := parseOffsets(b); err == nil {
			again, err := parseOffsets(formatOffsets(o))
			require.NoError(t, err)
			require.Equal(t, o, again)
		}
		if m, err := parseMeta(b); err == nil {
			require.GreaterOrEqual(t, m.BrokerID, int32(-1))
		}
		if id, err := parseMetadata(b); err == nil {
			again, err := parseMetadata(formatMetadata(id))
			require.NoError(t, err)
			require.Equal(t, id, again)
		}
		if txns, err := parseTxns(b); err == nil {
			var out []byte
			for _, e := range txns {
				out = appendTxn(out, e)
			}
			require.Equal(t, string(b), string(out))
		}
		if kind, tp := kindOf(string(b)); kind == partitionDir {
			require.Equal(t, string(b), tp.String())
			require.NotContains(t, tp.Topic, "/")
		}
	})
}
