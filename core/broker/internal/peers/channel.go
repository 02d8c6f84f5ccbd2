package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// ErrUnsupportedVersion says that the controller doesn't speak a version of the request that this broker does.
var ErrUnsupportedVersion = errors.New("the controller speaks no such version of the request")

const (
	// retryPause is how long who got no answer waits before it asks again, as in Kafka.
	retryPause = 100 * time.Millisecond
	// defaultRequestTimeout is Kafka's default of controller.socket.timeout.ms.
	defaultRequestTimeout = 30 * time.Second
)

// ChannelOptions are what a channel is made of.
type ChannelOptions struct {
	// Peers dials.
	Peers *Peers
	// Local answers requests when this broker is the controller itself. [kerr.NotController] from it says that it isn't, or
	// not yet. Nil asks over the network also then.
	Local func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	// RequestTimeout is how long the controller may take to answer before it is asked again: controller.socket.timeout.ms. 0
	// means Kafka's default.
	RequestTimeout time.Duration
	Logger         *slog.Logger
}

// Channel brings requests to the controller, whichever broker that is, over one connection that it makes when it is needed.
// Requests go one at a time: who calls Do while another request is under way waits for that. So each purpose has a channel of
// its own. Any goroutine may use it.
type Channel struct {
	o    ChannelOptions
	turn chan struct{} // holds one token while somebody has the fields below

	broker   int32
	client   *wire.Client // nil when there is no connection
	versions map[int16]kmsg.ApiVersionsResponseApiKey

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	once   sync.Once
}

// NewChannel makes a channel. Nothing is dialled before the first request.
func NewChannel(o ChannelOptions) *Channel {
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Channel{o: o, turn: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Do has the controller answer a request, and returns its answer, which is the caller's.
//
// The version that req has is the highest that may be sent. It is lowered to what the controller speaks, which it is asked
// for on each new connection, so fields that only older versions have must be filled in as well; the answer's version is that
// of the request. [ErrUnsupportedVersion] when there is none in common.
//
// While no controller is known or can be reached, does not answer in time, or says that it is not the controller, Do tries
// again, with whoever is controller by then, until ctx ends or the channel is closed. A request that was sent and not
// answered may have been carried out: Do is for requests that may be repeated.
func (c *Channel) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, c.ended(ctx)
	}
	highest := req.GetVersion()
	for tries := 0; ; tries++ {
		if ctx.Err() != nil {
			return nil, c.ended(ctx)
		}
		req.SetVersion(highest)
		resp, err := c.try(ctx, req)
		switch {
		case err == nil:
			return resp, nil
		case errors.Is(err, ErrUnsupportedVersion):
			return nil, err
		case ctx.Err() != nil:
			return nil, c.ended(ctx)
		}
		c.o.Logger.Debug("the controller has not answered, and is asked again", "request", kmsg.NameForKey(req.Key()), "tries", tries+1, "err", err)
		sleep(ctx, retryPause)
	}
}

// Close ends the channel: requests under way, and later ones, fail with [wire.ErrClientClosed]. It may be called twice.
func (c *Channel) Close() error {
	c.once.Do(func() {
		c.cancel()
		c.turn <- struct{}{} // for ever: nobody gets a turn any more
		c.drop()
	})
	return nil
}

// ended says why a context of Do's has ended.
func (c *Channel) ended(ctx context.Context) error {
	if c.ctx.Err() != nil {
		return wire.ErrClientClosed
	}
	return ctx.Err()
}

// try asks whoever is controller now, once. It gives up when the controller changes meanwhile.
func (c *Channel) try(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	cluster := c.o.Peers.o.Cluster
	id, epoch := cluster.Snapshot().Controller()
	if id < 0 {
		return nil, errors.New("no controller is known")
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.RequestTimeout)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		// Either there is another controller, or ctx is over: in both cases nothing is left to wait for.
		_, _ = cluster.Await(ctx, func(s *metadata.Snapshot) bool {
			nowID, nowEpoch := s.Controller()
			return nowID != id || nowEpoch != epoch
		})
	})
	resp, err := c.ask(ctx, id, req)
	if err == nil && notController(resp) {
		c.drop()
		err = fmt.Errorf("broker %d: %w", id, kerr.NotController)
	}
	return resp, err
}

// ask asks a broker.
func (c *Channel) ask(ctx context.Context, broker int32, req kmsg.Request) (kmsg.Response, error) {
	if broker == c.o.Peers.o.BrokerID && c.o.Local != nil {
		return c.o.Local(ctx, req)
	}
	if c.client != nil && c.broker != broker {
		c.drop()
	}
	if c.client == nil {
		if err := c.connect(ctx, broker); err != nil {
			return nil, err
		}
	}
	r, ok := c.versions[req.Key()]
	if !ok || req.GetVersion() < r.MinVersion {
		return nil, fmt.Errorf("%s version %d, broker %d: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), broker, ErrUnsupportedVersion)
	}
	req.SetVersion(min(req.GetVersion(), r.MaxVersion))
	resp, err := c.client.Do(ctx, req)
	if err != nil {
		c.drop()
	}
	return resp, err
}

// connect dials a broker and asks what it speaks.
func (c *Channel) connect(ctx context.Context, broker int32) error {
	client, err := c.o.Peers.Dial(ctx, broker)
	if err != nil {
		return err
	}
	resp, err := client.Do(ctx, kmsg.NewPtrApiVersionsRequest()) // of version 0, which everybody answers
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.ApiVersionsResponse).ErrorCode)
	}
	if err != nil {
		client.Close()
		return err
	}
	c.client, c.broker, c.versions = client, broker, map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		c.versions[k.ApiKey] = k
	}
	return nil
}

// drop ends the connection.
func (c *Channel) drop() {
	if c.client != nil {
		c.client.Close()
		c.client = nil
	}
}

// notController reports whether a broker answered that it isn't the controller.
func notController(resp kmsg.Response) bool {
	var code int16
	switch resp := resp.(type) {
	case *kmsg.AlterPartitionResponse:
		code = resp.ErrorCode
	case *kmsg.ControlledShutdownResponse:
		// Apache Kafka's brokers say here that the controller has moved by the code of a stale epoch.
		code = resp.ErrorCode
		return code == kerr.NotController.Code || code == kerr.StaleControllerEpoch.Code
	case *kmsg.CreateTopicsResponse:
		for i := range resp.Topics {
			if resp.Topics[i].ErrorCode == kerr.NotController.Code {
				return true
			}
		}
	}
	return code == kerr.NotController.Code
}
