package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Kafka's first lz4 writer computed the header checksum of its frames over the
// frame's magic number, too, where the format begins behind it. Messages of
// format 0 keep that for good: readers there ignore the checksum, and writers
// write the wrong one; from format 1 on it is right (KAFKA-3160).

// The header of an lz4 frame: magic number, flags, block size, optionally the
// content's size and a dictionary's id, checksum.
const (
	lz4Magic       = 0x184d2204 // little-endian
	lz4Descriptor  = 4
	lz4SizeFlag    = 0x08
	lz4DictFlag    = 0x01
	lz4MinHeader   = 7
	lz4MaxChecksum = 15 // bytes that xxh32Short can take
)

// lz4ChecksumAt returns where the header checksum of the frame lies; 0 when
// block starts no frame.
func lz4ChecksumAt(block []byte) int {
	if len(block) < lz4MinHeader || binary.LittleEndian.Uint32(block) != lz4Magic {
		return 0
	}
	at := lz4Descriptor + 2
	if block[lz4Descriptor]&lz4SizeFlag != 0 {
		at += 8
	}
	if block[lz4Descriptor]&lz4DictFlag != 0 {
		at += 4
	}
	if at >= len(block) {
		return 0
	}
	return at
}

// rightLZ4Checksum returns block with the header checksum the format asks for.
// block itself is left alone. What is no frame comes back as it is.
func rightLZ4Checksum(block []byte) []byte { return setLZ4Checksum(block, lz4Descriptor) }

// wrongLZ4Checksum returns block with the checksum of message format 0.
func wrongLZ4Checksum(block []byte) []byte { return setLZ4Checksum(block, 0) }

func setLZ4Checksum(block []byte, from int) []byte {
	at := lz4ChecksumAt(block)
	if at == 0 || at-from > lz4MaxChecksum {
		return block
	}
	sum := byte(xxh32Short(block[from:at]) >> 8)
	if block[at] == sum {
		return block
	}
	out := bytes.Clone(block)
	out[at] = sum
	return out
}

// xxh32Short is the 32-bit xxHash with seed 0 of at most 15 bytes.
func xxh32Short(b []byte) uint32 {
	const (
		prime1 = 2654435761
		prime2 = 2246822519
		prime3 = 3266489917
		prime4 = 668265263
		prime5 = 374761393
	)
	h := uint32(prime5) + uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h += binary.LittleEndian.Uint32(b) * prime3
		h = bits.RotateLeft32(h, 17) * prime4
	}
	for _, c := range b {
		h += uint32(c) * prime5
		h = bits.RotateLeft32(h, 11) * prime1
	}
	h ^= h >> 15
	h *= prime2
	h ^= h >> 13
	h *= prime3
	return h ^ h>>16
}
