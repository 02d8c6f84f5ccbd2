package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/log/inspect"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
	mmap "github.com/barnabas-mq/barnabas/storage-mmap"
	sendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engines are the two storages.
func engines(t testing.TB) map[string]storage.Storage {
	t.Helper()
	mapped, err := mmap.New(mmap.DefaultOptions())
	require.NoError(t, err)
	sent, err := sendfile.New(sendfile.DefaultOptions())
	require.NoError(t, err)
	out := map[string]storage.Storage{"mmap": mapped, "sendfile": sent}
	for _, s := range out {
		require.NoError(t, s.Start(t.Context()))
		t.Cleanup(func() { assert.NoError(t, s.Stop(context.Background())) })
	}
	return out
}

// manage opens the logs of a directory, with an index entry for nearly every batch, and segments of so many bytes.
func manage(t testing.TB, dir string, s storage.Storage, segment int64) *log.Manager {
	t.Helper()
	o := log.DefaultManagerOptions()
	o.Storage = s
	o.Config = func(string) log.Config {
		c := log.DefaultConfig()
		c.RetentionMs, c.IndexIntervalBytes, c.SegmentBytes = -1, 1, segment
		return c
	}
	d, err := log.OpenDir(dir, nil)
	require.NoError(t, err)
	m := log.NewManager(o, d)
	require.NoError(t, m.Open(t.Context()))
	return m
}

// small makes segments of two or three batches.
const small = 320

// built is a batch of a producer's, or a marker of its transaction's end.
func built(t testing.TB, o record.Options, records ...record.Record) []byte {
	t.Helper()
	b := record.NewBuilder(o)
	for _, r := range records {
		require.NoError(t, b.Append(r))
	}
	out, err := b.Build(nil, nil)
	require.NoError(t, err)
	return out
}

// fill makes partition t-0: batches of one and two records under two leader epochs, and an aborted transaction at the end.
func fill(t testing.TB, m *log.Manager) *log.Log {
	t.Helper()
	l, err := m.GetOrCreate(t.Context(), log.TopicPartition{Topic: "t", Partition: 0})
	require.NoError(t, err)
	require.NoError(t, l.SetTopicID([16]byte{1, 2, 3}))
	require.NoError(t, l.AssignEpoch(0))
	for i := range int64(6) {
		if i == 3 {
			require.NoError(t, l.AssignEpoch(5))
		}
		records := []record.Record{{Offset: 0, Timestamp: 1000 + i, Key: []byte("k"), Value: []byte("value")}, {Offset: 1, Timestamp: 1100 + i, Value: []byte("v")}}
		_, err := l.AppendLeader(log.LeaderAppend{Batches: built(t, record.Options{}, records[:1+i%2]...), LeaderEpoch: l.LatestEpoch()})
		require.NoError(t, err)
	}
	producer := &record.Producer{ID: 7, Epoch: 1}
	_, err = l.AppendLeader(log.LeaderAppend{Batches: built(t, record.Options{Producer: producer, Transactional: true}, record.Record{Timestamp: 2000, Value: []byte("x")}), LeaderEpoch: 5})
	require.NoError(t, err)
	producer.Sequence = record.NoSequence
	marker := built(t, record.Options{Producer: producer, Transactional: true, Control: true}, record.EndTxnMarker{}.Record(0, 2001))
	_, err = l.AppendLeader(log.LeaderAppend{Batches: marker, LeaderEpoch: 5, Origin: record.FromCoordinator})
	require.NoError(t, err)
	l.SetHighWatermark(math.MaxInt64)
	return l
}

// stopped is a log directory whose broker stopped in order.
func stopped(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	m := manage(t, dir, engines(t)["sendfile"], small)
	fill(t, m)
	require.NoError(t, m.Close(t.Context(), 1))
	return dir
}

func verify(t testing.TB, dir string) *inspect.Report {
	t.Helper()
	r, err := inspect.Verify(dir, inspect.Options{Records: true, RecordLimit: 1 << 20})
	require.NoError(t, err)
	return r
}

// texts joins the findings.
func texts(r *inspect.Report) string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

