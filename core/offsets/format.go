package offsets

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The versions that are written, as Kafka 3.9 does. All that came before can be read, and so can the flexible versions
// that came after.
const (
	offsetKeyVersion  = 1
	groupKeyVersion   = 2
	offsetVersion     = 3
	offsetVersionExp  = 1 // the only one with an expiry time
	groupVersion      = 3
	groupVersionFlex  = 4
	offsetVersionFlex = 4
)

// AppendKey appends the key of an entry in the record format of Kafka's `__consumer_offsets` (OffsetCommitKey v1,
// GroupMetadataKey v2). ErrTooLarge when a string doesn't fit.
func AppendKey(dst []byte, k Key) ([]byte, error) {
	e := encoder{b: dst}
	if k.Kind == KindGroup {
		e.int16(groupKeyVersion)
		e.str(k.Group)
		return e.b, e.err
	}
	e.int16(offsetKeyVersion)
	e.str(k.Group)
	e.str(k.Topic)
	e.int32(k.Partition)
	return e.b, e.err
}

// AppendValue appends the value of an entry in the record format of Kafka's `__consumer_offsets`: OffsetCommitValue v3, or
// v1 when there is an expiry time, or GroupMetadataValue v3. For a tombstone it appends nothing; its record has a null
// value. ErrTooLarge when a string doesn't fit.
func AppendValue(dst []byte, entry Entry) ([]byte, error) {
	e := encoder{b: dst}
	switch {
	case entry.Kind == KindOffset && entry.Offset != nil:
		e.offset(entry.Offset)
	case entry.Kind == KindGroup && entry.Meta != nil:
		e.group(entry.Meta)
	}
	return e.b, e.err
}

// encoder appends the fields of the classic encoding: big endian, int16 lengths of strings, int32 lengths of the rest.
type encoder struct {
	b   []byte
	err error
}

func (e *encoder) offset(o *Offset) {
	if o.ExpireTimestamp != None {
		e.int16(offsetVersionExp)
		e.int64(o.Offset)
		e.str(o.Metadata)
		e.int64(o.CommitTimestamp)
		e.int64(o.ExpireTimestamp)
		return
	}
	e.int16(offsetVersion)
	e.int64(o.Offset)
	e.int32(o.LeaderEpoch)
	e.str(o.Metadata)
	e.int64(o.CommitTimestamp)
}

func (e *encoder) group(g *Group) {
	e.int16(groupVersion)
	e.str(g.ProtocolType)
	e.int32(g.Generation)
	e.nullable(g.Protocol)
	e.nullable(g.Leader)
	e.int64(g.StateTimestamp)
	e.int32(int32(len(g.Members)))
	for i := range g.Members {
		m := &g.Members[i]
		e.str(m.ID)
		e.nullable(m.InstanceID)
		e.str(m.ClientID)
		e.str(m.ClientHost)
		e.int32(m.RebalanceTimeout)
		e.int32(m.SessionTimeout)
		e.bytes(m.Subscription)
		e.bytes(m.Assignment)
	}
}

func (e *encoder) int16(v int16) { e.b = binary.BigEndian.AppendUint16(e.b, uint16(v)) }
func (e *encoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *encoder) str(s string) {
	if len(s) > math.MaxInt16 {
		e.err = fmt.Errorf("%w: a string of %d bytes", ErrTooLarge, len(s))
		return
	}
	e.int16(int16(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) nullable(s *string) {
	if s == nil {
		e.int16(-1)
		return
	}
	e.str(*s)
}

func (e *encoder) bytes(b []byte) {
	e.int32(int32(len(b)))
	e.b = append(e.b, b...)
}
