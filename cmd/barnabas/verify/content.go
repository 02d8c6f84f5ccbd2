package verify

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// mark is what the value of every record of every run begins with.
const mark = "barnabas-verify "

// padding fills records up. It repeats, so that compression has something to do.
const padding = "the quick brown fox jumps over the lazy dog 0123456789 "

// value makes the content of a record: text that says whose it is, filled up to size, with a checksum at its end over key and
// value. So any change of the bytes shows, whatever the broker's own checksums say.
//
//	barnabas-verify RUN PARTITION PRODUCER SEQUENCE PADDING CHECKSUM
func value(run string, partition, producer, sequence int32, size int) (key, value []byte) {
	key = fmt.Appendf(nil, "producer %d", producer)
	b := make([]byte, 0, size)
	b = fmt.Appendf(b, "%s%s %d %d %d ", mark, run, partition, producer, sequence)
	const sum = 9 // a space and eight digits
	for at := int(sequence); len(b) < size-sum; at = 0 {
		at %= len(padding)
		b = append(b, padding[at:min(len(padding), at+size-sum-len(b))]...)
	}
	return key, fmt.Appendf(b, " %08x", checksum(key, b))
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, value)
}

// recognize says what a record of a partition is.
func recognize(run string, partition int32, key, value []byte) history.Seen {
	sum := checksum(key, value)
	rest, ours := bytes.CutPrefix(value, []byte(mark))
	words := bytes.SplitN(rest, []byte(" "), 5)
	if !ours || len(words) < 5 {
		return history.Seen{What: history.Others, Sum: sum}
	}
	if string(words[0]) != run {
		return history.Seen{What: history.Others, Sum: sum}
	}
	space := bytes.LastIndexByte(value, ' ')
	var numbers [3]int32
	ok := string(value[space+1:]) == fmt.Sprintf("%08x", checksum(key, value[:space]))
	for i := range numbers {
		n, err := strconv.ParseInt(string(words[i+1]), 10, 32)
		numbers[i], ok = int32(n), ok && err == nil
	}
	if !ok || numbers[0] != partition {
		return history.Seen{What: history.Garbled, Sum: sum}
	}
	return history.Seen{What: history.Record, Producer: numbers[1], Sequence: numbers[2]}
}