func files(t testing.TB, dir, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "t-0", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

func TestStoppedInOrder(t *testing.T) {
	for name, s := range engines(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for range 2 { // as made, and opened again
				m := manage(t, dir, s, small)
				fill(t, m)
				require.NoError(t, m.Close(t.Context(), 1))
				r := verify(t, dir)
				require.Empty(t, texts(r))
				require.NotZero(t, r.OffsetEntries)
				require.NotZero(t, r.TimeEntries)
			}
			r := verify(t, filepath.Join(dir, "t-0"))
			require.Empty(t, texts(r))
			require.Equal(t, 15, r.Batches, "the transaction's second batch is a duplicate of the first")
			require.Equal(t, 21, r.Records)
			require.Greater(t, r.Segments, 3)
		})
	}
}

// TestInUse verifies the directory of a broker that runs, while it appends: nothing is wrong, and nothing is changed.
func TestInUse(t *testing.T) {
	for name, s := range engines(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := manage(t, dir, s, 1<<20)
			defer func() { require.NoError(t, m.Close(t.Context(), 1)) }()
			l := fill(t, m)
			done := make(chan error, 1)
			go func() {
				for i := range 2000 {
					o := record.Options{}
					b := record.NewBuilder(o)
					_ = b.Append(record.Record{Timestamp: int64(3000 + i), Value: bytes.Repeat([]byte{'x'}, i)})
					batch, err := b.Build(nil, nil)
					if err == nil {
						_, err = l.AppendLeader(log.LeaderAppend{Batches: batch, LeaderEpoch: 5})
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			for running := true; running; {
				select {
				case err := <-done:
					require.NoError(t, err)
					running = false
				default:
				}
				r, err := inspect.Verify(dir, inspect.Options{Records: true, RecordLimit: 1 << 20, Patience: time.Second})
				require.NoError(t, err)
				require.Zero(t, r.Faults(), texts(r))
			}
		})
	}
}

// TestEveryFlippedBit changes each bit of all segments in turn: in a directory whose broker stopped in order each is found.
func TestEveryFlippedBit(t *testing.T) {
	dir := stopped(t)
	bits := 0
	for _, file := range files(t, dir, "*.log") {
		bits += eachBit(t, file, func(byte, bit int) {
			if verify(t, dir).Faults() == 0 {
				t.Errorf("%s: bit %d of byte %d", filepath.Base(file), bit, byte)
			}
		})
	}
	require.Greater(t, bits, 4000)
	require.Empty(t, texts(verify(t, dir)), "each was put right again")
}

// eachBit flips each bit of a file in turn.
func eachBit(t *testing.T, file string, flipped func(byte, bit int)) (n int) {
	t.Helper()
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	for i := range good {
		for bit := range 8 {
			_, err = f.WriteAt([]byte{good[i] ^ 1<<bit}, int64(i))
			require.NoError(t, err)
			flipped(i, bit)
			n++
		}
		_, err = f.WriteAt(good[i:i+1], int64(i))
		require.NoError(t, err)
	}
	return n
}

// TestFlippedBitsOfOneSegment has nothing but the file: what isn't found then are the leader epoch of the last batch where it rose,
// and that of the first where it fell, and the offset of the last where it rose.
func TestFlippedBitsOfOneSegment(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "00000000000000000000.log")
	var data []byte
	last := 0
	for i := range int64(3) {
		last = len(data)
		data = append(data, built(t, record.Options{BaseOffset: 2 * i, LeaderEpoch: 9},
			record.Record{Offset: 2 * i, Timestamp: 10 * i, Value: []byte("v")}, record.Record{Offset: 2*i + 1, Timestamp: 10 * i, Key: []byte("k")})...)
	}
	require.NoError(t, os.WriteFile(file, data, 0o600))
	require.Empty(t, texts(verify(t, dir)))
	eachBit(t, file, func(byte, bit int) {
		was, sign := data[byte]>>bit&1 == 1, bit == 7 && (byte-last == 4 || byte-last == 12)
		offset, epoch := byte >= last+4 && byte < last+8, byte >= last+12 && byte < last+16
		hidden := (offset || epoch) && !was && !sign || byte >= 12 && byte < 16 && was
		if found := verify(t, dir).Faults() > 0; found == hidden {
			t.Errorf("bit %d of byte %d: found %v", bit, byte, found)
		}
	})
}

