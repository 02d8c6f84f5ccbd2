package producers

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/record"
)

func header(id int64, epoch int16, sequence int32, n int32, offset int64, txn bool) record.Header {
	h := record.Header{BaseOffset: offset, LastOffsetDelta: n - 1, ProducerID: id, ProducerEpoch: epoch, BaseSequence: sequence, Count: n, MaxTimestamp: offset * 10}
	if txn {
		h.Attributes |= record.AttrTransactional
	}
	return h
}

func TestCheck(t *testing.T) {
	table := New()
	// Producer 1 has sequences 5-6, 7, 8 in epoch 3; producer 2 a transaction; 3 only a marker that raised its epoch.
	for _, h := range []record.Header{header(1, 3, 5, 2, 0, false), header(1, 3, 7, 1, 2, false), header(1, 3, 8, 1, 3, false), header(2, 0, math.MaxInt32, 1, 4, true)} {
		_, duplicate, err := table.Check(h, Client)
		require.NoError(t, err)
		require.False(t, duplicate)
		table.Apply(h)
	}
	table.Apply(header(3, 0, 0, 1, 5, true))
	table.ApplyMarker(3, 1, 0, 6, 60, true)
	for _, tc := range []struct {
		name   string
		h      record.Header
		origin Origin
		before int64 // offset of the batch it repeats, -1 for none
		err    error
	}{
		{"next", header(1, 3, 9, 4, 9, false), Client, -1, nil},
		{"gap", header(1, 3, 10, 1, 9, false), Client, -1, ErrOutOfOrder},
		{"again", header(1, 3, 5, 2, 9, false), Client, 0, nil},
		{"again, the last", header(1, 3, 8, 1, 9, false), Client, 3, nil},
		{"half of it again", header(1, 3, 5, 1, 9, false), Client, -1, ErrOutOfOrder},
		{"two in one", header(1, 3, 7, 2, 9, false), Client, -1, ErrOutOfOrder},
		{"older epoch", header(1, 2, 9, 1, 9, false), Client, -1, ErrEpoch},
		{"older epoch, a sequence that was there", header(1, 2, 8, 1, 9, false), Client, -1, ErrEpoch},
		{"new epoch from 0", header(1, 4, 0, 1, 9, false), Client, -1, nil},
		{"new epoch from elsewhere", header(1, 4, 9, 1, 9, false), Client, -1, ErrOutOfOrder},
		{"unknown producer", header(9, 4, 77, 1, 9, false), Client, -1, nil},
		{"no producer", header(-1, -1, -1, 1, 9, false), Client, -1, nil},
		{"wrapped", header(2, 0, 0, 1, 9, true), Client, -1, nil},
		{"not wrapped", header(2, 0, 1, 1, 9, true), Client, -1, ErrOutOfOrder},
		{"outside of the transaction", header(2, 0, 0, 1, 9, false), Client, -1, ErrTxnState},
		{"after a marker's epoch", header(3, 1, 0, 1, 9, true), Client, -1, nil},
		{"after a marker's epoch, not from 0", header(3, 1, 1, 1, 9, true), Client, -1, ErrOutOfOrder},
		{"before a marker's epoch", header(3, 0, 1, 1, 9, true), Client, -1, ErrEpoch},
		{"coordinator, any sequence", header(1, 3, -1, 1, 9, false), Coordinator, -1, nil},
		{"coordinator, again", header(1, 3, 8, 1, 9, false), Coordinator, -1, nil},
		{"coordinator, older epoch", header(1, 2, -1, 1, 9, false), Coordinator, -1, ErrEpoch},
		{"replica", header(1, 2, 99, 1, 9, false), Replica, -1, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, duplicate, err := table.Check(tc.h, tc.origin)
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, tc.before >= 0, duplicate)
			if duplicate {
				require.Equal(t, tc.before, b.BaseOffset())
				require.Equal(t, (b.LastOffset)*10, b.Timestamp+int64(b.OffsetDelta)*10)
			}
		})
	}
	require.NoError(t, table.CheckMarker(9, 0, 0))
	require.NoError(t, table.CheckMarker(3, 1, 0))
	require.ErrorIs(t, table.CheckMarker(3, 0, 5), ErrEpoch)
	table.ApplyMarker(3, 1, 5, 7, 70, false)
	require.ErrorIs(t, table.CheckMarker(3, 1, 4), ErrCoordinatorFenced)
}

func TestUnstable(t *testing.T) {
	table := New()
	require.EqualValues(t, math.MaxInt64, table.FirstUnstable())
	table.Apply(header(1, 0, 0, 2, 0, true))
	table.Apply(header(2, 0, 0, 2, 2, true))
	table.Apply(header(1, 0, 2, 2, 4, true))
	require.EqualValues(t, 0, table.FirstUnstable())
	txn, ended := table.ApplyMarker(1, 0, 0, 6, 0, true)
	require.True(t, ended)
	require.Equal(t, Txn{1, 0, 6, true}, txn)
	require.EqualValues(t, 2, table.FirstOpen(99))
	require.EqualValues(t, 0, table.FirstUnstable())
	table.Replicated(6)
	require.EqualValues(t, 0, table.FirstUnstable())
	table.Replicated(7)
	require.EqualValues(t, 2, table.FirstUnstable())
	_, ended = table.ApplyMarker(1, 0, 0, 7, 0, true)
	require.False(t, ended, "nothing was open")
	_, ended = table.ApplyMarker(2, 0, 0, 8, 0, false)
	require.True(t, ended)
	table.Replicated(9)
	require.EqualValues(t, math.MaxInt64, table.FirstUnstable())
	require.EqualValues(t, 99, table.FirstOpen(99))
}

