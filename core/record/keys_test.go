package record

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyCheck notes what it is asked, and refuses.
type keyCheck struct {
	asked  [][]string
	refuse []int32
	err    error
}

func (k *keyCheck) Refuse(keys [][]byte) ([]int32, error) {
	words := make([]string, len(keys))
	for i, key := range keys {
		words[i] = "null"
		if key != nil {
			words[i] = string(key)
		}
	}
	k.asked = append(k.asked, words)
	return k.refuse, k.err
}

// keyedSet makes a record set of a format with the keys a, null, "" and b.
func keyedSet(t testing.TB, magic byte, codec Codec) []byte {
	b := NewBuilder(Options{Codec: codec})
	for i, key := range [][]byte{[]byte("a"), nil, {}, []byte("b")} {
		require.NoError(t, b.Append(Record{Offset: int64(i), Key: key, Value: []byte("v")}))
	}
	batch, err := b.Build(nil, testCodecs{})
	require.NoError(t, err)
	if magic == Magic {
		return batch
	}
	old, err := DownConvert(nil, batch, int8(magic), 0, testCodecs{}, 1<<20)
	require.NoError(t, err)
	return old
}

// TestKeysAreChecked asks once for each set, of every format and codec, with the keys in their order.
func TestKeysAreChecked(t *testing.T) {
	v := NewValidator(testCodecs{})
	for _, magic := range []byte{0, 1, Magic} {
		for _, codec := range []Codec{None, Gzip} {
			k := &keyCheck{}
			rules := DefaultRules(1)
			rules.Keys = k
			_, err := v.Validate(keyedSet(t, magic, codec), &rules)
			require.NoError(t, err)
			require.Equal(t, [][]string{{"a", "null", "", "b"}}, k.asked, "format %d, %v", magic, codec)

			k = &keyCheck{refuse: []int32{0, 3}}
			rules.Keys = k
			_, err = v.Validate(keyedSet(t, magic, codec), &rules)
			require.ErrorIs(t, err, ErrInvalid)
			var named *RecordErrors
			require.ErrorAs(t, err, &named)
			require.Equal(t, []RecordError{{0, reasonElsewhere}, {3, reasonElsewhere}}, named.Records)

			down := errors.New("down")
			rules.Keys = &keyCheck{err: down}
			_, err = v.Validate(keyedSet(t, magic, codec), &rules)
			require.ErrorIs(t, err, down)
		}
	}
}

// TestKeysOfBadSetsAreNotChecked: what is wrong with records comes first.
func TestKeysOfBadSetsAreNotChecked(t *testing.T) {
	k := &keyCheck{}
	rules := DefaultRules(1)
	rules.Keys, rules.Compacted = k, true
	for _, magic := range []byte{1, Magic} {
		_, err := NewValidator(testCodecs{}).Validate(keyedSet(t, magic, None), &rules)
		require.ErrorIs(t, err, ErrInvalid, "a record without a key in a compacted topic")
	}
	require.Empty(t, k.asked)
}
