package offsets

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShardOf has values of Java's String.hashCode, modulo 50.
func TestShardOf(t *testing.T) {
	hashes := map[string]int32{
		"":                   0,
		"a":                  97,
		"abc":                96354,
		"hello":              99162322,
		"polygenelubricants": -2147483648,
		"ü":                  252,
		"\U0001f600":         31*0xd83d + 0xde00, // two UTF-16 units
	}
	for s, want := range hashes {
		require.Equal(t, want, javaHash(s), "%q", s)
	}
	require.EqualValues(t, 0, ShardOf("polygenelubricants", 50), "the number without an absolute value")
	require.EqualValues(t, 96354%50, ShardOf("abc", 50))
	require.EqualValues(t, 96354%7, ShardOf("abc", 7), "the real number of partitions counts")
	require.EqualValues(t, 0, ShardOf("anything", 1))
	negative := "some-group-with-a-negative-hash-0"
	for i := byte('0'); javaHash(negative) >= 0; i++ {
		negative = negative[:len(negative)-1] + string(i) + "zz"
	}
	require.EqualValues(t, -javaHash(negative)%50, ShardOf(negative, 50))
}