// TestIndexBits flips the bits of all other files that have no room for a lie: positions, timestamps, snapshots, aborted transactions.
func TestIndexBits(t *testing.T) {
	dir := stopped(t)
	for pattern, lies := range map[string]func(byte, bit int) bool{
		"*.index":    nil,
		"*.snapshot": nil,
		// Any offset of the batch will do.
		"*.timeindex": func(byte, bit int) bool { return byte%12 == 11 && bit == 0 },
		// Where a transaction began, and the last stable offset, nobody else knows.
		"*.txnindex": func(byte, bit int) bool { return byte >= 10 && byte < 18 || byte >= 26 },
	} {
		for _, file := range files(t, dir, pattern) {
			eachBit(t, file, func(byte, bit int) {
				if verify(t, dir).Faults() == 0 && (lies == nil || !lies(byte, bit)) {
					t.Errorf("%s: bit %d of byte %d", filepath.Base(file), bit, byte)
				}
			})
		}
	}
}

// TestTails cuts a log after each byte, and puts zeros behind: harmless where a broker may have died, and wrong where it stopped in order.
func TestTails(t *testing.T) {
	dir := stopped(t)
	list := files(t, dir, "*.log")
	file := list[len(list)-1]
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, kind := range []string{"index", "timeindex"} { // they would tell
		require.NoError(t, os.Truncate(strings.TrimSuffix(file, "log")+kind, 0))
	}
	alone := filepath.Join(t.TempDir(), "t-0")
	require.NoError(t, os.CopyFS(alone, os.DirFS(filepath.Join(dir, "t-0"))))
	require.NoError(t, os.RemoveAll(filepath.Join(alone, "leader-epoch-checkpoint")))
	for _, name := range []string{"*.txnindex", "*.snapshot"} {
		l, err := filepath.Glob(filepath.Join(alone, name))
		require.NoError(t, err)
		for _, f := range l {
			require.NoError(t, os.Remove(f))
		}
	}
	for n := range len(whole) {
		for _, zeros := range []int{0, 300} {
			tail := append(bytes.Clone(whole[:n]), make([]byte, zeros)...)
			require.NoError(t, os.WriteFile(filepath.Join(alone, filepath.Base(file)), tail, 0o600))
			require.NoError(t, os.WriteFile(file, tail, 0o600))
			r := verify(t, alone)
			// With zeros behind, a batch that lacks only zeros is whole, and one that lacks a few bytes can't be told from a bad one.
			if zeros == 0 {
				require.Zero(t, r.Faults(), "%d bytes: %s", n, texts(r))
			}
			require.NotZero(t, verify(t, dir).Faults(), "%d bytes and %d zeros", n, zeros)
		}
	}
	// Zeros alone, behind whole batches.
	require.NoError(t, os.WriteFile(filepath.Join(alone, filepath.Base(file)), append(bytes.Clone(whole), make([]byte, 5000)...), 0o600))
	r := verify(t, alone)
	require.Zero(t, r.Faults())
	require.Contains(t, texts(r), "harmless: 5000 zeros, space for the next batches")
	// Half a batch before another segment.
	require.NoError(t, os.Truncate(filepath.Join(alone, filepath.Base(list[0])), 100))
	r = verify(t, alone)
	require.Contains(t, texts(r), "another segment follows")
}

