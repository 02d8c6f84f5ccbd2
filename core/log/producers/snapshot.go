package producers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/barnabas-mq/barnabas/core/record"
)

// ErrSnapshot says that a snapshot can't be read: it is torn, altered, or of a version this package doesn't know.
var ErrSnapshot = errors.New("producer snapshot is corrupt")

// The shape of a snapshot, as Kafka's ProducerStateManager writes it: int16 version 1, uint32 CRC-32C of all that follows,
// int32 count, and for each producer: int64 id, int16 epoch, int32 last sequence, int64 last offset, int32 offset delta,
// int64 timestamp, int32 coordinator epoch, int64 first offset of the open transaction.
const (
	snapshotVersion = 1
	snapshotHeader  = 10
	snapshotEntry   = 46
	crcFrom         = 6
)

// AppendSnapshot appends the table's snapshot to b. Of each producer only the last batch survives, as in Kafka; producers
// are in the order of their ids.
func (t *Table) AppendSnapshot(b []byte) []byte {
	start := len(b)
	be := binary.BigEndian
	b = be.AppendUint16(b, snapshotVersion)
	b = be.AppendUint32(b, 0)
	b = be.AppendUint32(b, uint32(len(t.producers)))
	for _, p := range t.All() {
		last := Batch{FirstSequence: record.NoSequence, LastSequence: record.NoSequence, LastOffset: -1}
		if p.n > 0 {
			last = p.batches[p.n-1]
		}
		b = be.AppendUint64(b, uint64(p.ID))
		b = be.AppendUint16(b, uint16(p.Epoch))
		b = be.AppendUint32(b, uint32(last.LastSequence))
		b = be.AppendUint64(b, uint64(last.LastOffset))
		b = be.AppendUint32(b, uint32(last.OffsetDelta))
		b = be.AppendUint64(b, uint64(p.LastTimestamp))
		b = be.AppendUint32(b, uint32(p.CoordinatorEpoch))
		b = be.AppendUint64(b, uint64(p.TxnFirst))
	}
	be.PutUint32(b[start+2:], crc32.Checksum(b[start+crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// ReadSnapshot makes the table what the snapshot says. After ErrSnapshot the table is empty.
func (t *Table) ReadSnapshot(b []byte) error {
	t.Clear()
	be := binary.BigEndian
	if len(b) < snapshotHeader {
		return fmt.Errorf("%w: %d bytes", ErrSnapshot, len(b))
	}
	if v := be.Uint16(b); v != snapshotVersion {
		return fmt.Errorf("%w: version %d, want %d", ErrSnapshot, v, snapshotVersion)
	}
	if want, got := be.Uint32(b[2:]), crc32.Checksum(b[crcFrom:], crc32.MakeTable(crc32.Castagnoli)); want != got {
		return fmt.Errorf("%w: checksum is %08x, the bytes have %08x", ErrSnapshot, want, got)
	}
	count := int64(int32(be.Uint32(b[6:])))
	if int64(len(b)-snapshotHeader) != count*snapshotEntry {
		return fmt.Errorf("%w: %d producers in %d bytes", ErrSnapshot, count, len(b))
	}
	for b = b[snapshotHeader:]; len(b) > 0; b = b[snapshotEntry:] {
		p := &Producer{
			ID:               int64(be.Uint64(b)),
			Epoch:            int16(be.Uint16(b[8:])),
			LastTimestamp:    int64(be.Uint64(b[26:])),
			CoordinatorEpoch: int32(be.Uint32(b[34:])),
			TxnFirst:         int64(be.Uint64(b[38:])),
		}
		last := Batch{LastSequence: int32(be.Uint32(b[10:])), LastOffset: int64(be.Uint64(b[14:])), OffsetDelta: int32(be.Uint32(b[22:])), Timestamp: p.LastTimestamp}
		if p.ID < 0 || last.OffsetDelta < 0 || p.TxnFirst < -1 || t.producers[p.ID] != nil {
			t.Clear()
			return fmt.Errorf("%w: producer %d", ErrSnapshot, p.ID)
		}
		if last.LastSequence >= 0 && last.LastOffset >= 0 {
			last.FirstSequence = record.AddSequence(last.LastSequence, -last.OffsetDelta)
			p.remember(last)
		}
		if t.producers == nil {
			t.producers = make(map[int64]*Producer, count)
		}
		t.producers[p.ID] = p
		if p.TxnFirst >= 0 {
			t.open = append(t.open, span{first: p.TxnFirst, id: p.ID})
		}
	}
	slices.SortFunc(t.open, func(a, b span) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	return nil
}
