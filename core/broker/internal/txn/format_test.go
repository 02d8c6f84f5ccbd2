package txn

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// TestGolden holds the bytes against those of TransactionLogKey.json and TransactionLogValue.json, written out by hand.
func TestGolden(t *testing.T) {
	key, err := AppendKey(nil, "abc")
	require.NoError(t, err)
	require.Equal(t, "0000"+"0003616263", hex.EncodeToString(key))
	for _, tc := range []struct {
		name string
		r    Record
		want string
	}{
		{"empty", Record{ProducerID: 7, Epoch: 2, Timeout: time.Minute, State: Empty, Updated: 258, Started: -1},
			"0000" + "0000000000000007" + "0002" + "0000ea60" + "00" + "ffffffff" + "0000000000000102" + "ffffffffffffffff"},
		{"ongoing", Record{ProducerID: 7, Epoch: 2, Timeout: time.Minute, State: Ongoing, Updated: 258, Started: 257,
			Partitions: []partition.ID{{Topic: "t", Partition: 1}, {Topic: "t", Partition: 3}, {Topic: "u", Partition: 0}}},
			"0000" + "0000000000000007" + "0002" + "0000ea60" + "01" +
				"00000002" + "000174" + "00000002" + "00000001" + "00000003" + "000175" + "00000001" + "00000000" +
				"0000000000000102" + "0000000000000101"},
		{"complete", Record{ProducerID: 7, Epoch: 2, Timeout: time.Minute, State: CompleteCommit, Updated: 258, Started: 257},
			"0000" + "0000000000000007" + "0002" + "0000ea60" + "04" + "00000000" + "0000000000000102" + "0000000000000101"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := AppendValue(nil, tc.r)
			require.Equal(t, tc.want, hex.EncodeToString(b))
			back, err := ParseValue(b)
			require.NoError(t, err)
			require.Equal(t, tc.r, back)
		})
	}
}

func TestParseWhatOthersWrote(t *testing.T) {
	unhex := func(s string) []byte { b, err := hex.DecodeString(s); require.NoError(t, err); return b }
	// version 1, flexible: compact arrays and strings, and the tagged previous producer id of Kafka 4
	r, err := ParseValue(unhex("0001" + "0000000000000007" + "0002" + "0000ea60" + "01" + "02" + "0274" + "02" + "00000001" + "00" +
		"0000000000000102" + "0000000000000101" + "01" + "0008" + "0000000000000006"))
	require.NoError(t, err)
	require.Equal(t, Record{ProducerID: 7, Epoch: 2, Timeout: time.Minute, State: Ongoing, Updated: 258, Started: 257,
		Partitions: []partition.ID{{Topic: "t", Partition: 1}}}, r)

	_, err = ParseValue(unhex("0002"))
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = ParseValue(nil)
	require.ErrorIs(t, err, ErrCorrupt)
	whole := AppendValue(nil, Record{ProducerID: 1, State: Ongoing, Partitions: []partition.ID{{Topic: "t", Partition: 1}}})
	for n := range len(whole) {
		_, err := ParseValue(whole[:n])
		require.Error(t, err, "cut at %d", n)
	}
	for name, r := range map[string]Record{"state": {State: 7}, "producer": {ProducerID: -1}, "epoch": {Epoch: -1}} {
		_, err := ParseValue(AppendValue(nil, r))
		require.ErrorIs(t, err, ErrCorrupt, name)
	}

	_, ok, err := ParseKey([]byte{0, 1, 0, 0})
	require.NoError(t, err)
	require.False(t, ok, "a newer kind of key")
	for _, bad := range []string{"", "00", "0000", "0000000161" + "62", "00000002" + "61"} {
		_, _, err := ParseKey(unhex(bad))
		require.ErrorIs(t, err, ErrCorrupt, bad)
	}
	_, err = AppendKey(nil, strings.Repeat("x", 1<<15))
	require.ErrorIs(t, err, ErrInvalidRequest)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 'a'}, AppendValue(nil, Record{ProducerID: 1, State: Ongoing, Partitions: []partition.ID{{Topic: "t", Partition: 1}}}))
	f.Add([]byte{0, 0}, []byte{0, 1})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if id, ok, err := ParseKey(key); err == nil && ok {
			back, err := AppendKey(nil, id)
			if err != nil || string(back) != string(key) {
				t.Fatalf("key %x became %x: %v", key, back, err)
			}
		}
		r, err := ParseValue(value)
		if err != nil {
			return
		}
		if r.State == Empty {
			r.Partitions = nil // not stored
		}
		if back, err := ParseValue(AppendValue(nil, r)); err != nil || len(back.Partitions) != len(r.Partitions) || back.ProducerID != r.ProducerID {
			t.Fatalf("%+v became %+v: %v", r, back, err)
		}
	})
}
