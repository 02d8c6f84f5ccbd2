package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What can be wrong with a call, apart from what the role's contract says. Roles turn these into errors of their own.
var (
	// errDown says that there was no answer.
	errDown = errors.New("no answer")
	// errAnswer says that there was one that can't be used.
	errAnswer = errors.New("bad answer")
)

// missedInARow is how many deadlines a plug-in may miss one after the other before it is started anew.
const missedInARow = 3

// transport says in few words what gRPC says of a call that failed on the way.
func transport(err error) error {
	switch {
	case errors.Is(err, errAnswer):
		return err
	case errors.Is(err, errEnded):
		return fmt.Errorf("%w: %w", errDown, err)
	}
	s := status.Convert(err)
	text := s.Message()
	const longest = 500
	text = text[:min(len(text), longest)]
	switch s.Code() {
	case codes.ResourceExhausted:
		return fmt.Errorf("%w: too large: %s", errAnswer, text)
	case codes.Internal, codes.DataLoss:
		return fmt.Errorf("%w: %s", errAnswer, text)
	case codes.Unimplemented:
		return fmt.Errorf("%w: it doesn't have the method: %s", errAnswer, text)
	case codes.Unavailable, codes.Canceled: // nobody here canceled it: the connection was closed because the process has ended
		return fmt.Errorf("%w: the connection broke: %s", errDown, strings.TrimPrefix(text, "connection error: desc = "))
	case codes.DeadlineExceeded: // by the plug-in's clock, if not yet by ours
		return fmt.Errorf("%w: %w", errDown, context.DeadlineExceeded)
	}
	return fmt.Errorf("%w: %s: %s", errDown, s.Code(), text)
}

// sameDeadline says whether the deadline of a context is that of its parent.
func sameDeadline(parent, child context.Context) bool {
	a, ok := parent.Deadline()
	b, _ := child.Deadline()
	return ok && a.Equal(b)
}

// ended says whether an error is that of a context.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// call makes one call with a deadline. largest bounds the answer, in bytes. Errors are ctx's own, when that ended, or wrap
// errDown or errAnswer.
func call[Q, A any](ctx context.Context, h *host, s *session, largest int, rpc func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (answer A, err error) {
	var none A
	began := time.Now()
	defer func() { h.tally.count(began, err) }()
	limited, cancel := context.WithTimeout(ctx, h.options.CallTimeout)
	defer cancel()
	answer, err = rpc(limited, q, grpc.MaxCallRecvMsgSize(largest))
	switch {
	case err == nil:
		if s.missed.Load() != 0 {
			s.missed.Store(0)
		}
		return answer, nil
	case ctx.Err() != nil:
		return none, ctx.Err()
	case status.Code(err) == codes.DeadlineExceeded && sameDeadline(ctx, limited):
		return none, context.DeadlineExceeded // the plug-in's clock was a moment ahead of ctx
	case limited.Err() != nil || status.Code(err) == codes.DeadlineExceeded:
		err = fmt.Errorf("%w within %s", errDown, h.options.CallTimeout)
		if s.missed.Add(1) >= missedInARow {
			s.demand(fmt.Errorf("it missed %d deadlines of %s in a row", missedInARow, h.options.CallTimeout))
		}
		return none, err
	}
	err = transport(err)
	if errors.Is(err, errDown) {
		err = fmt.Errorf("%w (after %s)", err, time.Since(began).Round(time.Millisecond))
	}
	return none, err
}
