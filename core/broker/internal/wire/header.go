package wire

import (
	"encoding/binary"
	"errors"
)

// Form says which headers a request and its response have. It is a property of key and version.
type Form uint8

const (
	// Refused: there is no such key or version. The connection is closed, as Kafka does.
	Refused Form = iota
	// Plain: request header v1 (with a client id), response header v0.
	Plain
	// Flexible: request header v2 and response header v1, both with tagged fields (KIP-482).
	Flexible
	// FlexiblePlain: request header v2, but response header v0. ApiVersions 3 and up (KIP-511), so that a client may read
	// the answer before it knows what the broker speaks.
	FlexiblePlain
	// NoClient: request header v0, without a client id, and response header v0. ControlledShutdown 0.
	NoClient
	// Unread: key, version and correlation id are read, and nothing behind them; response header v0. ApiVersions of a
	// version that isn't served (KIP-511).
	Unread
)

var (
	errShortHeader = errors.New("the frame ends inside of the request header")
	errBadTags     = errors.New("malformed tagged fields in the request header")
)

// header is a request header, as it lies in the frame.
type header struct {
	key, version  int16
	correlationID int32
	clientID      []byte // nil when null
	body          []byte
}

// parseKey reads what all headers have in common.
func parseKey(frame []byte) (header, error) {
	if len(frame) < 8 {
		return header{}, errShortHeader
	}
	return header{
		key:           int16(binary.BigEndian.Uint16(frame)),
		version:       int16(binary.BigEndian.Uint16(frame[2:])),
		correlationID: int32(binary.BigEndian.Uint32(frame[4:])),
		body:          frame[8:],
	}, nil
}

// parse reads what follows key, version and correlation id. The client id is a string with a length of two bytes in every
// version, flexible ones included; any negative length reads as null, as in Kafka.
func (h *header) parse(form Form) error {
	switch form {
	case NoClient:
		return nil
	case Unread:
		h.body = nil
		return nil
	}
	if len(h.body) < 2 {
		return errShortHeader
	}
	n := int(int16(binary.BigEndian.Uint16(h.body)))
	h.body = h.body[2:]
	if n >= 0 {
		if n > len(h.body) {
			return errShortHeader
		}
		h.clientID, h.body = h.body[:n:n], h.body[n:]
	}
	if form == Plain {
		return nil
	}
	rest, ok := skipTags(h.body)
	if !ok {
		return errBadTags
	}
	h.body = rest
	return nil
}

// skipTags passes over tagged fields: none is known for request headers.
func skipTags(b []byte) ([]byte, bool) {
	count, b, ok := uvarint(b)
	for ; ok && count > 0; count-- {
		var size uint32
		if _, b, ok = uvarint(b); !ok { // the tag's number
			break
		}
		if size, b, ok = uvarint(b); !ok || uint64(size) > uint64(len(b)) {
			return nil, false
		}
		b = b[size:]
	}
	return b, ok
}

// uvarint reads an unsigned varint of at most 32 bits (KIP-482).
func uvarint(b []byte) (uint32, []byte, bool) {
	v, n := binary.Uvarint(b[:min(len(b), binary.MaxVarintLen32)])
	if n <= 0 || v > 1<<32-1 {
		return 0, nil, false
	}
	return uint32(v), b[n:], true
}

// appendResponseHeader begins a response: the size, to be filled in when it is sent, and the header.
func appendResponseHeader(dst []byte, form Form, correlationID int32) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if form == Flexible {
		dst = append(dst, 0)
	}
	return dst
}
