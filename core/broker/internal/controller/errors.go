package controller

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrNotController says that this broker isn't controller, or stopped being it before the request was done; then it may
// have happened.
var ErrNotController = errors.New("this broker is not the controller")

// refusal is why a request, or one item of it, isn't done: Kafka's error and a sentence for people.
type refusal struct {
	kind *kerr.Error
	text string
}

// Error is the sentence alone: it goes to clients beside the code.
func (r *refusal) Error() string { return r.text }

// Unwrap is Kafka's error.
func (r *refusal) Unwrap() error { return r.kind }

func refuse(kind *kerr.Error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

// codeOf is the Kafka error code in an error, for responses that the machine builds itself.
func codeOf(err error) int16 {
	var k *kerr.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &k):
		return k.Code
	}
	return kerr.UnknownServerError.Code
}
