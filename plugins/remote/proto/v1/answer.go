package pluginv1

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
)

// PartitionAnswer is a PartitionResponse, in or out, whose memory is used again by the next one.
type PartitionAnswer struct {
	Error      *Error
	Partitions []int32
	Number     uint64 // call
	// Most bounds how many partitions are taken in; more are an error.
	Most int

	packed, failed int // bytes of partitions and error
}

// size implements outgoing.
func (a *PartitionAnswer) size() int {
	a.packed, a.failed = 0, 0
	for _, p := range a.Partitions {
		a.packed += protowire.SizeVarint(uint64(p))
	}
	n := 1 + protowire.SizeVarint(a.Number)
	if a.packed > 0 {
		n += 1 + protowire.SizeBytes(a.packed)
	}
	if a.Error != nil {
		a.failed = protobuf.Size(a.Error)
		n += 1 + protowire.SizeBytes(a.failed)
	}
	return n
}

// append implements outgoing. size came before.
func (a *PartitionAnswer) append(b []byte) ([]byte, error) {
	if a.Error != nil {
		b = appendLength(b, answerError, a.failed)
		var err error
		if b, err = (protobuf.MarshalOptions{UseCachedSize: true}).MarshalAppend(b, a.Error); err != nil {
			return b, err
		}
	}
	if a.packed > 0 {
		b = appendLength(b, answerPartitions, a.packed)
		for _, p := range a.Partitions {
			b = protowire.AppendVarint(b, uint64(p))
		}
	}
	b = protowire.AppendTag(b, answerCall, protowire.VarintType)
	return protowire.AppendVarint(b, a.Number), nil
}

// decode reads a PartitionResponse. It keeps nothing of b.
func (a *PartitionAnswer) decode(b []byte) error {
	a.Error, a.Partitions, a.Number = nil, a.Partitions[:0], 0
	return fields(b, func(number protowire.Number, kind protowire.Type, value []byte, v uint64) error {
		switch {
		case number == answerError && kind == protowire.BytesType:
			if a.Error == nil {
				a.Error = &Error{}
			}
			return protobuf.UnmarshalOptions{Merge: true}.Unmarshal(value, a.Error)
		case number == answerPartitions && kind == protowire.VarintType:
			return a.add(v)
		case number == answerPartitions && kind == protowire.BytesType:
			return varints(value, a.add)
		case number == answerCall && kind == protowire.VarintType:
			a.Number = v
		}
		return nil
	})
}

func (a *PartitionAnswer) add(v uint64) error {
	if len(a.Partitions) == a.Most {
		return fmt.Errorf("too large: more than %d partitions", a.Most)
	}
	a.Partitions = append(a.Partitions, int32(v))
	return nil
}

// fields calls each for every field of a message: value is that of one with a length, v that of a varint. Others are checked
// and passed over.
func fields(b []byte, each func(number protowire.Number, kind protowire.Type, value []byte, v uint64) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if number > protowire.MaxValidNumber {
			return errNumber
		}
		b = b[n:]
		var value []byte
		var v uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := each(number, kind, value, v); err != nil {
			return err
		}
	}
	return nil
}

var (
	errVarint = errors.New("a packed list ends within a number")
	errNumber = errors.New("a field's number is too large")
)

// varints calls each for every number of a packed list.
func varints(b []byte, each func(uint64) error) error {
	for len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return errVarint
		}
		if err := each(v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
