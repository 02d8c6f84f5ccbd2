package replication

import (
	"unicode/utf16"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// fetcherOf is the number of the fetcher, of n, that fetches a partition: Kafka's abs(31*hash(topic)+partition) mod n.
func fetcherOf(id partition.ID, n int) int {
	h := 31*javaHash(id.Topic) + id.Partition
	switch {
	case h == -1<<31: // whose absolute value is no int32
		h = 0
	case h < 0:
		h = -h
	}
	return int(h) % max(n, 1)
}

// javaHash is String.hashCode, which goes over UTF-16.
func javaHash(s string) int32 {
	h := int32(0)
	for _, c := range s {
		if c < 1<<16 {
			h = 31*h + c
			continue
		}
		hi, lo := utf16.EncodeRune(c)
		h = 31*(31*h+hi) + lo
	}
	return h
}
