package record

import "encoding/binary"

// The integers inside of a record are zig-zag varints: at most 5 bytes for 32
// bits, at most 10 for 64, as in Kafka's ByteUtils.

const (
	maxVarint32 = 5
	maxVarint64 = 10
)

// varint reads a 32-bit number; n is 0 when b ends too early or the number
// goes on for too long. Most numbers of a record have one byte: that case is
// inlined, the others are a call.
func varint(b []byte) (v int32, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int32(b[0]>>1) ^ -int32(b[0]&1), 1
	}
	return longVarint(b)
}

// varlong is varint for 64 bits.
func varlong(b []byte) (v int64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]>>1) ^ -int64(b[0]&1), 1
	}
	return longVarlong(b)
}

//go:noinline
func longVarint(b []byte) (v int32, n int) {
	u, n := uvarint(b, maxVarint32)
	return int32(uint32(u)>>1) ^ -int32(u&1), n
}

//go:noinline
func longVarlong(b []byte) (v int64, n int) {
	u, n := uvarint(b, maxVarint64)
	return int64(u>>1) ^ -int64(u&1), n
}

func uvarint(b []byte, most int) (u uint64, n int) {
	for i, c := range b[:min(len(b), most)] {
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return u, i + 1
		}
	}
	return 0, 0
}

func appendVarint(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func sizeVarint(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
