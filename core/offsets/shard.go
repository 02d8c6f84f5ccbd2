package offsets

import (
	"math"
	"unicode/utf16"
)

// ShardOf gives the shard of a group among n: the absolute value of the Java String.hashCode of its name, which counts
// UTF-16 units, modulo n. The one value without an absolute value, -2147483648, counts as 0. n is at least 1.
func ShardOf(group string, n int32) int32 {
	h := javaHash(group)
	if h == math.MinInt32 {
		h = 0
	}
	return max(h, -h) % n
}

func javaHash(s string) (h int32) {
	for _, r := range s {
		if r < 0x10000 {
			h = 31*h + r
			continue
		}
		high, low := utf16.EncodeRune(r)
		h = 31*(31*h+high) + low
	}
	return h
}