func TestFaults(t *testing.T) {
	replace := func(file, old, with string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(b), old)
			require.NoError(t, os.WriteFile(path, bytes.Replace(b, []byte(old), []byte(with), 1), 0o600))
		}
	}
	for want, change := range map[string]func(t *testing.T, dir string){
		"the broker stopped with all up to 12 on the device": replace("recovery-point-offset-checkpoint", "t 0 11", "t 0 12"),
		"below its high watermark, 12":                       replace("replication-offset-checkpoint", "t 0 11", "t 0 12"),
		"counts \"2\" rows and has 1":                        replace("replication-offset-checkpoint", "0\n1\n", "0\n2\n"),
		"is of epoch 0":                                      replace("t-0/leader-epoch-checkpoint", "5 4", "5 6"),
		"behind epoch 0 from 0 on":                           replace("t-0/leader-epoch-checkpoint", "5 4", "0 4"),
		"want a topic_id":                                    replace("t-0/partition.metadata", "topic_id: ", "topic_id: x"),
		"is no directory of a partition": func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "backup"), 0o700))
		},
		"there is no segment": func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "t-1"), 0o700))
		},
		".timeindex: is missing": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(files(t, dir, "*.timeindex")[0]))
		},
		"harmless: there is no such segment": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "t-0", "00000000000000000001.index"), nil, 0o600))
		},
		"begins before 1": func(t *testing.T, dir string) {
			list := files(t, dir, "*.log")
			b, err := os.ReadFile(list[1])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "t-0", fmt.Sprintf("%020d.log", 1)), b, 0o600))
		},
	} {
		t.Run(want, func(t *testing.T) {
			dir := stopped(t)
			change(t, dir)
			require.Contains(t, texts(verify(t, dir)), want)
		})
	}
	_, err := inspect.Verify(t.TempDir(), inspect.Options{})
	require.ErrorContains(t, err, "neither a log directory nor a partition's")
}

// TestFollowersIndexes has an entry as Apache Kafka's followers write it: the position of the first of some batches, and the last offset
// of the last.
func TestFollowersIndexes(t *testing.T) {
	dir := t.TempDir()
	var data []byte
	var at []int
	for i := range int64(6) {
		at = append(at, len(data))
		data = append(data, built(t, record.Options{BaseOffset: i}, record.Record{Offset: i, Timestamp: i, Value: []byte("v")})...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), data, 0o600))
	index := func(entries ...int) string {
		var b []byte
		for i := 0; i < len(entries); i += 2 {
			b = append(b, 0, 0, 0, byte(entries[i]), 0, 0, byte(entries[i+1]>>8), byte(entries[i+1]))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000000000000000.index"), append(b, make([]byte, 800)...), 0o600))
		return texts(verify(t, dir))
	}
	require.Empty(t, index(3, at[2], 5, at[5]), "with zeros behind, as while it is mapped")
	r, err := inspect.Verify(dir, inspect.Options{Exact: true})
	require.NoError(t, err)
	require.Contains(t, texts(r), "entry 0: offset 3, but the batch at")
	require.Contains(t, index(4, at[2], 5, at[4]), "entry 0: no batch from")
	require.Contains(t, index(1, at[2]), "entry 0: no batch ends with offset 1")
	require.Contains(t, index(6, at[2]), "ends with offset 6")
	require.Contains(t, index(3, at[2]+1), "no batch begins at")
	require.Contains(t, index(9, 900), "no batch begins at 900")
	require.Contains(t, index(3, at[2], 3, at[3]), "follows")
}

// TestLegacy reads messages of formats 0 and 1, as Kafka wrote them before 0.11.
func TestLegacy(t *testing.T) {
	batch := built(t, record.Options{}, record.Record{Timestamp: 5, Key: []byte("k"), Value: []byte("v")}, record.Record{Offset: 1, Timestamp: 6, Value: []byte("w")})
	for magic := range int8(2) {
		dir := t.TempDir()
		data, err := record.DownConvert(nil, batch, magic, 0, nil, 1<<20)
		require.NoError(t, err)
		file := filepath.Join(dir, "00000000000000000000.log")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		r := verify(t, dir)
		require.Empty(t, texts(r))
		require.Equal(t, 2, r.Batches)
		require.Equal(t, 2, r.Records)
		second := len(data) / 2
		if magic == 0 || len(data)%2 != 0 {
			second = 12 + int(data[11])
		}
		data[second+12+6] ^= 1
		require.NoError(t, os.WriteFile(file, data, 0o600))
		require.Contains(t, texts(verify(t, dir)), "checksum is")
	}
}
