// Package znode encodes and decodes what Apache Kafka 3.9 keeps in ZooKeeper's nodes: JSON for the most part, in the members and
// versions that Kafka writes. It knows neither paths nor ZooKeeper.
//
// Decoders take what any release has written and what others may have put there: unknown members are ignored, as Kafka does, older
// versions are read, and anything else gives an error that says what is wrong with it. They allocate in proportion to what they
// are given. Encoders write the newest version that 3.9 writes; the order of members is ours, for readers don't look at it.
package znode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// ErrMalformed says that a node's bytes aren't what belongs there.
var ErrMalformed = errors.New("malformed node")

// object is a decoded JSON object. Its members are found by their exact names, which decoding into a struct doesn't promise.
type object map[string]json.RawMessage

// decode reads one JSON object.
func decode(what string, data []byte) (object, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", what, ErrMalformed, err)
	}
	if o == nil {
		return nil, fmt.Errorf("%s: %w: no object", what, ErrMalformed)
	}
	return o, nil
}

// has says whether there is a member that isn't null.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// member reads a member that must be there.
func member[T any](o object, what, name string) (value T, err error) {
	if !o.has(name) {
		return value, fmt.Errorf("%s: %w: no %q", what, ErrMalformed, name)
	}
	if err := json.Unmarshal(o[name], &value); err != nil {
		return value, fmt.Errorf("%s: %w: %q: %w", what, ErrMalformed, name, err)
	}
	return value, nil
}

// optional reads a member that may be missing, or null.
func optional[T any](o object, what, name string) (value T, err error) {
	if !o.has(name) {
		return value, nil
	}
	return member[T](o, what, name)
}

// encode writes JSON as Kafka's library does: nothing but what must be is escaped.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // all that is encoded here is made of strings, numbers, slices and maps of them
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// list is never null in JSON.
func list(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}

// EncodeNumber writes what /controller_epoch holds: decimal text.
func EncodeNumber(n int32) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// DecodeNumber reads it. It is never negative.
func DecodeNumber(data []byte) (int32, error) {
	n, err := strconv.ParseInt(string(data[:min(len(data), 20)]), 10, 32)
	if err != nil || n < 0 || len(data) > 20 {
		return 0, fmt.Errorf("number: %w: %q", ErrMalformed, clip(string(data)))
	}
	return int32(n), nil
}

// clip shortens what is foreign and goes into an error.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// nonNegative says whether a broker id or partition number can be one.
func nonNegative(n int64) bool { return n >= 0 && n <= math.MaxInt32 }
