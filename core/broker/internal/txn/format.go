package txn

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// ErrCorrupt says that bytes make no record of a transaction, ErrUnsupported that they make one of a version that isn't known.
var (
	ErrCorrupt     = errors.New("corrupt transaction record")
	ErrUnsupported = errors.New("unsupported version of a transaction record")
)

// Record is what is stored of a transactional id.
type Record struct {
	ProducerID int64
	Epoch      int16
	Timeout    time.Duration // whole milliseconds
	State      State
	// Partitions are those of the open transaction, or of the one whose markers are being written; sorted, each once.
	Partitions []partition.ID
	// Updated is the time of the change, Started when the transaction began, -1 before the first one; milliseconds.
	Updated, Started int64
}

// The versions that are written. Version 1 of the value is the flexible twin that needs transaction.version 1 or above; it is
// read, for brokers that wrote it may have had this directory before.
const (
	keyVersion   = 0
	valueVersion = 0
	valueNewest  = 1
)

// maxID is the longest transactional id that a key has room for, in bytes.
const maxID = 1<<15 - 1

// AppendKey appends the key of a record of `__transaction_state` (TransactionLogKey.json): int16 version 0, then the
// transactional id as a string with an int16 length.
func AppendKey(b []byte, id string) ([]byte, error) {
	if len(id) > maxID {
		return b, fmt.Errorf("%w: transactional id of %d bytes", ErrInvalidRequest, len(id))
	}
	b = binary.BigEndian.AppendUint16(b, keyVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(len(id)))
	return append(b, id...), nil
}

// ParseKey reads a key. ok is false for one of a kind that isn't known.
func ParseKey(b []byte) (id string, ok bool, err error) {
	if len(b) < 2 {
		return "", false, fmt.Errorf("%w: key of %d bytes", ErrCorrupt, len(b))
	}
	if binary.BigEndian.Uint16(b) != keyVersion {
		return "", false, nil
	}
	if len(b) < 4 || int(binary.BigEndian.Uint16(b[2:])) != len(b)-4 {
		return "", false, fmt.Errorf("%w: length of the transactional id", ErrCorrupt)
	}
	return string(b[4:]), true, nil
}

// AppendValue appends the value of a record of `__transaction_state` (TransactionLogValue.json): int16 version 0, int64
// producer id, int16 epoch, int32 timeout in ms, int8 state, the partitions by topic (null when the state is Empty), int64
// time of the change, int64 time of the start.
func AppendValue(b []byte, r Record) []byte {
	v := kmsg.NewTxnMetadataValue()
	v.Version = valueVersion
	v.ProducerID, v.ProducerEpoch = r.ProducerID, r.Epoch
	v.TimeoutMillis = int32(r.Timeout / time.Millisecond)
	v.State = kmsg.TransactionState(r.State)
	if r.State != Empty {
		v.Topics = []kmsg.TxnMetadataValueTopic{}
	}
	for _, p := range r.Partitions {
		n := len(v.Topics) - 1
		if n < 0 || v.Topics[n].Topic != p.Topic {
			t := kmsg.NewTxnMetadataValueTopic()
			t.Topic = p.Topic
			v.Topics = append(v.Topics, t)
			n++
		}
		v.Topics[n].Partitions = append(v.Topics[n].Partitions, p.Partition)
	}
	v.LastUpdateTimestamp, v.StartTimestamp = r.Updated, r.Started
	return v.AppendTo(b)
}

// ParseValue reads a value.
func ParseValue(b []byte) (Record, error) {
	if len(b) < 2 {
		return Record{}, fmt.Errorf("%w: value of %d bytes", ErrCorrupt, len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v < 0 || v > valueNewest {
		return Record{}, fmt.Errorf("%w: %d", ErrUnsupported, v)
	}
	var v kmsg.TxnMetadataValue
	if err := v.ReadFrom(b); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r := Record{
		ProducerID: v.ProducerID,
		Epoch:      v.ProducerEpoch,
		Timeout:    time.Duration(v.TimeoutMillis) * time.Millisecond,
		State:      State(v.State),
		Updated:    v.LastUpdateTimestamp,
		Started:    v.StartTimestamp,
	}
	if r.State < Empty || r.State > Dead || r.ProducerID < 0 || r.Epoch < 0 {
		return Record{}, fmt.Errorf("%w: state %d, producer %d, epoch %d", ErrCorrupt, r.State, r.ProducerID, r.Epoch)
	}
	for _, t := range v.Topics {
		for _, p := range t.Partitions {
			r.Partitions = append(r.Partitions, partition.ID{Topic: t.Topic, Partition: p})
		}
	}
	r.Partitions = sorted(r.Partitions)
	return r, nil
}

// sorted sorts partitions and leaves each in once.
func sorted(list []partition.ID) []partition.ID {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

func compare(a, b partition.ID) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