func TestExpire(t *testing.T) {
	table := New()
	table.Apply(header(1, 0, 0, 1, 10, false)) // timestamp 100
	table.Apply(header(2, 0, 0, 1, 20, true))
	require.Zero(t, table.Expire(199, 100))
	require.Equal(t, 1, table.Expire(200, 100))
	require.Zero(t, table.Expire(1<<40, 100), "a transaction is open")
	require.Equal(t, 1, table.Len())
}

// The bytes of a snapshot, field by field.
const golden = `0001 063bd23d 00000002
	0000000000000007 0003 00000008 000000000000002a 00000001 00000000000001a4 ffffffff ffffffffffffffff
	0000000000000009 0001 ffffffff ffffffffffffffff 00000000 00000000000001ae 00000005 ffffffffffffffff`

func TestSnapshotGolden(t *testing.T) {
	table := New()
	table.Apply(header(7, 3, 5, 2, 30, false))
	table.Apply(header(7, 3, 7, 2, 41, true))
	table.ApplyMarker(9, 1, 5, 43, 430, false)
	p := table.producers[7]
	p.LastTimestamp, p.TxnFirst = 420, -1
	table.open = nil
	b := table.AppendSnapshot(nil)
	require.Equal(t, golden, spaced(b))
}

// spaced writes a snapshot with a space between its fields and an entry per line.
func spaced(b []byte) string {
	out := ""
	take := func(widths ...int) {
		for i, n := range widths {
			if i > 0 {
				out += " "
			}
			out += hex.EncodeToString(b[:n])
			b = b[n:]
		}
	}
	take(2, 4, 4)
	for len(b) > 0 {
		out += "\n\t"
		take(8, 2, 4, 8, 4, 8, 4, 8)
	}
	return out
}

// Whatever happened, the snapshot keeps what Kafka's keeps, and the table made of it answers alike.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New()
		offset := int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			id := rapid.Int64Range(1, 4).Draw(t, "id")
			p, known := table.Get(id)
			if rapid.IntRange(0, 3).Draw(t, "marker") == 0 {
				table.ApplyMarker(id, p.Epoch, 1, offset, offset, rapid.Bool().Draw(t, "abort"))
				offset++
				continue
			}
			sequence := int32(0)
			if known && p.LastSequence() >= 0 {
				sequence = record.AddSequence(p.LastSequence(), 1)
			} else if !known {
				sequence = rapid.Int32Range(math.MaxInt32-3, math.MaxInt32).Draw(t, "first")
			}
			h := header(id, p.Epoch, sequence, rapid.Int32Range(1, 3).Draw(t, "n"), offset, p.TxnFirst >= 0 && known || rapid.Bool().Draw(t, "txn"))
			_, duplicate, err := table.Check(h, Client)
			if err != nil || duplicate {
				t.Fatalf("%+v: %v %v", h, duplicate, err)
			}
			table.Apply(h)
			offset = h.LastOffset() + 1
		}
		table.Replicated(math.MaxInt64)
		again := New()
		if err := again.ReadSnapshot(table.AppendSnapshot([]byte("x"))[1:]); err != nil {
			t.Fatal(err)
		}
		if again.FirstUnstable() != table.FirstUnstable() || again.Len() != table.Len() {
			t.Fatal("transactions or producers were lost")
		}
		for _, p := range table.All() {
			q, _ := again.Get(p.ID)
			if p.LastSequence() != q.LastSequence() || p.Epoch != q.Epoch || p.TxnFirst != q.TxnFirst || p.CoordinatorEpoch != q.CoordinatorEpoch {
				t.Fatalf("%+v became %+v", p, q)
			}
			if p.n > 0 && (q.n != 1 || p.batches[p.n-1].BaseOffset() != q.batches[0].BaseOffset() || p.batches[p.n-1].FirstSequence != q.batches[0].FirstSequence) {
				t.Fatalf("%+v became %+v", p, q)
			}
		}
		if string(again.AppendSnapshot(nil)) != string(table.AppendSnapshot(nil)) {
			t.Fatal("the second snapshot differs")
		}
	})
}

func TestSnapshotRefuses(t *testing.T) {
	table := New()
	table.Apply(header(7, 3, 5, 2, 30, true))
	good := table.AppendSnapshot(nil)
	for cut := range good {
		require.ErrorIs(t, New().ReadSnapshot(good[:cut]), ErrSnapshot)
	}
	for i := range good {
		b := append([]byte(nil), good...)
		b[i] ^= 1
		other := New()
		require.ErrorIs(t, other.ReadSnapshot(b), ErrSnapshot)
		require.Zero(t, other.Len())
	}
}

func FuzzSnapshot(f *testing.F) {
	table := New()
	f.Add(table.AppendSnapshot(nil))
	table.Apply(header(7, 3, 5, 2, 30, true))
	f.Add(table.AppendSnapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= crcFrom { // so that more than the checksum is tried
			fixChecksum(b)
		}
		table := New()
		if table.ReadSnapshot(b) == nil {
			if err := New().ReadSnapshot(table.AppendSnapshot(nil)); err != nil {
				t.Fatal(err)
			}
		} else if table.Len() != 0 {
			t.Fatal("something is left of a bad snapshot")
		}
	})
}

func fixChecksum(b []byte) {
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
}

// TestWithoutRecordsNothingBegins applies what compaction leaves of a batch whose transaction is over.
func TestWithoutRecordsNothingBegins(t *testing.T) {
	table := New()
	h := header(1, 0, 7, 3, 5, true)
	h.Count = 0
	table.Apply(h)
	require.True(t, table.Opens(header(1, 0, 10, 1, 20, true)))
	_, _, err := table.Check(header(1, 0, 10, 1, 20, true), Client)
	require.NoError(t, err, "its sequence counts")
}
