package rpc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxMessage is the largest message, in bytes.
const maxMessage = 64 << 20

// request is what a caller sends.
type request struct {
	ID     uint64          `json:"id"`
	Method string          `json:"method"`
	Wait   int64           `json:"wait,omitempty"` // milliseconds that the caller waits; 0 for as long as it takes
	Body   json.RawMessage `json:"body,omitempty"`
}

// answer is what it gets.
type answer struct {
	ID    uint64          `json:"id"`
	Error *Error          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Error is an error that keeps its code on the way to the caller.
type Error struct {
	Code string `json:"code"`
	Text string `json:"text"`
	// Detail is for whoever knows the code.
	Detail string `json:"detail,omitempty"`
}

func (e *Error) Error() string { return e.Text }

// Codes of errors that this package itself answers with.
const (
	// CodeFailed is that of errors that are no *Error.
	CodeFailed = "failed"
	// CodeUnknownMethod says that the other end doesn't know the method. It did nothing.
	CodeUnknownMethod = "unknown_method"
	// CodeBusy says that the other end has too much to do. It did nothing.
	CodeBusy = "busy"
)

// errTooLarge says that a message is larger than any may be.
var errTooLarge = errors.New("message is too large")

// encode gives a message with its length.
func encode(v any) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 4, 512))
	if err := json.NewEncoder(b).Encode(v); err != nil {
		return nil, err
	}
	text := b.Bytes()
	if len(text)-4 > maxMessage {
		return nil, fmt.Errorf("%w: %d bytes", errTooLarge, len(text)-4)
	}
	binary.BigEndian.PutUint32(text, uint32(len(text)-4))
	return text, nil
}

// decode reads a message into v. Memory is taken as bytes arrive, whatever the length says. The error is io.EOF only before the
// first byte.
func decode(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > maxMessage {
		return fmt.Errorf("%w: %d bytes", errTooLarge, n)
	}
	var b bytes.Buffer
	if n <= 4096 {
		b.Grow(int(n))
	}
	if got, err := io.CopyN(&b, r, n); err != nil {
		return fmt.Errorf("%d of %d bytes of a message: %w", got, n, io.ErrUnexpectedEOF)
	}
	if err := json.Unmarshal(b.Bytes(), v); err != nil {
		return fmt.Errorf("no message: %w", err)
	}
	return nil
}
