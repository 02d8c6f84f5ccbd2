package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// idleStreams is how many streams are kept for later calls.
const idleStreams = 16

// exchange is a request to a partitioner and the room for its answer.
type exchange struct {
	call   pluginv1.PartitionCall
	answer pluginv1.PartitionAnswer
}

// streams are the streams on which a partitioner is asked, in one life of it. Each serves one call at a time; the next one finds
// everything set up: goroutines, buffers, and a thread of the plug-in's that knows the way.
type streams struct {
	client pluginv1.PartitionerClient
	number atomic.Uint64 // of the last call

	mu   sync.Mutex
	idle []*stream
}

type stream struct {
	grpc.ClientStream
	cancel context.CancelFunc
}

// take gives a stream that nobody uses.
func (s *streams) take() (*stream, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		one := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return one, nil
	}
	s.mu.Unlock()
	// It outlives the call, so it isn't ended by the call's context but by cancel.
	ctx, cancel := context.WithCancel(context.Background())
	opened, err := s.client.PartitionStream(ctx, grpc.MaxCallRecvMsgSize(largestAnswer))
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{opened, cancel}, nil
}

// give keeps a stream for the next call.
func (s *streams) give(one *stream) {
	s.mu.Lock()
	keep := len(s.idle) < idleStreams
	if keep {
		s.idle = append(s.idle, one)
	}
	s.mu.Unlock()
	if !keep {
		one.cancel()
	}
}

// partition makes one call. A stream on which anything went wrong isn't used again: what comes there later would be taken for
// the answer to something else.
func (s *streams) partition(ctx context.Context, e *exchange, _ ...grpc.CallOption) (struct{}, error) {
	var none struct{}
	one, err := s.take()
	if err != nil {
		return none, err
	}
	e.call.Number = s.number.Add(1)
	stop := context.AfterFunc(ctx, one.cancel)
	err = one.exchange(e)
	if !stop() || err != nil {
		one.cancel()
		return none, err
	}
	s.give(one)
	return none, nil
}

var errEnded = errors.New("it ended the stream")

func (s *stream) exchange(e *exchange) error {
	// io.EOF says that the stream has ended; RecvMsg says why.
	if err := s.SendMsg(&e.call); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := s.RecvMsg(&e.answer); errors.Is(err, io.EOF) {
		return errEnded
	} else if err != nil {
		return err
	}
	if e.answer.Number != e.call.Number {
		return fmt.Errorf("%w: to call %d instead of %d", errAnswer, e.answer.Number, e.call.Number)
	}
	return nil
}
