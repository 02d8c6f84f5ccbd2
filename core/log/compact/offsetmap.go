package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// A slot of an OffsetMap: the first 16 bytes of the key's SHA-256, and its offset. The hash is one that nobody can find a
// collision for: two keys with the same hash would be one key, and the older one's value be lost.
const (
	hashSize = 16
	slotSize = hashSize + 8
)

// OffsetMap maps keys to the last offset at which they were seen, in a fixed amount of memory: it keeps hashes of the keys
// instead of the keys, and there is no pointer in it. It is used by one goroutine at a time.
type OffsetMap struct {
	slots []byte // offsets are stored plus one: 0 is a free slot
	count int
	limit int
}

// NewOffsetMap makes a map that takes as many keys as fit into memory bytes when at most the share load of its slots is
// used, but no more than keys of them, if that is how many there can be. It takes at least one.
func NewOffsetMap(memory int64, load float64, keys int64) *OffsetMap {
	if !(load > 0) {
		load = DefaultLoad
	}
	load = min(load, 1)
	slots := max(memory/slotSize, 2)
	// One more than the share asks for, so that there is always a free slot where a search ends.
	if need := float64(max(keys, 1))/load + 2; need < float64(slots) {
		slots = int64(need)
	}
	m := &OffsetMap{slots: make([]byte, slots*slotSize)}
	m.limit = max(1, min(int(float64(slots)*load), int(slots)-1))
	return m
}

// DefaultLoad is the share of slots that are used at most, unless configured otherwise (log.cleaner.io.buffer.load.factor).
const DefaultLoad = 0.9

// Len is the number of keys.
func (m *OffsetMap) Len() int { return m.count }

// Limit is the number of keys that the map takes.
func (m *OffsetMap) Limit() int { return m.limit }

// Put notes the offset of a key, which must not be less than the one noted before. It is false when the key is a new one and
// the map is full; then nothing was noted.
func (m *OffsetMap) Put(key []byte, offset int64) bool {
	hash := hashOf(key)
	s := m.find(&hash)
	if binary.NativeEndian.Uint64(s[hashSize:]) == 0 {
		if m.count >= m.limit {
			return false
		}
		m.count++
		copy(s, hash[:])
	}
	binary.NativeEndian.PutUint64(s[hashSize:], uint64(offset)+1)
	return true
}

// Get gives the offset of a key, -1 when it was never noted.
func (m *OffsetMap) Get(key []byte) int64 {
	if m.count == 0 {
		return -1
	}
	hash := hashOf(key)
	return int64(binary.NativeEndian.Uint64(m.find(&hash)[hashSize:])) - 1
}

// find gives the slot of a hash, or the free one where it belongs.
func (m *OffsetMap) find(hash *[hashSize]byte) []byte {
	n := uint64(len(m.slots) / slotSize)
	for i := binary.LittleEndian.Uint64(hash[:]) % n; ; {
		s := m.slots[i*slotSize : (i+1)*slotSize]
		if binary.NativeEndian.Uint64(s[hashSize:]) == 0 || bytes.Equal(s[:hashSize], hash[:]) {
			return s
		}
		if i++; i == n {
			i = 0
		}
	}
}

func hashOf(key []byte) (hash [hashSize]byte) {
	sum := sha256.Sum256(key)
	copy(hash[:], sum[:])
	return hash
}
