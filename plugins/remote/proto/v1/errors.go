package pluginv1

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// codeOf says which error of a contract a code stands for.
type codeOf struct {
	code Code
	is   error
}

// sentinels lists the errors of a role's contract.
func sentinels(role string) []codeOf {
	switch role {
	case RolePartitioner:
		return []codeOf{{Code_CODE_UNAVAILABLE, partitioner.ErrUnavailable}, {Code_CODE_INVALID, partitioner.ErrInvalid}}
	case RoleCompression:
		return []codeOf{
			{Code_CODE_CORRUPT, compression.ErrCorrupt}, {Code_CODE_TOO_LARGE, compression.ErrTooLarge},
			{Code_CODE_LEVEL, compression.ErrLevel}, {Code_CODE_CLOSED, compression.ErrNotRunning},
		}
	case RoleOffsets:
		return []codeOf{
			{Code_CODE_UNAVAILABLE, offsets.ErrUnavailable}, {Code_CODE_NOT_OWNER, offsets.ErrNotOwner},
			{Code_CODE_TIMED_OUT, offsets.ErrTimedOut}, {Code_CODE_TOO_LARGE, offsets.ErrTooLarge},
			{Code_CODE_UNSUPPORTED, offsets.ErrUnsupported}, {Code_CODE_CORRUPT, offsets.ErrCorrupt}, {Code_CODE_CLOSED, offsets.ErrClosed},
		}
	}
	return nil
}

// longestMessage bounds the text of an error that crosses the wire, in bytes.
const longestMessage = 4 << 10

// NewError makes the message for an error of a role. nil stays nil.
func NewError(role string, err error) *Error {
	if err == nil {
		return nil
	}
	code := Code_CODE_OTHER
	for _, s := range sentinels(role) {
		if errors.Is(err, s.is) {
			code = s.code
			break
		}
	}
	return &Error{Code: code, Message: shorten(err.Error())}
}

// shorten keeps a text from outside within bounds.
func shorten(text string) string {
	if len(text) > longestMessage {
		return text[:longestMessage] + "…"
	}
	return text
}

// remoteError is an error that crossed the wire: it reads as it did on the other side and is what it was.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// For makes the error of a role again: errors.Is finds the contract's sentinel in it. nil stays nil. A code that the role
// doesn't have gives an error that is none of the contract's.
func (x *Error) For(role string) error {
	if x == nil {
		return nil
	}
	text := shorten(x.GetMessage())
	if text == "" {
		text = fmt.Sprintf("the plug-in answers %s", x.GetCode())
	}
	for _, s := range sentinels(role) {
		if s.code == x.GetCode() {
			return &remoteError{text, s.is}
		}
	}
	return &remoteError{text: text}
}
