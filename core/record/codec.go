package record

import (
	"fmt"
	"strconv"
)

// Codec is the compression of a batch, with Kafka's numbers: the low three
// bits of a batch's attributes.
type Codec int8

// The codecs of Kafka's message format.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd"}

// Valid reports whether c is one of the five codecs that exist.
func (c Codec) Valid() bool { return c >= None && c <= Zstd }

// String returns the name Kafka's configuration uses, such as "lz4".
func (c Codec) String() string {
	if !c.Valid() {
		return "codec " + strconv.Itoa(int(c))
	}
	return codecNames[c]
}

// ParseCodec returns the codec of that name. "uncompressed", the name of None
// in the topic configuration compression.type, is accepted as well.
func ParseCodec(name string) (Codec, error) {
	for i, n := range codecNames {
		if n == name {
			return Codec(i), nil
		}
	}
	if name == "uncompressed" {
		return None, nil
	}
	return None, fmt.Errorf("unknown compression %q: want none, gzip, snappy, lz4 or zstd", name)
}
